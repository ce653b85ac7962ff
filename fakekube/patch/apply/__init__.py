"""Server-side apply and the managedFields of all writes.

`FieldManager` is what the verbs use; `scale` maps the books of an object to its scale and back. Below it,
each module is one idea: `elements` (names of fields and items), `fields` (sets of them), `atoms`, `maps` and
`lists` (what the shapes do with values), `schema` (atoms of types), `entries` (managedFields), `updater` (the
algorithm), `changes` (what is remembered of what it found).
"""

from __future__ import annotations

from fakekube.patch.apply.manager import FieldManager, OtherVersion, excluding, including

__all__ = ["FieldManager", "OtherVersion", "excluding", "including"]
