"""The controllers of this room, by the names that --controllers uses: the kubelets, kwok's stages, and metrics-server.

They are selected together with those of kube-controller-manager (`controllers.select_controllers`), which know nothing of this
room: `cluster.components` and the command line hand them over.

Invariant: importing this module imports no controller, so that a controller that does not run costs nothing.

Specified by: cmd/kubelet and pkg/kubelet of Kubernetes; sigs.k8s.io/kwok/pkg/kwok/controllers/stages_manager.go;
cmd/metrics-server of sigs.k8s.io/metrics-server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fakekube.controllers.controller_descriptors import ControllerDescriptor

if TYPE_CHECKING:
    from fakekube.controllers.reconciler import Reconciler


def new_stage_controller() -> Reconciler:
    """Returns the controller of kwok, which plays Stage objects."""
    from fakekube.nodes.stages.controller import StageController

    return StageController()


def new_kubelet() -> Reconciler:
    """Returns the controller that does the work of all kubelets."""
    from fakekube.nodes.kubelet import Kubelet

    return Kubelet()


def new_metrics_server() -> Reconciler:
    """Returns the controller of metrics-server, which only registers its API; `metrics_api` serves it."""
    from fakekube.nodes.metrics_server import MetricsServer

    return MetricsServer()


def _is_node_or_assigned_pod(obj: Mapping[str, Any]) -> bool:
    """Reports whether this is a node, whose Lease and status a kubelet maintains, or a pod that a kubelet has to run.

    Pods without a node are those of the scheduler.
    """
    return "containers" not in obj.get("spec", {}) or bool(obj["spec"].get("nodeName"))


# No change starts metrics-server: it serves an API, and has nothing to reconcile. A fresh cluster has no Stage, so that the stage
# controller of most clusters never starts.

NODE_CONTROLLERS: Final[tuple[ControllerDescriptor, ...]] = (
    ControllerDescriptor("kwok-stage-controller", new_stage_controller, ("stages.kwok.x-k8s.io",)),
    ControllerDescriptor("kubelet", new_kubelet, ("nodes", "pods"), _is_node_or_assigned_pod),
    ControllerDescriptor("metrics-server", new_metrics_server, ()),
)
"""In the order in which they are started, after those of `controllers.controller_descriptors.CONTROLLERS`."""
