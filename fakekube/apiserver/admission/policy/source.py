"""The policies of a cluster that are in force, with their bindings and parameters.

A policy without a binding does nothing, nor does a binding without its policy. Parameters are objects of any kind, found by
name or by labels, as they are now. What is compiled for a policy is cached by the process under the text of its spec, so that
the next cluster with the same policy need not compile it.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/generic/{policy_source,policy_dispatcher}.go (CollectParams,
ensureParamsForPolicyLocked).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from fakekube.apimachinery.data import ADMISSION_REGISTRATION
from fakekube.apiserver.admission.matching import Criteria

if TYPE_CHECKING:
    from fakekube.apis.rest.cluster_access import ClusterAccess
    from fakekube.base.objects import Object


E = TypeVar("E")

#: The maximum number of compiled policies of each kind in the process.
_MAX_COMPILED: Final = 256


@dataclass(frozen=True, slots=True)
class Binding:
    """A compiled binding."""

    name: str
    spec: Object
    criteria: Criteria | None
    """The matchResources; None: every request that the policy matches."""


@dataclass(frozen=True, slots=True)
class Hook(Generic[E]):
    """A compiled policy with its bindings."""

    name: str
    spec: Object
    criteria: Criteria
    bindings: Sequence[Binding]
    evaluator: E

    @property
    def fails(self) -> bool:
        """Whether an error denies the request (failurePolicy Fail)."""
        return bool(self.spec.get("failurePolicy", "Fail") != "Ignore")


def compile_once(compile_spec: Callable[[Object], E]) -> Callable[[Object], E]:
    """Returns `compile_spec` with a cache by the text of the spec, which all clusters of the process share."""

    @lru_cache(maxsize=_MAX_COMPILED)
    def compile_text(text: str) -> E:
        return compile_spec(json.loads(text))

    return lambda spec: compile_text(json.dumps(spec, sort_keys=True))


class PolicySource(Generic[E]):
    """The hooks of one cluster.

    Args:
        policies: the plural of the policies; that of their bindings follows from `bindings`.
        bindings: the plural of the bindings.
        compile_policy: makes the evaluator of a policy from its spec.
    """

    def __init__(self, policies: str, bindings: str, compile_policy: Callable[[Object], E]) -> None:
        self._policies = policies
        self._bindings = bindings
        self._compile = compile_policy
        self._known: tuple[tuple[int, int], Sequence[Hook[E]]] = ((-1, -1), ())

    def hooks(self, cluster: ClusterAccess) -> Sequence[Hook[E]]:
        """Returns the policies in force, in the order of their names."""
        revisions = (
            cluster.last_change(ADMISSION_REGISTRATION, self._bindings),
            cluster.last_change(ADMISSION_REGISTRATION, self._policies),
        )
        known, hooks = self._known
        if known != revisions:
            hooks = self._read(cluster)
            self._known = revisions, hooks
        return hooks

    def _read(self, cluster: ClusterAccess) -> Sequence[Hook[E]]:
        bindings: dict[str, list[Binding]] = {}
        for obj in cluster.list(ADMISSION_REGISTRATION, self._bindings):
            spec = obj.get("spec") or {}
            match = spec.get("matchResources")
            criteria = None if match is None else Criteria.of_match_resources(match)
            bindings.setdefault(spec.get("policyName", ""), []).append(Binding(obj["metadata"]["name"], spec, criteria))
        hooks = []
        for obj in cluster.list(ADMISSION_REGISTRATION, self._policies) if bindings else ():
            name, spec = obj["metadata"]["name"], obj.get("spec") or {}
            bound = bindings.get(name)
            if bound is not None:
                criteria = Criteria.of_match_resources(spec.get("matchConstraints"))
                hooks.append(Hook(name, spec, criteria, bound, self._compile(spec)))
        return hooks
