"""The subresource eviction of pods: a deletion that PodDisruptionBudgets can reject.

An eviction first takes one disruption of each budget that selects the pod, then gives the pod the condition
DisruptionTarget, and deletes it.

Specified by: pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.errors.field import invalid
from fakekube.apimachinery.selectors import SelectorError, from_label_selector
from fakekube.apis.core.pods.binding import SUCCESS
from fakekube.apis.rest.cluster_access import Recorded
from fakekube.apis.rest.strategy import WriteContext
from fakekube.apis.validation.objectmeta import find_condition, is_ready, set_condition, set_status_condition
from fakekube.apis.validation.rules import from_minor
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object

POLICY = "policy"
BUDGETS = "poddisruptionbudgets"

#: The maximum number of evictions that the disruption controller has not processed yet (MaxDisruptedPodSize).
_MAX_DISRUPTED_PODS = 2000
_OVER_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(context: WriteContext, name: str, body: Object) -> Object:
    """Handles a POST to pods/eviction. Raises StatusError: 429 if a budget does not allow it, 404, 409."""
    if name != (body.get("metadata") or {}).get("name", ""):
        raise status.bad_request("name in URL does not match name in Eviction object")
    options = _deletion_options(context, name, body.get("deleteOptions") or {})
    context.check({**body, "deleteOptions": options} if body.get("deleteOptions") else body)
    pod = context.services.get("", "pods", context.namespace, name)
    if pod is None:
        raise status.not_found("", "pods", name)
    has_revision = bool((options.get("preconditions") or {}).get("resourceVersion"))
    if _can_ignore_budgets(pod):
        if _is_alive(pod) and not has_revision:
            options = _at_revision(options, pod)
        return _mark_and_delete(context, name, options)
    budgets = _budgets(context, pod)
    if len(budgets) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise status.generic(500, "", text)
    for budget in budgets:
        if _may_go_unhealthy(pod, budget):
            try:
                return _mark_and_delete(context, name, _at_revision(options, pod))
            except StatusError as error:
                if error.reason != "Conflict" or has_revision:
                    raise
                raise _still_processed(budget["metadata"]["name"]) from None  # the client should retry
        _check_and_decrement(context, budget["metadata"]["name"], name, bool(options.get("dryRun")))
    return _mark_and_delete(context, name, options)


def _deletion_options(context: WriteContext, name: str, options: Object) -> Object:
    """Returns the options of the deletion, with the dry run of the request."""
    if options.get("ignoreStoreReadErrorWithClusterBreakingPotential"):
        path = "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential"
        text = "can not be set for pod eviction, try after removing the option"
        raise status.invalid(POLICY, "Eviction", name, [invalid(path, True, text)])
    if not context.dry_run:
        return options
    expected = options.get("dryRun") or ["All"]
    if expected != ["All"]:
        text = f"Non-matching dry-run options in request and content: [All] and [{' '.join(expected)}]"
        raise status.generic(500, "", text)
    return {**options, "dryRun": expected}


def _can_ignore_budgets(pod: Object) -> bool:
    """Reports whether the pod is finished, pending or being deleted, so that no budget applies (canIgnorePDB)."""
    return not _is_alive(pod) or _phase(pod) == "Pending"


def _is_alive(pod: Object) -> bool:
    return _phase(pod) not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def _phase(pod: Object) -> str:
    phase: str = (pod.get("status") or {}).get("phase", "")
    return phase


def _at_revision(options: Object, pod: Object) -> Object:
    """Returns the options with the resourceVersion of the pod as a precondition."""
    preconditions = options.get("preconditions") or {}
    return {**options, "preconditions": {**preconditions, "resourceVersion": pod["metadata"]["resourceVersion"]}}


def _mark_and_delete(context: WriteContext, name: str, options: Object) -> Object:
    """Adds the DisruptionTarget condition to the pod, then deletes it."""
    preconditions = dict(options.get("preconditions") or {})
    if not options.get("dryRun"):
        marked = context.services.update(
            "", "pods", context.namespace, name, lambda pod: _with_disruption_target(pod, preconditions, context.clock.now())
        )
        if "resourceVersion" in preconditions:
            preconditions["resourceVersion"] = marked["metadata"]["resourceVersion"]
            options = {**options, "preconditions": preconditions}
    assert context.remove is not None
    context.remove(name, options)
    return SUCCESS


def _with_disruption_target(pod: Object, preconditions: Mapping[str, str], now: datetime) -> Object:
    meta = pod["metadata"]
    for field, shown, fate in (("uid", "UID", "deleted and then recreated"), ("resourceVersion", "ResourceVersion", "modified")):
        expected, found = preconditions.get(field), meta.get(field)
        if expected and expected != found:
            text = f"the {shown} in the precondition ({expected}) does not match the {shown} in record ({found})"
            raise status.conflict("", "Pod", meta["name"], f"{text}. The object might have been {fate}")
    state = pod.get("status") or {}
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    changed = set_condition(state.get("conditions") or (), condition, now)
    return {**pod, "status": {**state, "conditions": changed}}


def _budgets(context: WriteContext, pod: Object) -> list[Object]:
    """Returns the budgets that select the pod; an invalid selector selects nothing."""
    labels = pod["metadata"].get("labels") or {}
    budgets = context.services.list(POLICY, BUDGETS, context.namespace)
    return [budget for budget in budgets if _selects((budget.get("spec") or {}).get("selector"), labels)]


def _selects(selector: dict[str, Any] | None, labels: dict[str, str]) -> bool:
    try:
        return from_label_selector(selector).matches(labels)
    except SelectorError:
        return False


def _may_go_unhealthy(pod: Object, budget: Object) -> bool:
    """Reports whether a pod that is not ready can be evicted without the budget, by unhealthyPodEvictionPolicy."""
    if is_ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    state = budget.get("status") or {}
    desired: int = state.get("desiredHealthy", 0)
    return bool(desired > 0 and state.get("currentHealthy", 0) >= desired)


def _check_and_decrement(context: WriteContext, budget_name: str, pod_name: str, dry_run: bool) -> None:
    """Takes one disruption from the budget (checkAndDecrement). Raises StatusError 403 or 429."""
    now = context.clock.now()

    def decrement(budget: Object) -> Object:
        _check_budget(budget)
        return _decrement_budget(budget, pod_name, now)

    if dry_run:
        budget = context.services.get(POLICY, BUDGETS, context.namespace, budget_name)
        if budget is not None:
            decrement(budget)
        return
    recorded = Recorded("status", now)
    context.services.update(POLICY, BUDGETS, context.namespace, budget_name, decrement, recorded=recorded)


def _check_budget(budget: Object) -> None:
    state, name = budget.get("status") or {}, budget["metadata"]["name"]
    allowed = state.get("disruptionsAllowed", 0)
    if state.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _still_processed(name)
    if len(state.get("disruptedPods") or ()) > _MAX_DISRUPTED_PODS:
        text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        error = status.forbidden(POLICY, "poddisruptionbudget", name, text)
        if from_minor(37):
            text = f"The disruption budget {name} does not allow evicting pods currently: too many pending evictions"
            cause = {"reason": "DisruptionBudget", "message": f"{text} not confirmed by PDB controller"}
            error.details = {**(error.details or {}), "causes": [cause]}
        raise error
    if not allowed:
        raise _over_budget(_insufficient_budget_message(name, state))


def _still_processed(budget_name: str) -> StatusError:
    return _over_budget(f"The disruption budget {budget_name} is still being processed by the server.", retry_after=10)


def _over_budget(text: str, retry_after: int = 0) -> StatusError:
    return status.too_many_requests(_OVER_BUDGET, retry_after, [{"reason": "DisruptionBudget", "message": text}])


def _insufficient_budget_message(name: str, state: dict[str, Any]) -> str:
    condition = find_condition(state, "DisruptionAllowed") or {}
    message, reason = condition.get("message", ""), condition.get("reason", "")
    known = condition.get("status") == "False" and message
    current, desired = state.get("currentHealthy", 0), state.get("desiredHealthy", 0)
    no = f"The disruption budget {name} does not allow evicting pods currently"
    if known and reason == "SyncFailed" and from_minor(35):
        return f"{no} because it failed sync: {message}"
    if current <= desired or not from_minor(35):
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    return f"{no} ({reason}): {message}" if known else no


def _decrement_budget(budget: Object, pod_name: str, now: datetime) -> Object:
    """Returns a budget with one disruption less, which the pod has taken."""
    state = dict(budget["status"])
    state["disruptionsAllowed"] -= 1
    stamp = print_time(now)
    state["disruptedPods"] = {**(state.get("disruptedPods") or {}), pod_name: stamp}
    if not state["disruptionsAllowed"]:
        state["conditions"] = _conditions_without_disruptions(state, stamp)
    return {**budget, "status": state}


def _conditions_without_disruptions(state: dict[str, Any], stamp: str) -> list[dict[str, Any]]:
    """Returns the conditions of a budget without allowed disruptions (UpdateDisruptionAllowedCondition)."""
    expected = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""}
    if state.get("observedGeneration"):
        expected["observedGeneration"] = state["observedGeneration"]
    return set_status_condition(state.get("conditions"), {**expected, "lastTransitionTime": stamp})
