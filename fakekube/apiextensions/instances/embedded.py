"""Validates embedded objects (x-kubernetes-embedded-resource): they need a kind, an apiVersion and valid metadata.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta (validation.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fakekube.apiextensions.instances.objects import MetadataError, metadata_of
from fakekube.apiextensions.schema.structural import holds
from fakekube.apimachinery.errors import FieldError, field
from fakekube.apimachinery.schema.model import Shape, Type
from fakekube.apis.validation import names
from fakekube.apis.validation.objectmeta import validate_object_meta

__all__ = ["embedded_errors"]

#: An embedded object need not have a name, but the validation of metadata requires one.
_ANY_NAME = "fakename"


def embedded_errors(type_: Type, value: Any, path: str = "") -> Iterator[FieldError]:
    """Validates the embedded objects in a value."""
    if not holds(type_, _is_embedded):
        return
    if isinstance(value, dict):
        if type_.embedded_resource:
            yield from _type_meta_errors(value, path)
            if "metadata" in value:
                yield from _metadata_errors(value["metadata"], _below(path, "metadata"))
        fields = type_.fields if type_.shape is Shape.STRUCT else {}
        for name in sorted(value):
            if name in fields:
                yield from embedded_errors(fields[name].type, value[name], _below(path, name))
            elif type_.shape is Shape.MAP and type_.items is not None:
                yield from embedded_errors(type_.items, value[name], f"{path}[{name}]")
    elif isinstance(value, list) and type_.shape is Shape.LIST and type_.items is not None:
        for index, item in enumerate(value):
            yield from embedded_errors(type_.items, item, f"{path}[{index}]")


def _is_embedded(type_: Type) -> bool:
    return type_.embedded_resource


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _type_meta_errors(value: dict[str, Any], path: str) -> Iterator[FieldError]:
    checks = {"apiVersion": _version_problem, "kind": _kind_problem}
    yield from (field.required(_below(path, name)) for name in checks if name not in value)
    for name, problem_of in checks.items():
        found, place = value.get(name), _below(path, name)
        if name in value and not isinstance(found, str):
            yield field.invalid(place, found, "must be a string")
        elif found == "":
            yield field.invalid(place, found, "must not be empty")
        elif isinstance(found, str) and (problem := problem_of(found)):
            yield field.invalid(place, found, problem)


def _version_problem(text: str) -> str:
    return f"unexpected GroupVersion string: {text}" if text.count("/") > 1 else ""


def _kind_problem(text: str) -> str:
    problems = names.dns_1035_label(text.lower())
    return f"may have mixed case, but should otherwise match: {','.join(problems)}" if problems else ""


def _metadata_errors(value: Any, path: str) -> list[FieldError]:
    try:
        meta, _ = metadata_of(value)
    except MetadataError as error:
        return [field.invalid(path, value, str(error))]
    named = {**meta, "name": meta.get("name") or _ANY_NAME}
    namespaced = bool(meta.get("namespace"))
    return validate_object_meta(named, namespaced, names.path_segment, path=path, standard_finalizers=False)
