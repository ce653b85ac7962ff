"""The controllers of kube-controller-manager, in process, as clients of the API.

Changes and the clock drive them; they never poll. `Manager.settle` runs them until none has work left.
`controller_descriptors` lists all controllers, `reconciler` defines what a controller is, `manager` runs them. A new
controller is a subclass of `Reconciler` in a module here, and an entry of `CONTROLLERS`.

Specified by: cmd/kube-controller-manager/app, pkg/controller.
"""

from __future__ import annotations

from fakekube.controllers.controller_descriptors import (
    DELETION_GRACE,
    PROFILES,
    ControllerDescriptor,
    UnknownController,
    select_controllers,
)
from fakekube.controllers.manager import Idle, Manager
from fakekube.controllers.reconciler import Context, Key, Reconciler

__all__ = [
    "DELETION_GRACE",
    "PROFILES",
    "Context",
    "ControllerDescriptor",
    "Idle",
    "Key",
    "Manager",
    "Reconciler",
    "UnknownController",
    "select_controllers",
]
