"""API Priority and Fairness: classifies requests by FlowSchema and priority level, and returns both as response headers.

Requests are not queued; the classification is the only part of API priority and fairness that clients see. It is
cached until a FlowSchema or a PriorityLevelConfiguration changes.

Specified by: k8s.io/apiserver/pkg/util/flowcontrol (rule.go, apf_controller.go), k8s.io/api/flowcontrol/v1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fakekube.apimachinery.data import FLOW_CONTROL
from fakekube.apis.well_known import service_account_username
from fakekube.apiserver.auth.authorization import Lister, Observed
from fakekube.apiserver.endpoints.request import RequestInfo, User
from fakekube.base.caches import LONGEST_TEXT, BoundedCache
from fakekube.base.objects import StoredObject
from fakekube.net.streams import Source

_SCHEMAS: Final = "flowschemas"
_LEVELS: Final = "prioritylevelconfigurations"
_ALL: Final = "*"
_SEATS: Final = 600
"""The requests that a real server serves at once, of which the levels have their shares: 400 that read, 200 that write."""
_MAX_CLASSIFICATIONS: Final = 4096

Headers = tuple[tuple[str, str], ...]


_InOrder = Sequence[tuple[StoredObject, Headers]]


class _KnownOrder:
    """Caches the order of the last FlowSchemas seen: most clusters of a process have the same ones, those of a fresh cluster."""

    def __init__(self) -> None:
        self._newest: tuple[tuple[StoredObject, ...], tuple[StoredObject, ...], _InOrder] = ((), (), ())

    def sort(self, schemas: tuple[StoredObject, ...], levels: tuple[StoredObject, ...]) -> _InOrder:
        """Returns the specs of the schemas, sorted by precedence, each with the headers of the requests that it matches."""
        newest = self._newest
        if (schemas, levels) != newest[:2]:
            uids = {level["metadata"]["name"]: level["metadata"]["uid"] for level in levels}
            in_order = [
                (schema["spec"], _headers(schema["metadata"]["uid"], uids[level]))
                for schema in sorted(schemas, key=_precedence)
                if (level := schema["spec"]["priorityLevelConfiguration"]["name"]) in uids
            ]
            newest = self._newest = (schemas, levels, in_order)
        return newest[2]


_known_order = _KnownOrder()


class _Schemas:
    """The FlowSchemas at one version, with the cached classifications."""

    def __init__(self, objects: Observed, version: object) -> None:
        self.version = version
        self.known: BoundedCache[tuple[object, ...], Headers] = BoundedCache(_MAX_CLASSIFICATIONS)
        self._in_order = _known_order.sort(
            tuple(objects.list(FLOW_CONTROL, _SCHEMAS)), tuple(objects.list(FLOW_CONTROL, _LEVELS))
        )

    def find(self, info: RequestInfo, user: User) -> Headers:
        """Returns the headers for the first FlowSchema that matches."""
        for spec, headers in self._in_order:
            if any(_rule_matches(rule, info, user) for rule in spec.get("rules") or ()):
                return headers
        return ()


@dataclass(slots=True)
class Classified:
    """The flow of a request."""

    version: object
    """That of the FlowSchemas."""
    user: User
    headers: Headers
    """() if no FlowSchema matches."""


class Flows:
    """Classifies the requests of one cluster."""

    def __init__(self, lister: Lister, bucket: Callable[[str], Source]) -> None:
        self._objects = Observed(lister, [bucket(f"{plural}.{FLOW_CONTROL}") for plural in (_SCHEMAS, _LEVELS)])
        self._schemas: _Schemas | None = None

    def classify(self, info: RequestInfo, user: User, last: Classified | None = None) -> Classified:
        """Returns the flow of a request; `last`: that of the last request with the same info."""
        version = self._objects.version
        if last is not None and last.version is version and last.user is user:
            return last
        return Classified(version, user, self._headers(version, info, user))

    def _headers(self, version: object, info: RequestInfo, user: User) -> Headers:
        schemas = self._schemas
        if schemas is None or schemas.version is not version:
            schemas = self._schemas = _Schemas(self._objects, version)
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
        found = schemas.known.get(key)
        if found is None:
            found = schemas.find(info, user)
            if len(info.path) + len(user.name) <= LONGEST_TEXT:
                schemas.known.add(key, found)
        return found

    def nominal_seats(self) -> dict[str, int]:
        """Returns the nominal number of seats of each priority level, by its shares."""
        shares = {level["metadata"]["name"]: _shares(level["spec"]) for level in self._objects.list(FLOW_CONTROL, _LEVELS)}
        total = sum(shares.values())
        return {name: -(-_SEATS * share // total) if total else 0 for name, share in sorted(shares.items())}


def _shares(spec: StoredObject) -> int:
    """Returns the nominal concurrency shares of a limited or exempt level."""
    shares: int = (spec.get("limited") or spec.get("exempt") or {}).get("nominalConcurrencyShares", 0)
    return shares


def _precedence(schema: StoredObject) -> tuple[int, str]:
    return schema["spec"].get("matchingPrecedence", 0), schema["metadata"]["name"]


def _headers(schema_uid: str, level_uid: str) -> Headers:
    return ("X-Kubernetes-Pf-Flowschema-Uid", schema_uid), ("X-Kubernetes-Pf-Prioritylevel-Uid", level_uid)


def _rule_matches(rule: StoredObject, info: RequestInfo, user: User) -> bool:
    if not any(_subject_matches(subject, user) for subject in rule.get("subjects") or ()):
        return False
    if info.is_resource_request:
        return any(_resource_rule_matches(inner, info) for inner in rule.get("resourceRules") or ())
    return any(
        _contains(inner["verbs"], info.verb) and _path_matches(inner["nonResourceURLs"], info.path)
        for inner in rule.get("nonResourceRules") or ()
    )


def _subject_matches(subject: StoredObject, user: User) -> bool:
    kind = subject["kind"]
    if kind == "ServiceAccount":
        account = subject.get("serviceAccount") or {}
        namespace, name = account.get("namespace", ""), account.get("name", "")
        if name == _ALL:
            return user.name.startswith(service_account_username(namespace, ""))
        return user.name == service_account_username(namespace, name)
    name = (subject.get(kind.lower()) or {}).get("name")
    return name == _ALL or name in ((user.name,) if kind == "User" else user.groups)


def _resource_rule_matches(rule: StoredObject, info: RequestInfo) -> bool:
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
