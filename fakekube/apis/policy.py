"""poddisruptionbudgets.policy: the number of pods that voluntary disruptions must leave. `core.pods.eviction` obeys them.

Specified by: pkg/registry/policy/poddisruptionbudget; pkg/apis/policy/validation.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid
from fakekube.apis.rest.strategy import StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import selectors
from fakekube.apis.validation.checks import all_non_negative, at_most_one_hundred_percent, conditions, int_or_percent, one_of
from fakekube.apis.validation.to_internal import semantic_deep_equal, to_internal
from fakekube.base.objects import Object

AMOUNTS = ("minAvailable", "maxUnavailable")
POLICIES = ("AlwaysAllow", "IfHealthyBudget")
COUNTERS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


#: The label by which selectors tell those that selected all pods from those that selected none in v1beta1.
_V1BETA1_LABEL = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
_MATCH_NONE = {"matchExpressions": [{"key": _V1BETA1_LABEL, "operator": "Exists"}]}
#: The first minor that drops the label when a budget is written, after its managers are known; older ones drop it in decoding.
_DROPS_ON_WRITES_SINCE = 37


class PodDisruptionBudgetStrategy(Strategy):
    """The strategy of poddisruptionbudgets; the metadata has only the common validation."""

    unconditional_update = False
    has_status = True
    generation = True
    checks_metadata = False
    checks_metadata_update = False

    def default(self, obj: Object) -> None:
        if self.emulation.minor < _DROPS_ON_WRITES_SINCE:
            _drop_v1beta1_label(obj.get("spec") or {})

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        _drop_v1beta1_label(obj.get("spec") or {})

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        spec = obj.get("spec") or {}
        if not semantic_deep_equal(spec.get("selector"), (old.get("spec") or {}).get("selector")):
            _drop_v1beta1_label(spec)

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _validate_spec(obj.get("spec") or {}, allow_invalid_values=False)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        allow_invalid_values = bool(selectors.label_selector((old.get("spec") or {}).get("selector"), ""))
        return _validate_spec(obj.get("spec") or {}, allow_invalid_values=allow_invalid_values)


def _drop_v1beta1_label(spec: Object) -> None:
    """Drops the requirements of v1beta1 from a selector that has others (StripPDBV1beta1Label)."""
    selector = spec.get("selector")
    if not selector or not selector.get("matchExpressions") or semantic_deep_equal(selector, _MATCH_NONE):
        return
    kept = [one for one in selector["matchExpressions"] if one.get("key") != _V1BETA1_LABEL]
    spec["selector"] = {**selector, "matchExpressions": kept}


def _validate_spec(spec: Object, *, allow_invalid_values: bool) -> list[FieldError]:
    """Validates the spec (ValidatePodDisruptionBudgetSpec).

    With `allow_invalid_values`, label values of the selector may be invalid, as in the old object.
    """
    errors: list[FieldError] = []
    present = [amount for amount in AMOUNTS if spec.get(amount) is not None]
    if len(present) > 1:
        text = "minAvailable and maxUnavailable cannot be both set"
        errors.append(invalid("spec", to_internal("PodDisruptionBudgetSpec", spec), text))
    for amount in present:
        errors += int_or_percent(spec[amount], f"spec.{amount}")
        errors += at_most_one_hundred_percent(spec[amount], f"spec.{amount}")
    errors += selectors.label_selector(spec.get("selector"), "spec.selector", allow_invalid_values=allow_invalid_values)
    policy = spec.get("unhealthyPodEvictionPolicy")
    return errors if policy is None else errors + one_of(policy, "spec.unhealthyPodEvictionPolicy", POLICIES)


class PodDisruptionBudgetStatusStrategy(StatusStrategy):
    """The strategy of poddisruptionbudgets/status."""

    unconditional_update = False
    checks_metadata_update = False

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        status = obj.get("status") or {}
        errors = conditions(status.get("conditions") or (), "status.conditions")
        return errors + all_non_negative(status, COUNTERS, "status")
