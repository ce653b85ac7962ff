"""The namespace controller: deletes the contents of a terminating namespace, then its finalizer.

Pods are deleted first: nothing else is deleted while pods remain. Then all objects of all other namespaced resources are deleted.
Remaining objects, with finalizers or grace periods, are reported in the namespace's conditions. When none remain, the finalizer
`kubernetes` is removed, and with it the namespace. The namespace also remains while an aggregated API is not available, because
its contents are unknown.

The real controller tries again after some seconds; this one when something in the namespace changes.

Invariant: the finalizer `kubernetes` is not removed while an object of the namespace is known, or its contents are not known.

Specified by: pkg/controller/namespace/deletion/{namespaced_resources_deleter,status_condition_utils}.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from fakekube.apis.core.namespaces import FINALIZER
from fakekube.apis.rest.resource import Resource
from fakekube.apis.validation.objectmeta import find_condition
from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.client.client import DiscoveredResource, RESTMapping
from fakekube.controllers.controller_utils import is_pod_terminal, parse_time
from fakekube.controllers.reconciler import Key, Reconciler

#: The paces that pass before the contents of a namespace are deleted: a second with that of `fakekube serve`. The real controller
#: waits five (namespaceDeletionGracePeriod), in which `kubectl delete -f` reaches what comes after the namespace in its files.
GRACE_IN_PACES: Final = 20.0
APISERVICES: Final = "apiservices.apiregistration.k8s.io"
#: Seconds after which remaining objects without finalizers are looked for again.
UNEXPECTED_PERIOD: Final = 60.0
#: Seconds after which remaining objects of other API servers are looked for again.
AGGREGATED_PERIOD: Final = 8.0


@dataclass(slots=True)
class Remaining:
    """The objects that remain in a namespace: their number by resource, and the finalizers on them."""

    resources: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    """Why contents could not be deleted."""
    retry: bool = False
    """Whether a request was rejected, so that the namespace is tried again."""
    discovery_failure: str = ""
    """Which APIs cannot be discovered; "" if all can."""


class NamespaceController(Reconciler):
    """Deletes namespaces."""

    name = "namespace-controller"
    watches = ("namespaces",)

    def __init__(self) -> None:
        self._terminating: set[str] = set()

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
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
        if key.name in self._terminating:
            return (key,)
        if self.context.deletion_grace:
            self.requeue_after(key, self.context.deletion_grace)
            return ()
        pace = 0.0 if self.clock.held else self.context.services.pace
        if pace:
            self.requeue_within_settle(key, pace * GRACE_IN_PACES)
            return ()
        return (key,)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        metadata = obj["metadata"]
        return obj is old or "deletionTimestamp" in metadata or resource == APISERVICES

    def reconcile(self, key: Key) -> None:
        namespace = self.client.get("namespaces", key.name)
        if "deletionTimestamp" not in namespace["metadata"] or not namespace["spec"].get("finalizers"):
            return
        self._terminating.add(key.name)
        remaining = Remaining(discovery_failure=self._get_discovery_failure())
        pods = self._delete_contents(namespace, self.client.resource("pods"), remaining)
        if pods:
            self._update_conditions(namespace, replace(remaining, resources=Counter(), finalizers=Counter()))
            return
        for resource in self.client.namespaced_resources():
            if {"delete", "list"} <= resource.verbs and resource.group_resource != "pods":
                self._delete_contents(namespace, resource, remaining)
        if any(service["spec"].get("service") for service in self.cache.list(APISERVICES)):
            for aggregated in self.client.aggregated_namespaced_resources():
                if {"delete", "list"} <= aggregated.verbs:
                    self._delete_aggregated(namespace, aggregated, remaining)
        self._update_conditions(namespace, remaining)
        if remaining.retry:
            self.requeue_rate_limited(key)
        if not remaining.resources and not remaining.errors and not remaining.discovery_failure:
            self._remove_finalizer(key.name)

    # --- Contents -----------------------------------------------------------------------------------------------------

    def _get_discovery_failure(self) -> str:
        """Returns the discovery error for aggregated APIs that are not available; "" if all are."""
        failed = {}
        for service in self.cache.list(APISERVICES):
            spec = service["spec"]
            available = find_condition(service.get("status") or {}, "Available")
            if spec.get("service") and (available is None or available["status"] != "True"):
                version = f"{spec.get('group', '')}/{spec['version']}"
                failed[version] = f"{version}: stale GroupVersion discovery: {version}"
        if not failed:
            return ""
        self.also_watch(APISERVICES)
        problems = ", ".join(failed[version] for version in sorted(failed))
        problem = f"unable to retrieve the complete list of server APIs: {problems}"
        return f"Discovery failed for some groups, {len(failed)} failing: {problem}"

    def _delete_contents(self, namespace: Object, resource: Resource, remaining: Remaining) -> int:
        """Deletes the objects of one resource. Returns how many remain, and adds them to `remaining`."""
        name, namespace_name = resource.group_resource, namespace["metadata"]["name"]
        if not self.cache.list(name, namespace_name):
            return 0
        self.also_watch(name)
        try:
            grace = self._estimate_grace(namespace, resource)
            self._delete_all(resource, namespace_name)
            items = self._list_objects(resource, namespace_name)
        except ApiError as error:
            remaining.errors.append(str(error))
            remaining.retry = True
            return 0
        finalizers = [finalizer for item in items for finalizer in item["metadata"].get("finalizers") or ()]
        remaining.finalizers.update(finalizers)
        if items:
            remaining.resources[f"{resource.plural}.{resource.group}"] += len(items)
        if items and not finalizers:
            self._wait_for_deletion(namespace_name, resource, grace, remaining)
        return len(items)

    def _delete_aggregated(self, namespace: Object, resource: DiscoveredResource, remaining: Remaining) -> None:
        """Deletes the objects of a resource of another API server. No change wakes this controller when they are gone."""
        name = namespace["metadata"]["name"]
        try:
            if self._list_objects(resource, name):
                self._delete_all(resource, name)
            items = self._list_objects(resource, name)
        except ApiError as error:
            remaining.errors.append(str(error))
            remaining.retry = True
            return
        remaining.finalizers.update(one for item in items for one in item["metadata"].get("finalizers") or ())
        if items:
            remaining.resources[f"{resource.plural}.{resource.group}"] += len(items)
            self.requeue_after(Key("", name), AGGREGATED_PERIOD)

    def _wait_for_deletion(self, namespace: str, resource: Resource, grace: float, remaining: Remaining) -> None:
        """Requeues the namespace for objects without finalizers: at the end of their grace period, or after an error."""
        if grace > 0:
            self.requeue_after(Key("", namespace), grace)
            return
        where = f"namespace: {namespace} for gvr: {resource.group}/{resource.version}, Resource={resource.plural}"
        remaining.errors.append(f"unexpected items still remain in {where}")
        self.requeue_after(Key("", namespace), UNEXPECTED_PERIOD)

    def _estimate_grace(self, namespace: Object, resource: Resource) -> float:
        """Returns the seconds until the longest grace period of its pods ends, counted from the namespace's deletion."""
        if resource.group_resource != "pods":
            return 0.0
        pods = self._list_objects(resource, namespace["metadata"]["name"])
        grace = max(
            (float(pod["spec"].get("terminationGracePeriodSeconds") or 0) for pod in pods if not is_pod_terminal(pod)),
            default=0.0,
        )
        deleted = parse_time(namespace["metadata"]["deletionTimestamp"])
        return (deleted + timedelta(seconds=grace) - self.clock.now()).total_seconds()

    def _delete_all(self, resource: Resource | DiscoveredResource, namespace: str) -> None:
        """Requests the deletion of all objects of a resource (deleteAllContentForGroupVersionResource). Raises ApiError."""
        options = {"propagationPolicy": "Background"}
        if "deletecollection" in resource.verbs:
            self.client.call("DELETE", self.client.path(resource, namespace), options)
            return
        for item in self._list_objects(resource, namespace):
            try:
                self.client.call("DELETE", self.client.path(resource, namespace, item["metadata"]["name"]), options)
            except ApiError as error:
                if error.code not in (404, 405):
                    raise

    def _list_objects(self, resource: RESTMapping, namespace: str) -> list[Object]:
        items: list[Object] = self.client.call("GET", self.client.path(resource, namespace))["items"]
        return items

    # --- The namespace ------------------------------------------------------------------------------------------------

    def _update_conditions(self, namespace: Object, remaining: Remaining) -> None:
        """Writes the conditions, if they have changed."""
        status = namespace.get("status", {})
        old = {condition["type"]: condition for condition in status.get("conditions", ())}
        new = {condition["type"]: condition for condition in _deletion_conditions(remaining)}
        merged = [_with_transition_time(old.get(name), condition, self.client.now()) for name, condition in new.items()]
        if all(old.get(condition["type"]) == condition for condition in merged):
            return
        conditions = [condition for name, condition in old.items() if name not in new] + merged
        try:
            self.client.update({**namespace, "status": {**status, "conditions": conditions}}, subresource="status")
        except ApiError as error:
            if error.reason != "Conflict":
                raise

    def _remove_finalizer(self, name: str) -> None:
        namespace = self.client.get("namespaces", name)
        kept = sorted({one for one in namespace["spec"].get("finalizers", ()) if one != FINALIZER})
        self.client.update({**namespace, "spec": {"finalizers": kept}}, subresource="finalize")


def _deletion_conditions(remaining: Remaining) -> list[dict[str, str]]:
    """Returns the conditions of a terminating namespace, without lastTransitionTime (okCondition, makeFailureConditions)."""
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
        _deletion_condition(
            "NamespaceDeletionDiscoveryFailure",
            "DiscoveryFailed",
            remaining.discovery_failure,
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        _deletion_condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            "",
            "",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        _deletion_condition(
            "NamespaceDeletionContentFailure",
            "ContentDeletionFailed",
            failures,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        _deletion_condition(
            "NamespaceContentRemaining", "SomeResourcesRemain", content, "ContentRemoved", "All content successfully removed"
        ),
        _deletion_condition(
            "NamespaceFinalizersRemaining",
            "SomeFinalizersRemain",
            finalizers,
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ]


def _deletion_condition(type_: str, bad_reason: str, bad_message: str, good_reason: str, good_message: str) -> dict[str, str]:
    """Returns a condition that is True, with the bad reason, if there is a bad message."""
    if bad_message:
        return {"type": type_, "status": "True", "reason": bad_reason, "message": bad_message}
    return {"type": type_, "status": "False", "reason": good_reason, "message": good_message}


def _with_transition_time(old: Mapping[str, str] | None, new: dict[str, str], now: str) -> dict[str, str]:
    """Returns the condition with lastTransitionTime."""
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
