"""Server-side apply and the managedFields of all writes.

The verbs use `FieldManager`; `scale` maps the managedFields of an object to its scale and back. The other modules:
`elements` (path elements), `fields` (field sets), `atoms`, `containers` (the operations on values), `schema`
(the atoms of types), `entries` (managedFields), `updater` (the algorithm), `changes` (a cache of its results).
"""

from __future__ import annotations

from fakekube.apimachinery.patch.apply.manager import FieldManager, OtherVersion, excluding, including

__all__ = ["FieldManager", "OtherVersion", "excluding", "including"]
