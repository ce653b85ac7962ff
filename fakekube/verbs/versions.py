"""Between the version that a request speaks and the one that is stored.

Only a few built-in kinds differ (events, autoscalers) and custom resources with several versions; for all others the
conversion is the identity and costs nothing.
"""

from __future__ import annotations

from typing import Any

from fakekube.resources.registry import Resource
from fakekube.resources.strategy import Object

__all__ = ["copied", "from_storage", "to_storage"]


def to_storage(resource: Resource, obj: Object) -> Object:
    """The object as it is stored."""
    return resource.to_storage(obj) if resource.to_storage else obj


def from_storage(resource: Resource, obj: Object) -> Object:
    """A stored object as this version shows it."""
    return resource.from_storage(obj) if resource.from_storage else obj


def copied(value: Any) -> Any:
    """A tree of its own: for the rare places where a tree that was handed on must be used again."""
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value
