"""The sync of claims: binds a claim to a volume, waits for one or provisions one, or sets the phase Lost.

Specified by: pkg/controller/volume/persistentvolume/pv_controller.go (syncUnboundClaim, syncBoundClaim, provisionClaim).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakekube.apiserver.admission.defaults import newest_default
from fakekube.apiserver.admission.storage import DEFAULT_MARKS
from fakekube.controllers.controller_utils import is_pod_terminal
from fakekube.controllers.volumes.binding import Binding, with_annotations
from fakekube.controllers.volumes.matching import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    check_volume_satisfies_claim,
    find_matching_volume,
    get_class_name,
    has_annotation,
    is_volume_bound_to_claim,
    uses_claim,
)
from fakekube.controllers.volumes.plugins import CLASSES, MIGRATED, VOLUMES, PluginError, check_provisioner

if TYPE_CHECKING:
    from fakekube.controllers.objects import Object
    from fakekube.controllers.reconciler import Reconciler

__all__ = ["ClaimSync"]

PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"

_LOST = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
_LOST_REFERENCE = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
_MISBOUND = "Two claims are bound to the same volume, this one is bound incorrectly"
_WAITS = "waiting for first consumer to be created before binding"
_NOTHING = "no persistent volumes available for this claim and no storage class is set"


class ClaimSync:
    """Syncs claims for the PersistentVolume controller."""

    def __init__(self, controller: Reconciler, binding: Binding) -> None:
        self._controller = controller
        self._binding = binding

    def sync(self, claim: Object) -> None:
        """Syncs one claim. Raises ApiError."""
        if has_annotation(claim, BIND_COMPLETED):
            self._sync_bound(claim)
        elif claim["spec"].get("volumeName"):
            self._sync_prebound(claim)
        else:
            self._sync_unbound(claim)

    # ------------------------------------------------------------ without a volumeName

    def _sync_unbound(self, claim: Object) -> None:
        cache = self._controller.cache
        name = get_class_name(claim)
        found = cache.get(CLASSES, "", name) if name else None
        delayed = found is not None and found.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
        volumes = sorted(cache.list(VOLUMES), key=lambda volume: str(volume["metadata"]["name"]))
        volume = find_matching_volume(claim, volumes, delayed=delayed)
        if volume is not None:
            self._binding.bind(volume, claim)
        elif not self._assign_default_class(claim):
            self._provision_or_wait(claim, name, delayed)

    def _provision_or_wait(self, claim: Object, name: str, delayed: bool) -> None:
        """Provisions a volume, or records what the claim waits for."""
        if delayed and not has_annotation(claim, SELECTED_NODE):
            self._record_delay(claim)
        elif name:
            self._provision(claim, name)
            return
        else:
            self._controller.recorder.event(claim, "Normal", "FailedBinding", _NOTHING)
        self._binding.set_claim_status(claim, "Pending")

    def _record_delay(self, claim: Object) -> None:
        pods = sorted(self._unscheduled_pods(claim))
        reason, message = "WaitForFirstConsumer", _WAITS
        if pods:
            reason = "WaitForPodScheduled"
            message = f"waiting for pod{'s' if len(pods) > 1 else ''} {','.join(pods)} to be scheduled"
        self._controller.recorder.event(claim, "Normal", reason, message)

    def _unscheduled_pods(self, claim: Object) -> list[str]:
        """Returns the names of the pods without a node that use the claim."""
        metadata = claim["metadata"]
        return [
            pod["metadata"]["name"]
            for pod in self._controller.cache.list("pods", metadata["namespace"])
            if not pod["spec"].get("nodeName") and not is_pod_terminal(pod) and uses_claim(pod, metadata["name"])
        ]

    def _assign_default_class(self, claim: Object) -> bool:
        """Sets the default class of a claim without storageClassName. Returns whether there is a default class."""
        if get_class_name(claim) or "storageClassName" in claim["spec"]:
            return False
        found = newest_default(self._controller.cache.list(CLASSES), DEFAULT_MARKS)
        if found is None:
            return False
        spec = {**claim["spec"], "storageClassName": found["metadata"]["name"]}
        self._controller.client.update({**claim, "spec": spec})
        return True

    def _provision(self, claim: Object, name: str) -> None:
        """Requests a volume from the external provisioner of the class."""
        record = self._controller.recorder.event
        found = self._controller.cache.get(CLASSES, "", name)
        if found is None:
            record(claim, "Warning", "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
            return
        provisioner = found["provisioner"]
        try:
            check_provisioner(provisioner)
        except PluginError as problem:
            record(claim, "Warning", "ProvisioningFailed", str(problem))
            return
        driver = MIGRATED.get(provisioner, provisioner)
        if (claim["metadata"].get("annotations") or {}).get(PROVISIONER) != driver:
            names = {BETA_PROVISIONER: driver, PROVISIONER: driver}
            claim = self._controller.client.update(with_annotations(claim, names))
        record(
            claim,
            "Normal",
            "ExternalProvisioning",
            f"Waiting for a volume to be created either by the external provisioner '{driver}' or manually by the system "
            "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
            "registered.",
        )

    # ------------------------------------------------------------ with a volumeName

    def _sync_prebound(self, claim: Object) -> None:
        """Syncs a claim that has a volumeName, but is not bound yet."""
        record, name = self._controller.recorder.event, claim["spec"]["volumeName"]
        volume = self._controller.cache.get(VOLUMES, "", name)
        if volume is None:
            self._binding.set_claim_status(claim, "Pending")
        elif volume["spec"].get("claimRef") is None:
            problem = check_volume_satisfies_claim(volume, claim)
            if problem:
                record(claim, "Warning", "VolumeMismatch", f'Cannot bind to requested volume "{name}": {problem}')
                self._binding.set_claim_status(claim, "Pending")
            else:
                self._binding.bind(volume, claim)
        elif is_volume_bound_to_claim(volume, claim):
            self._binding.bind(volume, claim)
        else:
            record(claim, "Warning", "FailedBinding", f'volume "{name}" already bound to a different claim.')
            if not has_annotation(claim, BOUND_BY_CONTROLLER):
                self._binding.set_claim_status(claim, "Pending")

    def _sync_bound(self, claim: Object) -> None:
        name = claim["spec"].get("volumeName")
        volume = self._controller.cache.get(VOLUMES, "", name) if name else None
        if volume is None:
            self._binding.set_claim_lost(claim, "ClaimLost", _LOST if name else _LOST_REFERENCE)
            return
        reference = volume["spec"].get("claimRef")
        if reference is None or reference.get("uid") == claim["metadata"]["uid"]:
            self._binding.bind(volume, claim)
        else:
            self._binding.set_claim_lost(claim, "ClaimMisbound", _MISBOUND)
