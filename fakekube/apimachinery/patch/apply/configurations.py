"""Merges an apply configuration into an object without managedFields, for mutating admission policies.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go (ApplyStructuredMergeDiff).
"""

from __future__ import annotations

from typing import Any

from fakekube.apimachinery.patch.apply.atoms import Atom, TypingError
from fakekube.apimachinery.patch.apply.schema import atom_of, custom_atom_of
from fakekube.apimachinery.patch.apply.updater import Typed
from fakekube.apimachinery.schema.model import Type

Object = dict[str, Any]


class ConfigurationError(Exception):
    """A configuration cannot be applied; the message is the real server's."""


def merged(type: Type, live: Object, configuration: Object, *, custom: bool) -> Object:
    """Merges the configuration into the object; the result shares parts with both.

    Args:
        type: the type of both. With `custom` it is that of a custom resource, where kind and apiVersion are ordinary fields.
        live: the object, which need not conform to its type.
        configuration: must not set atomic lists, maps or structs.

    Raises ConfigurationError.
    """
    atom = _atom(type, custom=custom)
    applied = _checked(atom, configuration, "patch object")
    atomics = list(atom.atomics(applied.value, ""))
    if atomics:
        text = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        raise ConfigurationError(f"invalid ApplyConfiguration: {text}")
    _checked(atom, _without_managed_fields(live), "original object", duplicates=True)
    found: Object = atom.merge(live, applied.value)
    return found


def _without_managed_fields(obj: Object) -> Object:
    """Returns the object without managedFields, which need no validation and are large."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: item for name, item in metadata.items() if name != "managedFields"}}


def _checked(atom: Atom, value: Object, what: str, *, duplicates: bool = False) -> Typed:
    try:
        return Typed(value, "", atom).check(duplicates=duplicates)
    except TypingError as error:
        raise ConfigurationError(f"failed to convert {what} to typed object: {error}") from None


def _atom(type: Type, *, custom: bool) -> Atom:
    if not custom:
        return atom_of(type)
    known: Atom | None = type.compiled.get("apply configuration")
    if known is None:
        known = type.compiled["apply configuration"] = custom_atom_of(type)
    return known
