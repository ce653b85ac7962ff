"""The sample of a check: prerequisites, and objects that are copied to make the client react.

CustomResourceDefinitions are prerequisites, and so are the namespaces of the other objects. All other objects are copied under
new names; references between objects of the sample become references between the copies.

Invariant: a copy differs from the sample only in names and in fields that the server assigns (nodePort, clusterIP).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakekube.cluster.testing.manifests import objects
from fakekube.cluster_options import Source

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping, Sequence

    from fakekube.controllers.objects import Object

_DEFINITIONS = frozenset({"CustomResourceDefinition"})

#: Fields whose values are not references to objects, and are not renamed, so that selectors still match.
_NOT_REFERENCES = frozenset({"labels", "annotations", "matchLabels", "selector", "nodeSelector"})

#: The letters of tokens: no vowels, and no letters that look alike.
_LETTERS = "bcdfghjkmnpqrstvwxz2456789"

_LONGEST_NAME = 63


def new_token(dice: random.Random) -> str:
    """Returns a random suffix for the names of a copy."""
    return "".join(dice.choice(_LETTERS) for _ in range(6))


def changes_of_texts(obj: Object, ending: str) -> list[Object]:
    """Returns merge patches; each appends an ending to one string in the data or the spec of an object."""
    return [{part: change} for part in ("data", "spec") for change in _changes(obj.get(part), ending)]


def _changes(value: Any, ending: str) -> Iterator[Any]:
    """Yields the merge patches that each change one string in a value."""
    if isinstance(value, str):
        yield f"{value}-{ending}"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from ({key: change} for change in _changes(inner, ending))


@dataclass(slots=True, frozen=True)
class Sample:
    """The prerequisites and the objects to copy (stimuli)."""

    prerequisites: Sequence[Object]
    stimuli: Sequence[Object]

    @classmethod
    def of(cls, *sources: Source) -> Sample:
        """Reads a sample from files, folders, YAML text or objects. Raises ManifestError."""
        found = objects(*sources)
        used = {_metadata(obj).get("namespace") for obj in found if obj["kind"] != "Namespace"}
        needed = [
            obj
            for obj in found
            if obj["kind"] in _DEFINITIONS or (obj["kind"] == "Namespace" and _metadata(obj).get("name") in used)
        ]
        named = {_metadata(obj).get("name") for obj in needed if obj["kind"] == "Namespace"}
        made = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            for name in sorted({str(name) for name in used if name} - named - {"default"})
        ]
        return cls([*needed, *made], [obj for obj in found if not any(obj is one for one in needed)])

    def copies(self, token: str) -> list[Object]:
        """Returns the stimuli under new names, which end with the token."""
        names = {name: _renamed(name, token) for name in map(_name, self.stimuli)}
        return [_copied(obj, names) for obj in self.stimuli]

    @property
    def definitions(self) -> list[Object]:
        return [obj for obj in self.prerequisites if obj["kind"] in _DEFINITIONS]


def _metadata(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return obj.get("metadata") or {}


def _name(obj: Mapping[str, Any]) -> str:
    metadata = _metadata(obj)
    return str(metadata.get("name") or str(metadata.get("generateName") or "sample").rstrip("-"))


def _renamed(name: str, token: str) -> str:
    return f"{name[: _LONGEST_NAME - len(token) - 1].rstrip('-.')}-{token}"


def _copied(obj: Object, names: Mapping[str, str]) -> Object:
    new: Object = _with_references(copy.deepcopy(obj), names)
    metadata = new.setdefault("metadata", {})
    metadata.pop("generateName", None)
    metadata["name"] = names[_name(obj)]
    for assigned in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"):
        metadata.pop(assigned, None)
    new.pop("status", None)
    if new["kind"] == "Service":
        _release_addresses(new.get("spec") or {})
    return new


def _with_references(value: Any, names: Mapping[str, str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {
            inner: part if inner in _NOT_REFERENCES else _with_references(part, names, inner) for inner, part in value.items()
        }
    if isinstance(value, list):
        return [_with_references(part, names, key) for part in value]
    return _reference(value, names) if isinstance(value, str) and key not in ("kind", "apiVersion", "namespace") else value


def _reference(text: str, names: Mapping[str, str]) -> str:
    """Renames `NAME`, `NAMESPACE/NAME` and `NAME.NAMESPACE.svc…`."""
    if text in names:
        return names[text]
    first, slash, last = text.rpartition("/")
    if slash and last in names and "/" not in first:
        return f"{first}/{names[last]}"
    host, dot, domain = text.partition(".")
    if dot and host in names and (domain.endswith(".svc") or ".svc." in domain):
        return f"{names[host]}.{domain}"
    return text


def _release_addresses(spec: Object) -> None:
    if spec.get("clusterIP") != "None":
        spec.pop("clusterIP", None)
        spec.pop("clusterIPs", None)
    for port in spec.get("ports") or ():
        port.pop("nodePort", None)
