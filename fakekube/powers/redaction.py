"""Removes credentials and the data of Secrets from recorded requests, states and objects before they are written to a file.

What is removed: Authorization, cookies and other headers with credentials; tokens in queries; the tokens of TokenRequests and
TokenReviews; the values of Secrets wherever an object, a list, a Table, a patch or an admission review has them, and their
annotation with the last applied configuration. Names of keys stay. Bodies that cannot be decoded, such as Protobuf, are removed
where they may have such values.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from fakekube.apis.well_known import LAST_APPLIED_CONFIG_ANNOTATION
from fakekube.base.objects import Object

#: The text in place of a removed value.
REDACTED: Final = "REDACTED"

_HEADERS: Final = frozenset(
    {"authorization", "cookie", "proxy-authorization", "set-cookie", "sec-websocket-protocol", "x-api-key", "x-auth-token"}
)
_PARAMETERS: Final = frozenset({"token", "access_token", "id_token", "authorization"})
_SECRET_FIELDS: Final = ("data", "stringData")

#: Tuples, since what has the name `kind` need not be a text: the schema of a definition has its type there.
_SECRET_KINDS: Final = ("Secret", "SecretList")
_TOKEN_KINDS: Final = ("TokenRequest", "TokenReview")


def redact_exchange(exchange: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an exchange (`exchange_data`) without credentials and data of Secrets."""
    resource, subresource = exchange["resource"], exchange["subresource"]
    is_secret = (exchange["group"], resource) == ("", "secrets")
    has_token = (resource, subresource) == ("serviceaccounts", "token") or resource == "tokenreviews"
    return {
        **exchange,
        "path": _path(exchange["path"]),
        "query": {name: REDACTED if name.lower() in _PARAMETERS else value for name, value in exchange["query"].items()},
        "headers": {name: REDACTED if name.lower() in _HEADERS else value for name, value in exchange["headers"].items()},
        "body": _body(exchange["body"], is_secret, has_token),
        "answer": _body(exchange["answer"], is_secret, has_token),
    }


def without_secret_data(obj: Object) -> Object:
    """Returns the object; if it is a Secret, with empty values in its data."""
    return {**obj, "data": dict.fromkeys(obj["data"], "")} if obj["kind"] == "Secret" and obj.get("data") else obj


def without_secrets(state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a saved state (`state.state_of`) whose Secrets have other values: base64 of `redacted (24 bytes)`."""
    resources = dict(state["resources"])
    if "secrets" in resources:
        resources["secrets"] = [*map(_without_values, resources["secrets"])]
    found = {**state, "resources": resources}
    history = state.get("history")
    if history is not None and "secrets" in history["resources"]:
        past = history["resources"]["secrets"]
        shown = {**past, "before": [*map(_without_values, past["before"])], "events": [*map(_without_values, past["events"])]}
        found["history"] = {**history, "resources": {**history["resources"], "secrets": shown}}
    return found


def _without_values(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the row of a Secret in a state without its values."""
    if "object" not in row:
        return row
    obj = dict(row["object"])
    for name in _SECRET_FIELDS:
        if isinstance(obj.get(name), dict):
            obj[name] = {key: _count_bytes(value) for key, value in obj[name].items()}
    metadata = obj["metadata"]
    if LAST_APPLIED_CONFIG_ANNOTATION in (metadata.get("annotations") or {}):
        obj["metadata"] = {**metadata, "annotations": {**metadata["annotations"], LAST_APPLIED_CONFIG_ANNOTATION: REDACTED}}
    return {**row, "object": obj}


def _count_bytes(value: Any) -> str:
    size = len(value) * 3 // 4 - value.count("=") if isinstance(value, str) else 0
    return base64.b64encode(f"redacted ({size} bytes)".encode()).decode()


def _path(path: str) -> str:
    """Removes the query of a path, which is a member of its own."""
    return path.partition("?")[0]


def _body(body: Any, is_secret: bool, has_token: bool) -> Any:
    if isinstance(body, str | bytes) and body and (is_secret or has_token):
        return REDACTED
    return _value(body, is_secret, has_token)


def _value(value: Any, is_secret: bool, has_token: bool) -> Any:
    """Returns a copy of a value without its secrets.

    Args:
        value: a part of an object.
        is_secret: the object is a Secret, a list or a Table of them, or a patch of one.
        has_token: the object has a token in its status, as a TokenRequest has.
    """
    if isinstance(value, list):
        return [_operation(item) if is_secret and _is_operation(item) else _value(item, is_secret, has_token) for item in value]
    if not isinstance(value, Mapping):
        return value
    kind = value.get("kind")
    is_secret, has_token = is_secret or kind in _SECRET_KINDS, has_token or kind in _TOKEN_KINDS
    copy = {name: _value(item, is_secret, has_token) for name, item in value.items()}
    if has_token and "token" in copy:
        copy["token"] = REDACTED
    if is_secret:
        for field in _SECRET_FIELDS:
            if field in copy:
                copy[field] = _values(copy[field])
        if LAST_APPLIED_CONFIG_ANNOTATION in copy:
            copy[LAST_APPLIED_CONFIG_ANNOTATION] = REDACTED
    return copy


def _values(value: Any) -> Any:
    """Replaces the values of a map, or a value of any other kind as a whole."""
    return {name: None if item is None else REDACTED for name, item in value.items()} if isinstance(value, dict) else REDACTED


def _is_operation(value: Any) -> bool:
    """Reports whether a value is an operation of a JSON patch."""
    return isinstance(value, Mapping) and "op" in value and "path" in value


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    """Redacts an operation of a JSON patch of a Secret, whatever its path."""
    return {name: item if name in ("op", "path", "from") else REDACTED for name, item in operation.items()}
