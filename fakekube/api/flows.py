"""Which flow a request belongs to: the FlowSchema that matches it first, and its priority level, told in
two headers.

Nothing is queued here; the classification is only what a client can see of API priority and fairness. It is
made once per kind of request and kept until a FlowSchema or a level changes.

Specified by: k8s.io/apiserver/pkg/util/flowcontrol/rule.go, k8s.io/api/flowcontrol/v1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fakekube.auth.identities import service_account_username
from fakekube.auth.observing import Lister, Observed
from fakekube.streams import Source
from fakekube.verbs.request import RequestInfo, User

__all__ = ["Flows"]

_GROUP: Final = "flowcontrol.apiserver.k8s.io"
_SCHEMAS: Final = "flowschemas"
_LEVELS: Final = "prioritylevelconfigurations"
_ALL: Final = "*"
_MAXIMUM_KEPT: Final = 4096

Headers = tuple[tuple[str, str], ...]
Object = Mapping[str, Any]


class Flows:
    """The flows of one cluster."""

    def __init__(self, lister: Lister, bucket: Callable[[str], Source]) -> None:
        self._objects = Observed(lister, [bucket(f"{plural}.{_GROUP}") for plural in (_SCHEMAS, _LEVELS)])
        self._version: int | None = None
        self._schemas: list[tuple[Object, Headers]] = []
        self._known: dict[tuple[object, ...], Headers] = {}

    def headers(self, info: RequestInfo, user: User) -> Headers:
        """The headers that tell a request's flow; none if no flow matches."""
        version = self._objects.version()
        if version != self._version:
            self._read(version)
        key = (
            user.name,
            user.groups,
            info.verb,
            info.group,
            info.resource,
            info.subresource,
            info.namespace,
            info.is_resource_request or info.path,
        )
        found = self._known.get(key)
        if found is None:
            found = next((headers for spec, headers in self._schemas if _matches(spec, info, user)), ())
            if len(self._known) < _MAXIMUM_KEPT:
                self._known[key] = found
        return found

    def _read(self, version: int) -> None:
        levels = {level["metadata"]["name"]: level["metadata"]["uid"] for level in self._objects.list(_GROUP, _LEVELS)}
        schemas = sorted(self._objects.list(_GROUP, _SCHEMAS), key=_precedence)
        self._schemas = [
            (schema["spec"], _headers(schema["metadata"]["uid"], levels[level]))
            for schema in schemas
            if (level := schema["spec"]["priorityLevelConfiguration"]["name"]) in levels
        ]
        self._known = {}
        self._version = version


def _precedence(schema: Object) -> tuple[int, str]:
    return schema["spec"].get("matchingPrecedence", 0), schema["metadata"]["name"]


def _headers(schema_uid: str, level_uid: str) -> Headers:
    return ("X-Kubernetes-Pf-Flowschema-Uid", schema_uid), ("X-Kubernetes-Pf-Prioritylevel-Uid", level_uid)


def _matches(spec: Object, info: RequestInfo, user: User) -> bool:
    return any(_rule_matches(rule, info, user) for rule in spec.get("rules") or ())


def _rule_matches(rule: Object, info: RequestInfo, user: User) -> bool:
    if not any(_subject_matches(subject, user) for subject in rule.get("subjects") or ()):
        return False
    if info.is_resource_request:
        return any(_resource_rule_matches(inner, info) for inner in rule.get("resourceRules") or ())
    return any(
        _contains(inner["verbs"], info.verb) and _path_matches(inner["nonResourceURLs"], info.path)
        for inner in rule.get("nonResourceRules") or ()
    )


def _subject_matches(subject: Object, user: User) -> bool:
    kind = subject["kind"]
    if kind == "ServiceAccount":
        account = subject.get("serviceAccount") or {}
        namespace, name = account.get("namespace", ""), account.get("name", "")
        if name == _ALL:
            return user.name.startswith(service_account_username(namespace, ""))
        return user.name == service_account_username(namespace, name)
    name = (subject.get(kind.lower()) or {}).get("name")
    return name == _ALL or name in ((user.name,) if kind == "User" else user.groups)


def _resource_rule_matches(rule: Object, info: RequestInfo) -> bool:
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    if not (
        _contains(rule["verbs"], info.verb)
        and _contains(rule["resources"], resource)
        and _contains(rule["apiGroups"], info.group)
    ):
        return False
    if not info.namespace:
        return bool(rule.get("clusterScope"))
    return _contains(rule.get("namespaces") or (), info.namespace)


def _contains(values: Sequence[str], value: str) -> bool:
    return value in values or list(values) == [_ALL]


def _path_matches(patterns: Sequence[str], path: str) -> bool:
    for pattern in patterns:
        prefix = pattern.removesuffix(_ALL)
        if pattern in (_ALL, path) or path.startswith(prefix if prefix.endswith("/") else f"{prefix}/"):
            return True
    return False
