"""Server-side apply and the managedFields of all writes.

The verbs use `FieldManager` of `manager`. `updater` is the algorithm: owners after a change, conflicts, and the managedFields of
an object as those of its scale. `managed_fields` decodes, encodes and caps managedFields, `fieldpath` has path elements and field
sets, `atoms` and `containers` the operations on values, `schema` the atoms of types.
"""

from __future__ import annotations

from fakekube.apimachinery.patch.apply.manager import FieldManager, OtherVersion, decode_unstructured, excluding, including
from fakekube.apimachinery.patch.apply.updater import without_managed_fields

__all__ = ["FieldManager", "OtherVersion", "decode_unstructured", "excluding", "including", "without_managed_fields"]
