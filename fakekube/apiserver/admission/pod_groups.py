"""Admission of groups of pods: PodGroupProtection, and PodGroupWorkloadExists of 1.36.

Specified by: plugin/pkg/admission/scheduling/podgroupprotection; plugin/pkg/admission/podgroup (1.36).
"""

from __future__ import annotations

from fakekube.apimachinery import features
from fakekube.apis.well_known import POD_GROUP_PROTECTION_FINALIZER
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin, forbidden
from fakekube.base.golang.strconv import go_quote

POD_GROUPS = ("scheduling.k8s.io", "podgroups")


class PodGroupProtection(Plugin):
    """Adds the finalizer that keeps a group while it has pods."""

    name = "PodGroupProtection"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({POD_GROUPS})

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        metadata = attributes.object.setdefault("metadata", {})
        held = metadata.get("finalizers") or []
        if features.current().enabled("GenericWorkload") and POD_GROUP_PROTECTION_FINALIZER not in held:
            metadata["finalizers"] = [*held, POD_GROUP_PROTECTION_FINALIZER]


class PodGroupWorkloadExists(Plugin):
    """Rejects groups of a workload, or of a template in it, that does not exist; only the API of 1.36 names them so."""

    name = "PodGroupWorkloadExists"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({POD_GROUPS})

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        template = attributes.object.get("spec", {}).get("podGroupTemplateRef") or {}
        reference = template.get("workload")
        if reference is None:
            return
        name, wanted = reference.get("workloadName", ""), reference.get("podGroupTemplateName", "")
        workload = attributes.context.services.get("scheduling.k8s.io", "workloads", attributes.namespace, name)
        if workload is None:
            raise forbidden(attributes, f"PodGroup rejected: Workload {go_quote(name)} not found")
        if "deletionTimestamp" in workload["metadata"]:
            raise forbidden(attributes, f"PodGroup rejected: Workload {go_quote(name)} is being deleted")
        if all(one["name"] != wanted for one in workload["spec"].get("podGroupTemplates") or ()):
            text = f"PodGroup rejected: PodGroupTemplate {go_quote(wanted)} not found in Workload {go_quote(name)}"
            raise forbidden(attributes, text)
