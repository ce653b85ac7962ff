"""Keeps the package fakekube out of pytest's rewriting of assertions, so that the first cluster of a run is made sooner.

pytest rewrites all modules of a distribution that has a plugin: it compiles them again, in each run if it may not write bytecode.
Nothing of fakekube asserts what a test should see. A finder before pytest's loads the modules of the package as any program does,
from the bytecode that the installation compiled.

Invariant: only modules of fakekube are found here; the finder is there while pytest runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final

__all__ = ["FINDER"]


class _Finder:
    """Finds the modules of fakekube by `sys.path`; an entry of `sys.meta_path`."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the module's specification; None for a module of other packages."""
        return PathFinder.find_spec(name, path, target) if name.startswith("fakekube.") else None

    def install(self) -> None:
        """Puts the finder first. May be called twice."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Takes the finder away again. May be called twice."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


FINDER: Final = _Finder()
