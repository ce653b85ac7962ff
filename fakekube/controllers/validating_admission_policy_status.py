"""The status controller of ValidatingAdmissionPolicies: type checks their expressions against the schemas of matched kinds.

Specified by: pkg/controller/validatingadmissionpolicystatus/controller.go.
"""

from __future__ import annotations

from typing import Any, Final

from fakekube.apiserver.admission.policy.typechecking import expression_warnings
from fakekube.controllers.reconciler import Key, Reconciler

_POLICIES: Final = "validatingadmissionpolicies.admissionregistration.k8s.io"


class ValidatingAdmissionPolicyStatusController(Reconciler):
    """Writes the warnings of the type check into the status, once for every generation of a policy."""

    name = "validatingadmissionpolicy-status-controller"
    watches = (_POLICIES,)
    field_manager = "validatingadmissionpolicy-status"

    def reconcile(self, key: Key) -> None:
        policy = self.cache.get(_POLICIES, "", key.name)
        if policy is None:
            return
        generation = policy["metadata"].get("generation", 0)
        if generation <= (policy.get("status") or {}).get("observedGeneration", 0):
            return
        warnings = expression_warnings(policy.get("spec") or {}, self.context.registry)
        type_checking: dict[str, Any] = {"expressionWarnings": warnings} if warnings else {}
        self.client.apply(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": key.name},
                "status": {"observedGeneration": generation, "typeChecking": type_checking},
            },
            field_manager=self.field_manager,
            subresource="status",
        )
