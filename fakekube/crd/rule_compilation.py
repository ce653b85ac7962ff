"""The rules of a schema, as the compiler of expressions sees them when a definition is written.

Rules are compiled against the type of the values at their node, inner nodes first. A node with other faults at or below
it is left out, and so are rules within allOf, anyOf, oneOf and not.

Specified by: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
(ValidateCustomResourceDefinitionOpenAPISchema, the part about celContext).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fakekube.cel.compilation import judge
from fakekube.cel.types import Type, schema_type
from fakekube.crd.internal_form import Schema, internal_schema
from fakekube.errors import FieldError
from fakekube.errors.field import invalid

__all__ = ["compilation_errors"]


def compilation_errors(schema: Schema, path: str, others: Sequence[FieldError]) -> list[FieldError]:
    """What the compiler finds wrong with the rules of a structural schema in which `others` were found before."""
    return list(_node_errors(schema, path, "", [error.path for error in others], root=True))


def _node_errors(
    schema: Schema, path: str, uncorrelatable: str, faults: Sequence[str], *, root: bool = False
) -> Iterator[FieldError]:
    """`uncorrelatable` is the path of the list around the node whose items cannot be told apart, if there is one."""
    values, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(values, Mapping):
        yield from _node_errors(values, f"{path}.additionalProperties", uncorrelatable, faults)
    for name, part in sorted((schema.get("properties") or {}).items()):
        yield from _node_errors(part, f"{path}.properties[{name}]", uncorrelatable, faults)
    if isinstance(items, Mapping):
        around = uncorrelatable or ("" if schema.get("x-kubernetes-list-type") == "map" else path)
        yield from _node_errors(items, f"{path}.items", around, faults)
    if schema.get("x-kubernetes-validations") and not any(_lies_within(fault, path) for fault in faults):
        self_type = schema_type(schema, root)
        if self_type is not None:
            yield from _rule_errors(schema, self_type, path, uncorrelatable)


def _lies_within(fault: str, path: str) -> bool:
    return fault.startswith(path) and fault[len(path) :][:1] in ("", ".", "[")


def _rule_errors(schema: Schema, self_type: Type, path: str, uncorrelatable: str) -> Iterator[FieldError]:
    for index, rule in enumerate(schema["x-kubernetes-validations"]):
        place = f"{path}.x-kubernetes-validations[{index}]"
        printed = (internal_schema({"x-kubernetes-validations": [rule]}) or {})["XValidations"][0]
        verdict = judge(rule, self_type)
        if verdict.rule_problem:
            yield invalid(f"{place}.rule", printed, verdict.rule_problem)
        if verdict.message_problem:
            yield invalid(f"{place}.messageExpression", printed, verdict.message_problem)
        if verdict.uses_old_self and uncorrelatable:
            said = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
            yield invalid(f"{place}.rule", rule["rule"], said)
        elif not verdict.uses_old_self and rule.get("optionalOldSelf") is not None:
            said = "may not be set if oldSelf is not used in rule"
            yield invalid(f"{place}.optionalOldSelf", rule["optionalOldSelf"], said)
