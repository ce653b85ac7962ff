"""Compiles a mutating policy: its match conditions, variables and mutations.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/compilation.go, pkg/admission/plugin/cel/mutation.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from fakekube.apimachinery.cel.environments import admission
from fakekube.apiserver.admission.cel.activation import Activation
from fakekube.apiserver.admission.cel.conditions import BUDGET, Compiled, OutOfBudget, compiled, evaluate
from fakekube.apiserver.admission.cel.matchconditions import MatchConditions
from fakekube.apiserver.admission.policy.composition import composed
from fakekube.apiserver.admission.policy.patching import PATCHERS, MutationError

if TYPE_CHECKING:
    from fakekube.apis.rest.strategy import Object
    from fakekube.apiserver.admission.versioned import VersionedAttributes


class Mutation(NamedTuple):
    """A compiled mutation of a policy."""

    expression: Compiled
    patch: Callable[[VersionedAttributes, Any], Object]

    def apply(self, versioned: VersionedAttributes, activation: Activation) -> Object:
        """The object of the write, mutated. Raises MutationError, StatusError."""
        if self.expression.program is None:
            raise MutationError(self.expression.problem)
        try:
            (result,), _ = evaluate([self.expression], activation, BUDGET)
        except OutOfBudget as error:
            raise MutationError(str(error)) from None
        assert result is not None
        if result.error is not None:
            raise MutationError(result.error)
        return self.patch(versioned, result.value)


class Mutator:
    """See the module. Made from the spec of a policy; keeps nothing of the writes that it sees."""

    def __init__(self, spec: Object) -> None:
        params = "paramKind" in spec
        conditions = spec.get("matchConditions") or ()
        self.conditions = MatchConditions(conditions, spec.get("failurePolicy", "Fail"), params=params) if conditions else None
        environment = replace(admission(params=params, composed=True, patches=True), makes_patches=False)
        variables, environment = composed(environment, spec.get("variables") or ())
        self.variables: Mapping[str, Compiled] = variables
        environment = replace(environment, makes_patches=True)
        self.mutations: Sequence[Mutation] = []
        for mutation in spec.get("mutations") or ():
            field, patch = PATCHERS[mutation["patchType"]]
            source = (mutation.get(field) or {}).get("expression", "")
            self.mutations.append(Mutation(compiled(environment, source), patch))


def mutator_of(spec: Object) -> Mutator:
    """The mutator of a policy's spec, cached by its text."""
    return _mutator(json.dumps(spec, sort_keys=True))


@lru_cache(maxsize=256)
def _mutator(spec: str) -> Mutator:
    return Mutator(json.loads(spec))
