"""Leases: locks with a holder and a duration; LeaseCandidates: who would hold a lease, and of which version they are.

Specified by: pkg/apis/coordination/validation, pkg/registry/coordination/{lease,leasecandidate}.
"""

from __future__ import annotations

from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, not_supported, required
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import ABOVE_0, immutable_field, label_name
from fakekube.apis.validation.rules import Rule, at_least, calls, needed, nonempty, optional, rules, says, then
from fakekube.base.objects import Object

STRATEGIES = ("OldestEmulationVersion",)


class LeaseStrategy(Strategy):
    """The strategy of leases."""

    create_on_update = True
    unconditional_update = False
    standard_finalizers = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _LEASE_SPEC.validate(obj.get("spec") or {}, "spec")


class LeaseCandidateStrategy(Strategy):
    """The strategy of leasecandidates."""

    create_on_update = True
    unconditional_update = False
    standard_finalizers = False

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return list(names.config_map_key(name))

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _LEASE_CANDIDATE_SPEC.validate(obj.get("spec") or {}, "spec")

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        name, before = ((one.get("spec") or {}).get("leaseName", "") for one in (obj, old))
        return self.validate(context, obj) + immutable_field(name, before, "spec.leaseName")


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


def validate_lease_candidate_versions(spec: Object, path: str) -> list[FieldError]:
    """Validates that a candidate does not emulate a version after its own (ValidateLeaseCandidateSpec)."""
    emulation, binary = spec.get("emulationVersion"), spec.get("binaryVersion")
    if not emulation or not binary or _order(binary) >= _order(emulation):
        return []
    return [invalid(f"{path}.binaryVersion", binary, "must be greater than or equal to `emulationVersion`")]


def validate_lease_candidate_strategy(spec: Object, path: str) -> list[FieldError]:
    """Validates that the strategy finds the version that it compares (ValidateLeaseCandidateSpec)."""
    strategy = spec.get("strategy")
    if strategy not in STRATEGIES or _order(spec.get("emulationVersion") or "") != _order(""):
        return []
    return [required(f"{path}.emulationVersion", f"must be specified when `strategy` is '{strategy}'")]


def _order(version: str) -> Any:
    """Returns what versions are compared by; an absent one, and a text that is none, count as 0.0.0."""
    return (_parse_version(version) or _parse_version("0.0.0")).order


def _parse_version(text: str) -> Any:
    """Returns a semantic version; None for a text that is none."""
    from fakekube.apimachinery.cel.errors import EvaluationError  # only candidates have versions
    from fakekube.apimachinery.cel.libraries.kubernetes_types import parse_semver

    try:
        return parse_semver(text)
    except EvaluationError:
        return None


_LEASE_SPEC = rules(
    "LeaseSpec",
    "ValidateLeaseSpec",
    Rule("leaseDurationSeconds", at_least(1, ABOVE_0, absent=None)),
    Rule("leaseTransitions", at_least(0)),
    Rule("strategy", optional(calls(validate_coordinated_lease_strategy))),
    Rule("", calls(validate_lease_spec_holder)),
)
_VERSION = says("semantic version", lambda text: _parse_version(text) is None, "must be a valid semantic version")
_LEASE_CANDIDATE_SPEC = rules(
    "LeaseCandidateSpec",
    "ValidateLeaseCandidateSpec",
    Rule("leaseName", needed()),
    Rule("emulationVersion", nonempty(_VERSION)),
    Rule("binaryVersion", then(needed(), _VERSION)),
    Rule("", calls(validate_lease_candidate_versions)),
    Rule("strategy", needed()),
    Rule("", calls(validate_lease_candidate_strategy)),
    Rule("strategy", nonempty(calls(validate_coordinated_lease_strategy))),
)
