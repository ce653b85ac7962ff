"""LeaseCandidates: who would hold a lease, and of which version they are.

Specified by: pkg/apis/coordination/validation (ValidateLeaseCandidate), pkg/registry/coordination/leasecandidate.
"""

from __future__ import annotations

from typing import Final

from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.libraries.kubernetes_types import Semver, parse_semver
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, required
from fakekube.apis.coordination import STRATEGIES, validate_coordinated_lease_strategy
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import immutable_field
from fakekube.base.objects import Object

#: What an absent version and one that is none count as.
_ZERO: Final = Semver((0, 0, 0))


class LeaseCandidateStrategy(Strategy):
    """The strategy of leasecandidates."""

    create_on_update = True
    unconditional_update = False
    standard_finalizers = False

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return list(names.config_map_key(name))

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_spec(obj.get("spec") or {})

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        spec, before = obj.get("spec") or {}, old.get("spec") or {}
        return _validate_spec(spec) + immutable_field(spec.get("leaseName", ""), before.get("leaseName", ""), "spec.leaseName")


def _validate_spec(spec: Object) -> list[FieldError]:
    emulation, binary, strategy = (spec.get(name, "") for name in ("emulationVersion", "binaryVersion", "strategy"))
    errors = [] if spec.get("leaseName") else [required("spec.leaseName")]
    emulated, problems = _version(emulation, "spec.emulationVersion")
    errors += problems
    own, problems = _version(binary, "spec.binaryVersion")
    errors += problems if binary else [required("spec.binaryVersion")]
    if emulation and binary and own.order < emulated.order:
        errors.append(invalid("spec.binaryVersion", binary, "must be greater than or equal to `emulationVersion`"))
    if not strategy:
        return [*errors, required("spec.strategy")]
    if strategy in STRATEGIES and emulated.order == _ZERO.order:
        errors.append(required("spec.emulationVersion", f"must be specified when `strategy` is '{strategy}'"))
    return errors + validate_coordinated_lease_strategy(strategy, "spec.strategy")


def _version(text: str, path: str) -> tuple[Semver, list[FieldError]]:
    """Returns the version, with the error of one that is none."""
    try:
        return (parse_semver(text) if text else _ZERO), []
    except EvaluationError:
        return _ZERO, [invalid(path, text, "must be a valid semantic version")]
