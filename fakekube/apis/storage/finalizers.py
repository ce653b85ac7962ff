"""The finalizers that protect volumes, claims and attributes classes in use.

Specified by: pkg/volume/util/finalizer.go.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PVC_PROTECTION", "PV_PROTECTION", "VAC_PROTECTION"]

PVC_PROTECTION: Final = "kubernetes.io/pvc-protection"
PV_PROTECTION: Final = "kubernetes.io/pv-protection"
VAC_PROTECTION: Final = "kubernetes.io/vac-protection"
