"""Implements the cluster access of strategies and admission (`apis.rest.cluster_access.ClusterAccess`) on the store.

Invariant: what it returns is stored and must not be changed. A write is a compare-and-set; `update` repeats it after a conflict.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.data import ADMISSION_REGISTRATION
from fakekube.apimachinery.errors import status
from fakekube.apimachinery.features import Emulation
from fakekube.apis.rest.cluster_access import AdmissionSnapshot, Decision, Recorded, ServiceRanges
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apiserver.registry.generic import field_manager
from fakekube.apiserver.registry.generic.writes import same_object, stamp_revision
from fakekube.apiserver.registry.scope import Settings
from fakekube.base.objects import Object
from fakekube.net.streams import subscribe_weakly
from fakekube.store import Bucket, Conflict, Store

_LIMIT_RANGES = ("", "limitranges")
_RESOURCE_QUOTAS = ("", "resourcequotas")
_PRIORITY_CLASSES = ("scheduling.k8s.io", "priorityclasses")
_WEBHOOKS_OR_POLICIES = (
    (ADMISSION_REGISTRATION, "mutatingwebhookconfigurations"),
    (ADMISSION_REGISTRATION, "validatingwebhookconfigurations"),
    (ADMISSION_REGISTRATION, "mutatingadmissionpolicybindings"),
    (ADMISSION_REGISTRATION, "validatingadmissionpolicybindings"),
)
#: The resources that an AdmissionSnapshot tells of.
_CONFIGURATION = (_LIMIT_RANGES, _RESOURCE_QUOTAS, _PRIORITY_CLASSES, *_WEBHOOKS_OR_POLICIES)


class AccessControl(Protocol):
    """The interface to authentication and authorization (`apiserver/auth/`)."""

    @property
    def issuer(self) -> str: ...

    @property
    def authority(self) -> str: ...

    def authorize(self, user: str, groups: Sequence[str], attributes: dict[str, Any]) -> tuple[bool, str]: ...

    def decide(self, spec: Mapping[str, Any]) -> Decision: ...

    def authenticate(self, token: str, audiences: Sequence[str]) -> dict[str, Any]: ...

    def rules(self, user: str, groups: Sequence[str], namespace: str) -> dict[str, Any]: ...

    def rbac_rules(self, user: str, groups: Sequence[str], namespace: str) -> tuple[Sequence[Mapping[str, Any]], str]: ...

    def sign(self, claims: dict[str, Any]) -> str: ...


class StoreAccess:
    """Implements `apis.rest.cluster_access.ClusterAccess`, which documents the methods."""

    def __init__(self, store: Store[Document], registry: Registry, settings: Settings, access: AccessControl) -> None:
        self._store = store
        self._registry = registry
        self._settings = settings
        self._access = access
        self.others_work: Callable[[], bool] = lambda: False
        """Reports whether controllers run in another thread, so that callers can wait for their writes."""
        self.components: Callable[[], Container[str]] = tuple
        """Returns the names of the components that run beside the API server."""
        self.pace = 0.0
        """The least time of finalizing; see `Cluster.pace`."""
        self._builtins: dict[tuple[str, str], tuple[Resource, Bucket[Document]]] = {}
        """Cached built-in resources with their buckets, which every write needs."""
        self._state: object | None = None
        """Another object after every change of what an AdmissionSnapshot tells of; None: the changes are not observed yet.

        No count: of two threads that count at the same time, one can write a number that was there before.
        """
        self._snapshot: tuple[object, AdmissionSnapshot] = (None, AdmissionSnapshot())
        """The state before the last snapshot was taken, and the snapshot."""

    def _find_bucket(self, group: str, plural: str) -> tuple[Resource, Bucket[Document]]:
        """Returns a resource with its bucket. Raises LookupError if it is not served."""
        found = self._builtins.get((group, plural))
        if found is None:
            resource = self._registry.any_version(group, plural)
            if resource is None:
                raise LookupError(f"{plural}.{group} is not served")
            found = resource, self._store.bucket(resource.bucket)
            if not resource.custom:
                self._builtins[group, plural] = found
        return found

    def _is_served(self, group: str, plural: str) -> bool:
        """Reports whether a resource is served: the minor or --runtime-config may be without it."""
        return (group, plural) in self._builtins or self._registry.any_version(group, plural) is not None

    def get(self, group: str, plural: str, namespace: str, name: str) -> Object | None:
        found = self._builtins.get((group, plural))
        if found is None:
            if not self._is_served(group, plural):
                return None
            found = self._find_bucket(group, plural)
        resource, bucket = found
        record = bucket.get(f"{namespace}/{name}" if resource.namespaced else name)
        return record.value.object if record else None

    def expect(self, group: str, plural: str, namespace: str, name: str, seconds: float) -> Object | None:
        found = self.get(group, plural, namespace, name)
        if found is not None or not self.others_work():
            return found
        bucket, changed = self._find_bucket(group, plural)[1], threading.Event()
        bucket.subscribe(changed.set)
        end = time.monotonic() + seconds
        try:
            while (found := self.get(group, plural, namespace, name)) is None and changed.wait(max(end - time.monotonic(), 0.0)):
                changed.clear()
        finally:
            bucket.unsubscribe(changed.set)
        return found

    def list(self, group: str, plural: str, namespace: str = "") -> Iterator[Object]:
        if not self._is_served(group, plural):
            return iter(())
        resource, bucket = self._find_bucket(group, plural)
        if not bucket.has_keys():  # each write asks for quotas and limits, and most clusters have none
            return iter(())
        return (record.value.object for record in bucket.page(resource.key_prefix(namespace)).records)

    def update(
        self,
        group: str,
        plural: str,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        *,
        recorded: Recorded | None = None,
    ) -> Object:
        resource, bucket = self._find_bucket(group, plural)
        key = resource.key(namespace, name)
        while True:
            record = bucket.get(key)
            if record is None:
                raise status.not_found(group, plural, name)
            old = record.value.object
            new = change(old)
            if new is old:
                return old
            if recorded is not None:
                new = field_manager.record_write(self._registry, resource, old, new, recorded)
            final = resource.to_stored_form(new, old)
            if same_object(final, record.value):
                return old
            try:
                committed = bucket.commit(key, record.revision, partial(stamp_revision, final))
                record.value.supersede()
                return committed.value.object
            except Conflict:
                continue

    def create(self, group: str, plural: str, namespace: str, obj: Object) -> Object:
        resource, bucket = self._find_bucket(group, plural)
        name = obj["metadata"]["name"]
        placed = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "0"}}
        final = resource.to_stored_form(placed)
        try:
            return bucket.commit(resource.key(namespace, name), 0, partial(stamp_revision, final)).value.object
        except Conflict:
            raise status.already_exists(group, plural, name) from None

    def remove(self, group: str, plural: str, namespace: str, name: str) -> None:
        resource, bucket = self._find_bucket(group, plural)
        try:
            bucket.commit(resource.key(namespace, name), None, None)
        except Conflict:
            return

    def reserve(self, pool: str, value: str) -> bool:
        try:
            self._store.bucket(pool).commit(value, 0, lambda _revision: Document({}))
        except Conflict:
            return False
        return True

    def is_allocated(self, pool: str, value: str) -> bool:
        return self._store.bucket(pool).get(value) is not None

    def release(self, pool: str, value: str) -> None:
        if self.is_allocated(pool, value):
            self._store.bucket(pool).commit(value, None, None)

    def has_any(self, group: str, plural: str) -> bool:
        return self._is_served(group, plural) and self._find_bucket(group, plural)[1].has_keys()

    def admission_snapshot(self) -> AdmissionSnapshot:
        if self._state is None:
            buckets = [self._find_bucket(*key)[1] for key in _CONFIGURATION if self._registry.any_version(*key)]
            subscribe_weakly(self, StoreAccess._replace_state, buckets)
            self._replace_state()
        as_of, snapshot = self._snapshot
        if as_of is not (state := self._state):
            made = self._make_snapshot()
            snapshot = snapshot if made == snapshot else made  # what depends on it is found by its identity
            self._snapshot = state, snapshot
        return snapshot

    def _replace_state(self) -> None:
        self._state = object()

    def _make_snapshot(self) -> AdmissionSnapshot:
        return AdmissionSnapshot(
            webhooks_or_policies=any(self._registry.any_version(*key) and self.has_any(*key) for key in _WEBHOOKS_OR_POLICIES),
            limit_ranges=self.has_any(*_LIMIT_RANGES),
            resource_quotas=self.has_any(*_RESOURCE_QUOTAS),
            default_priority_class=any(item.get("globalDefault") for item in self.list(*_PRIORITY_CLASSES)),
        )

    def last_change(self, group: str, plural: str) -> int:
        if not self._is_served(group, plural):
            return 0
        return self._find_bucket(group, plural)[1].newest

    def resource_of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        return self._registry.of_kind(group, version, kind)

    def equivalents(self, resource: Resource, subresource: str) -> Sequence[Resource]:
        found = self._registry.sharing_bucket(resource)
        return [other for other in found if other.subresources.get(subresource)] if subresource else found

    @property
    def emulation(self) -> Emulation:
        return self._settings.emulation

    def enabled(self, gate: str) -> bool:
        return self._settings.emulation.enabled(gate)

    @property
    def service_ranges(self) -> ServiceRanges:
        return self._settings.service_ranges

    def authorize(self, user: str, groups: Sequence[str], attributes: dict[str, Any]) -> tuple[bool, str]:
        return self._access.authorize(user, groups, attributes)

    def decide(self, spec: Mapping[str, Any]) -> Decision:
        return self._access.decide(spec)

    def authenticate(self, token: str, audiences: Sequence[str]) -> dict[str, Any]:
        return self._access.authenticate(token, audiences)

    def rules(self, user: str, groups: Sequence[str], namespace: str) -> dict[str, Any]:
        return self._access.rules(user, groups, namespace)

    def rbac_rules(self, user: str, groups: Sequence[str], namespace: str) -> tuple[Sequence[Mapping[str, Any]], str]:
        return self._access.rbac_rules(user, groups, namespace)

    def sign(self, claims: dict[str, Any]) -> str:
        return self._access.sign(claims)

    @property
    def issuer(self) -> str:
        return self._access.issuer

    @property
    def certificate_authority(self) -> str:
        return self._access.authority
