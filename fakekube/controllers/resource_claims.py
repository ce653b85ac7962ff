"""Makes the ResourceClaims of pods from their templates, and releases what pods do not need any more.

Allocation is the scheduler's business, or a driver's.

Specified by: pkg/controller/resourceclaim/controller.go, k8s.io/dynamic-resource-allocation/resourceclaim.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fakekube.client import ApiError
from fakekube.controllers.controller_ref_manager import is_controlled_by
from fakekube.controllers.controller_utils import is_pod_terminal
from fakekube.controllers.reconciler import Key, Object, Reconciler

__all__ = ["ResourceClaimController"]

CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
ANNOTATION = "resource.kubernetes.io/pod-claim-name"
FINALIZER = "resource.kubernetes.io/delete-protection"
MANAGER = "ResourceClaimController"
#: Characters of a generated name, before the random ones.
BASE = 57

_POD, _CLAIM = "pod:", "claim:"


class ClaimProblem(Exception):
    """Why a pod does not get a claim."""


class ResourceClaimController(Reconciler):
    """Keys are pods and claims, told apart by a prefix of the name."""

    name = "resourceclaim-controller"
    component = "resource_claim"
    watches = ("pods", CLAIMS, TEMPLATES)

    @staticmethod
    def concerns(resource: str, obj: Object, old: Object | None) -> bool:
        return resource != "pods" or bool(obj["spec"].get("resourceClaims"))

    def keys(self, resource: str, event_type: str, obj: Object, old: Object | None) -> Iterable[Key]:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        if resource == "pods":
            return self._of_pod(obj, gone=event_type == "DELETED") if obj["spec"].get("resourceClaims") else ()
        if resource == TEMPLATES:
            pods = self.cache.list("pods", namespace) if event_type != "DELETED" else ()
            return [Key(namespace, _POD + pod["metadata"]["name"]) for pod in pods if metadata["name"] in _templates_of(pod)]
        owners = [Key(namespace, _POD + one["name"]) for one in metadata.get("ownerReferences") or () if one["kind"] == "Pod"]
        return [Key(namespace, _CLAIM + metadata["name"]), *owners]

    def _of_pod(self, pod: Object, *, gone: bool) -> list[Key]:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        found = [] if gone else [Key(namespace, _POD + name)]
        if gone or is_pod_terminal(pod):
            claims = (_name_of(pod, one) for one in pod["spec"]["resourceClaims"])
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

    # ------------------------------------------------------------ pods

    def _sync_pod(self, key: Key, pod: Object) -> None:
        made = {}
        for wanted in pod["spec"].get("resourceClaims") or ():
            try:
                name = self._ensure(pod, wanted)
            except (ApiError, ClaimProblem) as problem:
                message = f"PodResourceClaim {wanted['name']}: {problem}"
                self.recorder.event(pod, "Warning", "FailedResourceClaimCreation", message)
                self.requeue_rate_limited(key)
                return
            if name:
                made[wanted["name"]] = name
        if made:
            statuses = [{"name": name, "resourceClaimName": claim} for name, claim in made.items()]
            metadata = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
            applied = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"resourceClaimStatuses": statuses}}
            self.client.apply(applied, field_manager=MANAGER, force=True, subresource="status")
        elif pod["spec"].get("nodeName"):
            self._reserve(pod)

    def _ensure(self, pod: Object, wanted: Object) -> str:
        """The name of the claim that a pod is to be told of; "" if it knows of it, or needs none."""
        template = wanted.get("resourceClaimTemplateName")
        if template is None:
            return ""
        namespace, name = pod["metadata"]["namespace"], _name_of(pod, wanted)
        if name == "":
            return ""
        known = self.cache.get(CLAIMS, namespace, name) if name else None
        if known is not None and is_controlled_by(known, pod):
            return ""
        for claim in self.cache.list(CLAIMS, namespace):
            annotations = claim["metadata"].get("annotations") or {}
            if is_controlled_by(claim, pod) and annotations.get(ANNOTATION) == wanted["name"]:
                return str(claim["metadata"]["name"])
        found = self.cache.get(TEMPLATES, namespace, template)
        if found is None:
            absent = f'resourceclaimtemplate.resource.k8s.io "{template}" not found'
            raise ClaimProblem(f'resource claim template "{template}": {absent}')
        return str(self.client.create(_claim(pod, wanted, found))["metadata"]["name"])

    def _reserve(self, pod: Object) -> None:
        """A pod that came to its node without the scheduler has its claims reserved here."""
        metadata = pod["metadata"]
        for wanted in pod["spec"].get("resourceClaims") or ():
            name = _name_of(pod, wanted)
            claim = self.cache.get(CLAIMS, metadata["namespace"], name) if name else None
            status = (claim or {}).get("status") or {}
            users = status.get("reservedFor") or []
            if claim is None or "allocation" not in status or any(one["uid"] == metadata["uid"] for one in users):
                continue
            users = [*users, {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}]
            self.client.update({**claim, "status": {**status, "reservedFor": users}}, subresource="status")

    # ------------------------------------------------------------ claims

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
                self._unprotect(claim)
        elif protected and "deletionTimestamp" in metadata and not remaining:
            if "allocation" in status:
                freed = {name: value for name, value in status.items() if name != "allocation"}
                claim = self.client.update({**claim, "status": freed}, subresource="status")
            self._unprotect(claim)
        if not remaining:
            self._delete_if_unneeded(claim)

    def _is_in_use(self, namespace: str, user: Object) -> bool:
        if user.get("apiGroup") or user.get("resource") != "pods":
            return True
        pod = self.cache.get("pods", namespace, user["name"])
        return pod is not None and pod["metadata"]["uid"] == user["uid"] and not _is_done(pod)

    def _unprotect(self, claim: Object) -> None:
        metadata = claim["metadata"]
        kept = [name for name in metadata.get("finalizers", ()) if name != FINALIZER]
        self.client.update({**claim, "metadata": {**metadata, "finalizers": kept}})

    def _delete_if_unneeded(self, claim: Object) -> None:
        """A claim that was made for a pod goes when the pod has ended."""
        metadata = claim["metadata"]
        for owner in metadata.get("ownerReferences") or ():
            if owner.get("controller") and (owner["apiVersion"], owner["kind"]) == ("v1", "Pod"):
                pod = self.cache.get("pods", metadata["namespace"], owner["name"])
                if pod is not None and (pod["metadata"]["uid"] != owner["uid"] or _is_done(pod)):
                    self.client.delete(CLAIMS, metadata["name"], namespace=metadata["namespace"])


def _name_of(pod: Object, wanted: Object) -> str | None:
    """The name of a pod's claim: None if it is not known yet, "" if the pod needs none."""
    if "resourceClaimName" in wanted:
        return str(wanted["resourceClaimName"])
    for known in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if known["name"] == wanted["name"]:
            return str(known.get("resourceClaimName") or "")
    return None


def _templates_of(pod: Object) -> set[str]:
    return {one.get("resourceClaimTemplateName", "") for one in pod["spec"].get("resourceClaims") or ()}


def _is_done(pod: Object) -> bool:
    """Has the pod ended, or is it deleted without ever having had a node?"""
    return is_pod_terminal(pod) or ("deletionTimestamp" in pod["metadata"] and not pod["spec"].get("nodeName"))


def _claim(pod: Object, wanted: Object, template: Object) -> Object:
    metadata, spec = pod["metadata"], template["spec"]
    told = spec.get("metadata") or {}
    base = f"{metadata['name']}-{wanted['name']}-"
    if len(base) > BASE:
        length = len(base)
        base = "-".join(name[: len(name) * BASE // length] for name in (metadata["name"], wanted["name"]))
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "spec": spec["spec"],
        "metadata": {
            "generateName": base,
            "namespace": metadata["namespace"],
            "annotations": {**(told.get("annotations") or {}), ANNOTATION: wanted["name"]},
            **({"labels": told["labels"]} if told.get("labels") else {}),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
            ],
        },
    }
