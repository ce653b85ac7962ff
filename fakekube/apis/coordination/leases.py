"""Leases: locks with a holder and a duration.

Specified by: pkg/apis/coordination/validation, pkg/registry/coordination/lease.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, not_supported
from fakekube.apis.rest.strategy import Object, Strategy, WriteContext
from fakekube.apis.validation.checks import label_name, non_negative

__all__ = ["LeaseStrategy"]

STRATEGIES = ("OldestEmulationVersion",)


class LeaseStrategy(Strategy):
    """The strategy of leases."""

    create_on_update = True
    unconditional_update = False
    standard_finalizers = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors: list[FieldError] = []
        seconds, strategy = spec.get("leaseDurationSeconds"), spec.get("strategy")
        if seconds is not None and seconds <= 0:
            errors.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        errors += non_negative(spec.get("leaseTransitions") or 0, "spec.leaseTransitions")
        if strategy is not None:
            errors += _strategy(strategy, "spec.strategy.strategy")
        if spec.get("preferredHolder") and not strategy:
            errors.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
        return errors


def _strategy(strategy: str, path: str) -> list[FieldError]:
    """Validates the strategy of coordinated leader election: a known name, or a name with a domain."""
    if "/" in strategy:
        return label_name(strategy, path)
    return [] if strategy in STRATEGIES else [not_supported(path, strategy, STRATEGIES)]
