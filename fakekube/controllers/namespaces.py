"""A namespace that is being deleted is emptied, then let go.

Pods go first: nothing else is deleted while pods remain. Then all objects of all other namespaced resources are deleted;
what remains (finalizers, grace periods) is told in the namespace's conditions and watched, and when nothing remains the
finalizer `kubernetes` is taken off, and the namespace ends. It stays, too, while an aggregated API does not answer, since
nobody knows what of it is in the namespace.

Specified by: pkg/controller/namespace/deletion/{namespaced_resources_deleter,status_condition_utils}.go. That controller
looks again after some seconds; this one when something in the namespace changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fakekube.client import ApiError
from fakekube.controllers.reconciler import Key, Object, Reconciler
from fakekube.registry.resource import Resource

__all__ = ["NamespaceController"]

FINALIZER = "kubernetes"
APISERVICES = "apiservices.apiregistration.k8s.io"
#: Seconds after which an object that nothing holds is looked for again.
UNEXPECTED_PERIOD = 60.0


@dataclass(slots=True)
class Remaining:
    """What is still in a namespace: instances by resource, and finalizers on them."""

    resources: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    """Why content could not be deleted."""
    refused: bool = False
    """The API has refused to delete something."""
    unavailable: str = ""
    """Which APIs cannot be discovered."""


class NamespaceController(Reconciler):
    """Empties and ends namespaces."""

    name = "namespace-controller"
    watches = ("namespaces",)

    def __init__(self) -> None:
        self._terminating: set[str] = set()

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        if resource == APISERVICES:
            return [Key("", name) for name in self._terminating]
        if resource != "namespaces":
            namespace = metadata.get("namespace", "")
            return (Key("", namespace),) if namespace in self._terminating else ()
        if event_type == "DELETED":
            self._terminating.discard(metadata["name"])
            return ()
        if "deletionTimestamp" not in metadata:
            return ()
        key = Key("", metadata["name"])
        if self.context.deletion_grace and key.name not in self._terminating:
            self.requeue_after(key, self.context.deletion_grace)
            return ()
        return (key,)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        metadata = obj["metadata"]
        return obj is old or "deletionTimestamp" in metadata or resource == APISERVICES

    def reconcile(self, key: Key) -> None:
        namespace = self.client.get("namespaces", key.name)
        if "deletionTimestamp" not in namespace["metadata"] or not namespace["spec"].get("finalizers"):
            return
        self._terminating.add(key.name)
        remaining = Remaining(unavailable=self._unavailable())
        pods = self._empty(namespace, self.client.resource("pods"), remaining)
        if pods:
            self._report(namespace, replace(remaining, resources=Counter(), finalizers=Counter()))
            return
        for resource in self.client.namespaced_resources():
            if {"delete", "list"} <= resource.verbs and resource.group_resource != "pods":
                self._empty(namespace, resource, remaining)
        self._report(namespace, remaining)
        if remaining.refused:
            self.requeue_rate_limited(key)
        if not remaining.resources and not remaining.errors and not remaining.unavailable:
            self._finalize(key.name)

    # ------------------------------------------------------------ content

    def _unavailable(self) -> str:
        """What discovery says of the aggregated APIs that do not answer; "" if all do."""
        failed = {}
        for service in self.cache.list(APISERVICES):
            spec = service["spec"]
            conditions = {one["type"]: one["status"] for one in service.get("status", {}).get("conditions") or ()}
            if spec.get("service") and conditions.get("Available") != "True":
                version = f"{spec.get('group', '')}/{spec['version']}"
                failed[version] = f"{version}: stale GroupVersion discovery: {version}"
        if not failed:
            return ""
        self.also_watch(APISERVICES)
        problems = ", ".join(failed[version] for version in sorted(failed))
        problem = f"unable to retrieve the complete list of server APIs: {problems}"
        return f"Discovery failed for some groups, {len(failed)} failing: {problem}"

    def _empty(self, namespace: Object, resource: Resource, remaining: Remaining) -> int:
        """Delete what a namespace has of a resource. Returns how much of it remains, and notes it down."""
        name, place = resource.group_resource, namespace["metadata"]["name"]
        if not self.cache.list(name, place):
            return 0
        self.also_watch(name)
        try:
            grace = self._grace_left(namespace, resource)
            self._delete_all(resource, place)
            items = self._items(resource, place)
        except ApiError as error:
            remaining.errors.append(str(error))
            remaining.refused = True
            return 0
        finalizers = [finalizer for item in items for finalizer in item["metadata"].get("finalizers") or ()]
        remaining.finalizers.update(finalizers)
        if items:
            remaining.resources[f"{resource.plural}.{resource.group}"] += len(items)
        if items and not finalizers:
            self._expect(place, resource, grace, remaining)
        return len(items)

    def _expect(self, namespace: str, resource: Resource, grace: float, remaining: Remaining) -> None:
        """Something remains that no finalizer holds: its grace period does, or it should not be there."""
        if grace > 0:
            self.requeue_after(Key("", namespace), grace)
            return
        where = f"namespace: {namespace} for gvr: {resource.group}/{resource.version}, Resource={resource.plural}"
        remaining.errors.append(f"unexpected items still remain in {where}")
        self.requeue_after(Key("", namespace), UNEXPECTED_PERIOD)

    def _grace_left(self, namespace: Object, resource: Resource) -> float:
        """The seconds that pods may still take to end, of the longest grace period from the namespace's deletion on."""
        if resource.group_resource != "pods":
            return 0.0
        pods = self._items(resource, namespace["metadata"]["name"])
        grace = max(
            (
                float(pod["spec"].get("terminationGracePeriodSeconds") or 0)
                for pod in pods
                if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
            ),
            default=0.0,
        )
        deleted = datetime.fromisoformat(namespace["metadata"]["deletionTimestamp"])
        return (deleted + timedelta(seconds=grace) - self.clock.now()).total_seconds()

    def _delete_all(self, resource: Resource, namespace: str) -> None:
        options = {"propagationPolicy": "Background"}
        if "deletecollection" in resource.verbs:
            self.client.call("DELETE", self.client.path(resource, namespace), options)
            return
        for item in self._items(resource, namespace):
            try:
                self.client.call("DELETE", self.client.path(resource, namespace, item["metadata"]["name"]), options)
            except ApiError as error:
                if error.code not in (404, 405):
                    raise

    def _items(self, resource: Resource, namespace: str) -> list[Object]:
        items: list[Object] = self.client.call("GET", self.client.path(resource, namespace))["items"]
        return items

    # ------------------------------------------------------------ the namespace

    def _report(self, namespace: Object, remaining: Remaining) -> None:
        """Bring the conditions up to date."""
        status = namespace.get("status", {})
        old = {condition["type"]: condition for condition in status.get("conditions", ())}
        wanted = {condition["type"]: condition for condition in _conditions(remaining)}
        merged = [_merged(old.get(name), condition, self.client.now()) for name, condition in wanted.items()]
        if all(old.get(condition["type"]) == condition for condition in merged):
            return
        conditions = [condition for name, condition in old.items() if name not in wanted] + merged
        try:
            self.client.update({**namespace, "status": {**status, "conditions": conditions}}, subresource="status")
        except ApiError as error:
            if error.reason != "Conflict":
                raise

    def _finalize(self, name: str) -> None:
        namespace = self.client.get("namespaces", name)
        kept = sorted({one for one in namespace["spec"].get("finalizers", ()) if one != FINALIZER})
        self.client.update({**namespace, "spec": {"finalizers": kept}}, subresource="finalize")


def _conditions(remaining: Remaining) -> list[dict[str, str]]:
    content = finalizers = failures = ""
    if remaining.errors:
        errors = ", ".join(sorted(remaining.errors))
        failures = f"Failed to delete all resource types, {len(remaining.errors)} remaining: {errors}"
    if remaining.resources:
        parts = [f"{name} has {count} resource instances" for name, count in sorted(remaining.resources.items())]
        content = f"Some resources are remaining: {', '.join(parts)}"
    if remaining.finalizers:
        parts = [f"{name} in {count} resource instances" for name, count in sorted(remaining.finalizers.items())]
        finalizers = f"Some content in the namespace has finalizers remaining: {', '.join(parts)}"
    return [
        _condition(
            "NamespaceDeletionDiscoveryFailure",
            "DiscoveryFailed",
            remaining.unavailable,
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        _condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            "",
            "",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        _condition(
            "NamespaceDeletionContentFailure",
            "ContentDeletionFailed",
            failures,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        _condition(
            "NamespaceContentRemaining", "SomeResourcesRemain", content, "ContentRemoved", "All content successfully removed"
        ),
        _condition(
            "NamespaceFinalizersRemaining",
            "SomeFinalizersRemain",
            finalizers,
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ]


def _condition(kind: str, bad_reason: str, bad_message: str, good_reason: str, good_message: str) -> dict[str, str]:
    if bad_message:
        return {"type": kind, "status": "True", "reason": bad_reason, "message": bad_message}
    return {"type": kind, "status": "False", "reason": good_reason, "message": good_message}


def _merged(old: Mapping[str, str] | None, new: dict[str, str], now: str) -> dict[str, str]:
    """The condition with the time of its last change."""
    if old is not None and all(old.get(name) == value for name, value in new.items()):
        return dict(old)
    same_status = old is not None and old["status"] == new["status"]
    time = old["lastTransitionTime"] if old is not None and same_status else now
    return {
        "type": new["type"],
        "status": new["status"],
        "lastTransitionTime": time,
        "reason": new["reason"],
        "message": new["message"],
    }
