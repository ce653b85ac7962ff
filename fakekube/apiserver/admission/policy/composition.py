"""The variables of a policy, compiled in their order: each is known to the expressions after it.

Specified by: k8s.io/apiserver/pkg/admission/plugin/cel/composition.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fakekube.apimachinery.cel.environments import Environment
from fakekube.apiserver.admission.cel.conditions import Compiled, compiled


def composed(environment: Environment, variables: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Compiled], Environment]:
    """The compiled variables by their names, and the environment of the expressions after them."""
    made: dict[str, Compiled] = {}
    for variable in variables:
        name = variable.get("name", "")
        made[name] = compiled(environment, variable.get("expression", ""))
        environment = environment.with_variable(name, made[name].type)
    return made, environment
