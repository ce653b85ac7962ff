"""The ResourceClaim controller: creates the claims of pods from templates, and releases claims that no pod uses.

It does not allocate devices, which the scheduler does.

Specified by: pkg/controller/resourceclaim/controller.go, k8s.io/dynamic-resource-allocation/resourceclaim.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fakekube.base.objects import Object, StoredObject
from fakekube.controllers.client import ApiError
from fakekube.controllers.controller_utils import is_pod_terminal
from fakekube.controllers.informers import get_controller_of, is_controlled_by
from fakekube.controllers.reconciler import Key, Reconciler

CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
FIELD_MANAGER: Final = "ResourceClaimController"
#: The maximum length of a generated name, without the random suffix.
MAX_BASE: Final = 57

_POD, _CLAIM = "pod:", "claim:"


class ClaimError(Exception):
    """The claim of a pod cannot be created."""


class ResourceClaimController(Reconciler):
    """Creates and releases claims. Keys are pods and claims, with a prefix of the name."""

    name = "resourceclaim-controller"
    component = "resource_claim"
    watches = ("pods", CLAIMS, TEMPLATES)

    @staticmethod
    def concerns(resource: str, obj: StoredObject, old: StoredObject | None) -> bool:
        return resource != "pods" or bool(obj["spec"].get("resourceClaims"))

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        if resource == "pods":
            return self._keys_of_pod(obj, deleted=event_type == "DELETED") if obj["spec"].get("resourceClaims") else ()
        if resource == TEMPLATES:
            pods = self.cache.list("pods", namespace) if event_type != "DELETED" else ()
            return [Key(namespace, _POD + pod["metadata"]["name"]) for pod in pods if metadata["name"] in _templates_of(pod)]
        owners = [Key(namespace, _POD + one["name"]) for one in metadata.get("ownerReferences") or () if one["kind"] == "Pod"]
        return [Key(namespace, _CLAIM + metadata["name"]), *owners]

    def _keys_of_pod(self, pod: StoredObject, *, deleted: bool) -> list[Key]:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        found = [] if deleted else [Key(namespace, _POD + name)]
        if deleted or is_pod_terminal(pod):
            claims = (claim_name(pod, one) for one in pod["spec"]["resourceClaims"])
            found += [Key(namespace, _CLAIM + claim) for claim in claims if claim]
        return found

    def reconcile(self, key: Key) -> None:
        if key.name.startswith(_CLAIM):
            claim = self.cache.get(CLAIMS, key.namespace, key.name.removeprefix(_CLAIM))
            if claim is not None:
                self._sync_claim(claim)
            return
        pod = self.cache.get("pods", key.namespace, key.name.removeprefix(_POD))
        if pod is not None and "deletionTimestamp" not in pod["metadata"] and not is_pod_terminal(pod):
            self._sync_pod(key, pod)

    # --- Pods ---------------------------------------------------------------------------------------------------------

    def _sync_pod(self, key: Key, pod: Object) -> None:
        created = {}
        for entry in pod["spec"].get("resourceClaims") or ():
            try:
                name = self._handle_claim(pod, entry)
            except (ApiError, ClaimError) as error:
                message = f"PodResourceClaim {entry['name']}: {error}"
                self.recorder.event(pod, "Warning", "FailedResourceClaimCreation", message)
                self.requeue_rate_limited(key)
                return
            if name:
                created[entry["name"]] = name
        if created:
            statuses = [{"name": name, "resourceClaimName": claim} for name, claim in created.items()]
            metadata = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
            applied = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"resourceClaimStatuses": statuses}}
            self.client.apply(applied, field_manager=FIELD_MANAGER, force=True, subresource="status")
        elif pod["spec"].get("nodeName"):
            self._reserve_for_pod(pod)

    def _handle_claim(self, pod: Object, entry: Object) -> str:
        """Creates the claim for an entry of spec.resourceClaims (handleClaim).

        Returns:
            the name to write into the pod's status; "" if it is there already, or the pod needs no claim.
        """
        template = entry.get("resourceClaimTemplateName")
        if template is None:
            return ""
        namespace, name = pod["metadata"]["namespace"], claim_name(pod, entry)
        if name == "":
            return ""
        known = self.cache.get(CLAIMS, namespace, name) if name else None
        if known is not None and is_controlled_by(known, pod):
            return ""
        for claim in self.cache.list(CLAIMS, namespace):
            annotations = claim["metadata"].get("annotations") or {}
            if is_controlled_by(claim, pod) and annotations.get(ANNOTATION) == entry["name"]:
                return str(claim["metadata"]["name"])
        found = self.cache.get(TEMPLATES, namespace, template)
        if found is None:
            absent = f'resourceclaimtemplate.resource.k8s.io "{template}" not found'
            raise ClaimError(f'resource claim template "{template}": {absent}')
        return str(self.client.create(_new_claim(pod, entry, found))["metadata"]["name"])

    def _reserve_for_pod(self, pod: Object) -> None:
        """Reserves allocated claims for a pod that was assigned to a node without the scheduler (reserveForPod)."""
        metadata = pod["metadata"]
        for entry in pod["spec"].get("resourceClaims") or ():
            name = claim_name(pod, entry)
            claim = self.cache.get(CLAIMS, metadata["namespace"], name) if name else None
            status = (claim or {}).get("status") or {}
            users = status.get("reservedFor") or []
            if claim is None or "allocation" not in status or any(one["uid"] == metadata["uid"] for one in users):
                continue
            users = [*users, {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}]
            self.client.update({**claim, "status": {**status, "reservedFor": users}}, subresource="status")

    # --- Claims -------------------------------------------------------------------------------------------------------

    def _sync_claim(self, claim: Object) -> None:
        metadata, status = claim["metadata"], claim.get("status") or {}
        users = status.get("reservedFor") or []
        remaining = [one for one in users if self._is_in_use(metadata["namespace"], one)]
        protected = FINALIZER in metadata.get("finalizers", ())
        if len(remaining) < len(users):
            changed: dict[str, Any] = {**status, "reservedFor": remaining}
            if not remaining and protected:
                changed.pop("allocation", None)
            claim = self.client.update({**claim, "status": changed}, subresource="status")
            if protected and "allocation" not in (claim.get("status") or {}):
                self._remove_finalizer(claim)
        elif protected and "deletionTimestamp" in metadata and not remaining:
            if "allocation" in status:
                deallocated = {name: value for name, value in status.items() if name != "allocation"}
                claim = self.client.update({**claim, "status": deallocated}, subresource="status")
            self._remove_finalizer(claim)
        if not remaining:
            self._delete_if_pod_is_done(claim)

    def _is_in_use(self, namespace: str, user: Object) -> bool:
        if user.get("apiGroup") or user.get("resource") != "pods":
            return True
        pod = self.cache.get("pods", namespace, user["name"])
        return pod is not None and pod["metadata"]["uid"] == user["uid"] and not _is_done(pod)

    def _remove_finalizer(self, claim: Object) -> None:
        metadata = claim["metadata"]
        kept = [name for name in metadata.get("finalizers", ()) if name != FINALIZER]
        self.client.update({**claim, "metadata": {**metadata, "finalizers": kept}})

    def _delete_if_pod_is_done(self, claim: Object) -> None:
        """Deletes a claim that was created for a pod, when the pod has terminated."""
        metadata = claim["metadata"]
        owner = get_controller_of(claim)
        if owner is not None and (owner["apiVersion"], owner["kind"]) == ("v1", "Pod"):
            pod = self.cache.get("pods", metadata["namespace"], owner["name"])
            if pod is not None and (pod["metadata"]["uid"] != owner["uid"] or _is_done(pod)):
                self.client.delete(CLAIMS, metadata["name"], namespace=metadata["namespace"])


def claim_name(pod: StoredObject, entry: Object) -> str | None:
    """Returns the name of a pod's claim: None if it is not known yet, "" if the pod needs none (resourceclaim.Name)."""
    if "resourceClaimName" in entry:
        return str(entry["resourceClaimName"])
    for known in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if known["name"] == entry["name"]:
            return str(known.get("resourceClaimName") or "")
    return None


def _templates_of(pod: Object) -> set[str]:
    return {one.get("resourceClaimTemplateName", "") for one in pod["spec"].get("resourceClaims") or ()}


def _is_done(pod: Object) -> bool:
    """Reports whether the pod has terminated, or is deleted and never had a node."""
    return is_pod_terminal(pod) or ("deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName"))


def _new_claim(pod: Object, entry: Object, template: Object) -> Object:
    metadata, spec = pod["metadata"], template["spec"]
    template_metadata = spec.get("metadata") or {}
    base = f"{metadata['name']}-{entry['name']}-"
    if len(base) > MAX_BASE:
        length = len(base)
        base = "-".join(name[: len(name) * MAX_BASE // length] for name in (metadata["name"], entry["name"]))
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "spec": spec["spec"],
        "metadata": {
            "generateName": base,
            "namespace": metadata["namespace"],
            "annotations": {**(template_metadata.get("annotations") or {}), ANNOTATION: entry["name"]},
            **({"labels": template_metadata["labels"]} if template_metadata.get("labels") else {}),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
            ],
        },
    }
