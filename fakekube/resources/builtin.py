"""The built-in resources: rows of `data/` joined with the code of their kinds.

The tables name a kind's code as "module:attribute"; a module is imported when its kind is first used. A resource
without a row is served by the generic `Strategy`. The list of resources is made once per process and never changes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["CONVERSIONS", "STRATEGIES", "SUBRESOURCES"]

#: (group, plural) → the Strategy class of the resource.
STRATEGIES: dict[tuple[str, str], str] = {
    # -- pods, workloads, batch, configuration
    # -- the other kinds
}

#: (group, "plural/subresource") → a Strategy class (a view), a Projection, or an Action (see subresources.py).
#: A /status without a row is a view through the kind's own strategy with its status and spec kept apart.
SUBRESOURCES: dict[tuple[str, str], str] = {
    # -- pods, workloads, batch, configuration
    # -- the other kinds
}

#: (group, version, plural) of a version that is not stored → ("module:to_storage", "module:from_storage").
CONVERSIONS: dict[tuple[str, str, str], tuple[str, str]] = {
}

#: (group, plural) → (bucket, group, version) where resources share storage or store another than their only version.
STORED_AS: dict[tuple[str, str], tuple[str, str]] = {
    ("events.k8s.io", "events"): ("events", "v1"),
}


def attribute(path: str) -> Any:
    """What a "module:attribute" of the tables names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
