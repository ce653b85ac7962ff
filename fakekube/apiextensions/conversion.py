"""Converts custom resources between the versions of a definition: by setting apiVersion, or by a webhook.

A webhook gets one object per call: every version has its own storage (and watch cache) in the real server, which
decodes object by object. The webhook may change everything except the metadata, of which it can change only labels and
annotations; other metadata is restored.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion (converter.go, webhook_converter.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.data import API_EXTENSIONS
from fakekube.apimachinery.errors import status
from fakekube.apimachinery.errors.field import aggregate
from fakekube.apis.rest.cluster_access import Call, CallError
from fakekube.apis.validation.objectmeta import validate_annotations, validate_labels
from fakekube.apis.validation.webhooks import REVIEW_VERSIONS
from fakekube.base.golang.json_reader import UNEXPECTED_END
from fakekube.base.golang.strconv import UNTYPED_OBJECT, go_quote, go_type, json_kind, unmarshal_error
from fakekube.base.objects import Object

Convert = Callable[[Object, str], Object]
"""(object, desired apiVersion) → the object in that version, which may share parts. Raises StatusError 500."""


_CHECKED = ("name", "namespace", "uid")
_FREE = {"labels": (validate_labels, "metadata.labels"), "annotations": (validate_annotations, "metadata.annotation")}


def converter(definition: Object, call: Call) -> Convert:
    """Returns the converter of a definition; `call` is needed for the strategy Webhook."""
    spec = definition["spec"]
    versions = {f"{spec['group']}/{version['name']}" for version in spec["versions"]}
    conversion = spec.get("conversion") or {}
    convert = _with_api_version
    if conversion.get("strategy") == "Webhook":
        convert = _Webhook(conversion["webhook"], call).convert

    def convert_from_found(obj: Object, wanted: str) -> Object:
        found = obj.get("apiVersion", "")
        for api_version, what in ((wanted, "to"), (found, "from")):
            if api_version not in versions:
                raise _failure(f"request to convert CR {what} an invalid group/version: {api_version}")
        return obj if found == wanted else convert(obj, wanted)

    return convert_from_found


def _failure(problem: str) -> status.StatusError:
    return status.generic(500, "", problem)


def _with_api_version(obj: Object, wanted: str) -> Object:
    return {**obj, "apiVersion": wanted}


class _Webhook:
    """A conversion webhook."""

    def __init__(self, webhook: Mapping[str, Any], call: Call) -> None:
        self._client_config, self._call = webhook["clientConfig"], call
        understood = (name for name in webhook["conversionReviewVersions"] if name in REVIEW_VERSIONS)
        self._api_version = f"{API_EXTENSIONS}/{next(understood)}"

    def convert(self, obj: Object, wanted: str) -> Object:
        """See `Convert`."""
        if obj.keys() == {"apiVersion", "kind"}:
            return _with_api_version(obj, wanted)
        group, _, version = obj["apiVersion"].rpartition("/")
        about = f"conversion webhook for {group}/{version}, Kind={obj['kind']}"
        found = self._convert_object(obj, wanted, about)
        _check_type(obj, found, wanted, about)
        try:
            _check_identity(obj, found)
        except _InvalidConversionError as error:
            raise _failure(f"{about} returned invalid object: {error}") from None
        try:
            return {**found, "metadata": _metadata(obj, found)}
        except _InvalidConversionError as error:
            raise _failure(f"{about} returned invalid metadata: {error}") from None

    def _convert_object(self, obj: Object, wanted: str, about: str) -> Object:
        uid = str(uuid4())
        review = {
            "kind": "ConversionReview",
            "apiVersion": self._api_version,
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": [obj]},
            "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
        }
        try:
            converted = _converted_objects(self._call(self._client_config, review), uid, self._api_version)
        except (CallError, _InvalidConversionError) as problem:
            raise _failure(f"{about} failed: {problem}") from None
        if len(converted) != 1:
            raise _failure(f"{about} returned {len(converted)} objects, expected 1")
        return _object_in(converted[0])


class _InvalidConversionError(Exception):
    """The response of a webhook is not a valid conversion; has the error message of the real server."""


def _converted_objects(review: Object, uid: str, api_version: str) -> list[Any]:
    """Returns the converted objects of a review; v1beta1 reviews are validated less strictly."""
    strict = api_version.endswith("/v1")
    if strict:
        found = f"{_group_version(review.get('apiVersion', ''))}, Kind={review.get('kind', '')}"
        wanted = f"{api_version}, Kind=ConversionReview"
        if found != wanted:
            raise _InvalidConversionError(f"expected webhook response of {wanted}, got {found}")
    response = review.get("response")
    if response is None:
        raise _InvalidConversionError("no response provided")
    if strict and response.get("uid", "") != uid:
        raise _InvalidConversionError(f"expected response.uid={go_quote(uid)}, got {go_quote(response.get('uid', ''))}")
    result = response.get("result") or {}
    if result.get("status") != "Success":
        raise _InvalidConversionError(
            result.get("message") or f"response.result.status was '{result.get('status', '')}', not 'Success'"
        )
    return response.get("convertedObjects") or []


def _group_version(api_version: str) -> str:
    """Returns a group version as Go prints it in a GroupVersionKind."""
    return api_version if "/" in api_version else f"/{api_version}"


def _object_in(value: Any) -> Object:
    """Decodes a converted object. Raises StatusError 500 if it is not an object."""
    if value is None:
        raise _failure(UNEXPECTED_END)
    if not isinstance(value, dict):
        raise _failure(unmarshal_error(json_kind(value), UNTYPED_OBJECT))
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if not kind or not isinstance(kind, str) or (isinstance(api_version, str) and api_version.count("/") > 1):
        raise _failure(status.missing_kind(json.dumps(value).decode()))
    return value


def _check_type(obj: Object, found: Object, wanted: str, about: str) -> None:
    """Raises StatusError 500 if the object does not have the desired kind and apiVersion."""
    api_version = found.get("apiVersion")
    api_version = api_version if isinstance(api_version, str) else ""
    for what, expected, received in (("groupVersion", wanted, api_version), ("kind", obj["kind"], found["kind"])):
        if expected != received:
            said = f"invalid {what} (expected {expected}, received {received})"
            raise _failure(f"{about} returned invalid object at index 0: {said}")


def _check_identity(obj: Object, found: Object) -> None:
    """Raises _InvalidConversionError if name, namespace or uid differ."""
    for name in _CHECKED:
        expected, received = _text(obj, name), _text(found, name)
        if expected != received:
            raise _InvalidConversionError(f"must have the same {'UID' if name == 'uid' else name}: {expected} != {received}")


def _text(obj: Object, name: str) -> str:
    metadata = obj.get("metadata")
    value = metadata.get(name) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


def _metadata(obj: Object, found: Object) -> Object:
    """Returns the original metadata with the labels and annotations of a converted object that has the same name.

    Raises _InvalidConversionError.
    """
    metadata = dict(obj["metadata"])
    for name, (validate, path) in _FREE.items():
        texts = found["metadata"].get(name)
        if texts is None:
            metadata.pop(name, None)
            continue
        _check_texts(name, texts)
        errors = validate(texts, path) if texts != metadata.get(name) else []
        if errors:
            raise _InvalidConversionError(aggregate(errors))
        metadata[name] = texts
    return metadata


def _check_texts(name: str, texts: Any) -> None:
    if not isinstance(texts, dict):
        raise _InvalidConversionError(f"invalid metadata.{name} of type {go_type(texts)} in converted object")
    for key, text in texts.items():
        if not isinstance(text, str):
            raise _InvalidConversionError(f"metadata.{name}[{key}] must be a string, but is {go_type(text)} in converted object")
