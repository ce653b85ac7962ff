"""Provides the APIServices for discovery: group, version and priorities, and the resources of other servers.

Invariant: `state` changes whenever something in discovery changes; reading it does not read any object.

Specified by: k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper (SortedByGroupAndVersion);
pkg/controlplane/apiserver/aggregator.go (DefaultGenericAPIServicePriorities).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, Protocol

from fakekube.apimachinery import data
from fakekube.apimachinery.codecs.document import Document
from fakekube.store import Bucket

_PATH = "/apis/apiregistration.k8s.io/v1/apiservices"
_AGGREGATOR = ("apiregistration.k8s.io", "v1")


class GroupVersionPriority(NamedTuple):
    """A group version with its priorities; greater ones come first."""

    group: str
    version: str
    group_priority: int
    version_priority: int


class RemoteVersions(Protocol):
    """The interface of the aggregator: the discovery of other servers."""

    @property
    def state(self) -> object: ...

    def versions(self) -> Mapping[tuple[str, str], dict[str, Any]]:
        """Returns the versions of other servers as in the aggregated document, by group and version."""


class Registrations:
    """The APIServices of one cluster."""

    def __init__(self, bucket: Bucket[Document], remotes: RemoteVersions) -> None:
        self._bucket = bucket
        self._remotes = remotes

    @property
    def state(self) -> tuple[int, object]:
        """A value that is equal as long as nothing changes."""
        return self._bucket.end, self._remotes.state

    def services(self) -> tuple[GroupVersionPriority, ...]:
        """Returns all APIServices, sorted by group priority."""
        found = [(record.key, _priority(record.value.object["spec"])) for record in self._bucket.page().records]
        return tuple(entry for _, entry in sorted(found, key=lambda one: (-one[1].group_priority, one[0])))

    def unavailable(self) -> Mapping[str, bool]:
        """Returns the names of all APIServices, and whether each is unavailable."""
        objects = [record.value.object for record in self._bucket.page().records]
        return {obj["metadata"]["name"]: _is_unavailable(obj) for obj in objects}

    def remotes(self) -> Mapping[tuple[str, str], dict[str, Any]]:
        """See `RemoteVersions.versions`."""
        return self._remotes.versions()


@cache
def builtin_priorities(version: str) -> Mapping[tuple[str, str], GroupVersionPriority]:
    """Returns the default priorities of the group versions of this server, independent of its APIServices."""
    found = [_priority(obj["spec"]) for obj in data.minor(version).bootstrap.get(_PATH, ())]
    first = GroupVersionPriority(*_AGGREGATOR, 20001, 0)
    return {(entry.group, entry.version): entry for entry in [*found, first]}


def _priority(spec: Mapping[str, Any]) -> GroupVersionPriority:
    return GroupVersionPriority(
        spec.get("group", ""), spec["version"], spec.get("groupPriorityMinimum", 0), spec.get("versionPriority", 0)
    )


def _is_unavailable(obj: Mapping[str, Any]) -> bool:
    conditions = obj.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Available" and condition["status"] == "False" for condition in conditions)
