"""The plugins for admission policies. What policies need is imported with the first binding.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/generic/plugin.go, pkg/kubeapiserver/admission/exclusion.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from fakekube.apimachinery.data import ADMISSION_REGISTRATION
from fakekube.apis.validation.webhooks import REVIEWS
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin

if TYPE_CHECKING:
    from fakekube.apiserver.admission.policy.dispatch import Dispatcher
    from fakekube.apiserver.admission.policy.mutating import Mutator
    from fakekube.apiserver.admission.policy.validating import Validator


#: What no policy ever sees: the policies themselves, and reviews, whose answers clients and servers rely on.
_EXCLUDED: Final = frozenset(
    {
        (ADMISSION_REGISTRATION, "validatingadmissionpolicies"),
        (ADMISSION_REGISTRATION, "validatingadmissionpolicybindings"),
        (ADMISSION_REGISTRATION, "mutatingadmissionpolicies"),
        (ADMISSION_REGISTRATION, "mutatingadmissionpolicybindings"),
        *REVIEWS,
    }
)


def _is_seen(attributes: Attributes, bindings: str) -> bool:
    """Reports whether there are bindings, and the write is not exempt from policies."""
    resource = attributes.resource
    return (
        attributes.context.services.has_any(ADMISSION_REGISTRATION, bindings)
        and (resource.group, resource.plural) not in _EXCLUDED
    )


class MutatingAdmissionPolicy(Plugin):
    """Expressions of policies change the object of a write; there is none in a deletion."""

    name = "MutatingAdmissionPolicy"
    operations = frozenset({Operation.CREATE, Operation.UPDATE, Operation.CONNECT})
    subresources = None
    acts_for = "webhooks_or_policies"
    dynamic = True

    def admit(self, attributes: Attributes) -> None:
        if _is_seen(attributes, "mutatingadmissionpolicybindings"):
            self._dispatcher.dispatch(attributes)

    @cached_property
    def _dispatcher(self) -> Dispatcher[Mutator]:
        from fakekube.apiserver.admission.policy.mutating import dispatcher

        return dispatcher()


class ValidatingAdmissionPolicy(Plugin):
    """Expressions of policies decide whether a write is accepted."""

    name = "ValidatingAdmissionPolicy"
    operations = frozenset(Operation)
    subresources = None
    acts_for = "webhooks_or_policies"
    dynamic = True

    def validate(self, attributes: Attributes) -> None:
        if _is_seen(attributes, "validatingadmissionpolicybindings"):
            self._dispatcher.dispatch(attributes)

    @cached_property
    def _dispatcher(self) -> Dispatcher[Validator]:
        from fakekube.apiserver.admission.policy.validating import dispatcher

        return dispatcher()
