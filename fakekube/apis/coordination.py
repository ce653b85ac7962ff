"""Leases: locks with a holder and a duration.

Specified by: pkg/apis/coordination/validation, pkg/registry/coordination/lease.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, not_supported
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation.checks import ABOVE_0, label_name
from fakekube.apis.validation.rules import Rule, at_least, calls, optional, rules
from fakekube.base.objects import Object

STRATEGIES = ("OldestEmulationVersion",)


class LeaseStrategy(Strategy):
    """The strategy of leases."""

    create_on_update = True
    unconditional_update = False
    standard_finalizers = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _LEASE_SPEC.validate(obj.get("spec") or {}, "spec")


def validate_lease_spec_holder(spec: Object, path: str) -> list[FieldError]:
    """Validates that only a lease with a strategy prefers a holder (ValidateLeaseSpec)."""
    if not spec.get("preferredHolder") or spec.get("strategy"):
        return []
    return [forbidden(f"{path}.preferredHolder", "may only be specified if `strategy` is defined")]


def validate_coordinated_lease_strategy(strategy: str, path: str) -> list[FieldError]:
    """Validates a strategy: a known name, or a name with a domain (ValidateCoordinatedLeaseStrategy)."""
    if "/" in strategy:
        return label_name(strategy, f"{path}.strategy")
    return [] if strategy in STRATEGIES else [not_supported(f"{path}.strategy", strategy, STRATEGIES)]


_LEASE_SPEC = rules(
    "LeaseSpec",
    "ValidateLeaseSpec",
    Rule("leaseDurationSeconds", at_least(1, ABOVE_0, absent=None)),
    Rule("leaseTransitions", at_least(0)),
    Rule("strategy", optional(calls(validate_coordinated_lease_strategy))),
    Rule("", calls(validate_lease_spec_holder)),
)
