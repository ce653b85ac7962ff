"""What a control plane does on its own: controllers that use the API as any client does, in process.

They are driven by changes and by the clock, never by polling, and `Manager.settle` runs them until nothing is left to
do. `table` says which there are, and which of them run; `reconciler` what a controller is; `manager` runs them.
"""

from __future__ import annotations

from fakekube.controllers.manager import Manager
from fakekube.controllers.reconciler import Context, Key, Reconciler
from fakekube.controllers.table import DELETION_GRACE, PROFILES, Row, UnknownController, enabled

__all__ = ["DELETION_GRACE", "PROFILES", "Context", "Key", "Manager", "Reconciler", "Row", "UnknownController", "enabled"]
