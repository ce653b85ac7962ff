"""Finds the resources of aggregated API servers in the aggregated discovery document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["ACCEPT", "Place", "ResourceElsewhere", "resources_in"]

ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Place(Protocol):
    """The properties of a resource that a client needs for requests."""

    @property
    def group(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def plural(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def namespaced(self) -> bool: ...

    @property
    def api_version(self) -> str: ...


@dataclass(slots=True, frozen=True)
class ResourceElsewhere:
    """A resource of an aggregated API server."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    names: frozenset[str]
    """All in lower case: plural, singular, kind, short names."""
    verbs: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        """Returns the apiVersion of objects."""
        return f"{self.group}/{self.version}" if self.group else self.version


def resources_in(document: dict[str, Any]) -> Iterator[ResourceElsewhere]:
    """Returns the resources of a discovery document, in its order."""
    for group in document.get("items") or ():
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            for entry in version.get("resources") or ():
                kind = (entry.get("responseKind") or {}).get("kind", "")
                names = {entry["resource"], entry.get("singularResource", ""), kind, *(entry.get("shortNames") or ())}
                known = frozenset(one.lower() for one in names if one)
                yield ResourceElsewhere(
                    name,
                    version["version"],
                    entry["resource"],
                    kind,
                    entry.get("scope") == "Namespaced",
                    known,
                    frozenset(entry.get("verbs") or ()),
                )
