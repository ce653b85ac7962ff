"""The APIService and the resources of metrics.k8s.io.

They are apart from `metrics_server`, because every cluster with kubelets lists them in discovery, and few are asked for metrics.

Specified by: metrics-server manifests (apiservice.yaml), k8s.io/metrics/pkg/apis/metrics/v1beta1.
"""

from __future__ import annotations

from typing import Any, Final

_GROUP: Final = "metrics.k8s.io"
_VERSION: Final = "v1beta1"
GROUP_VERSION: Final = f"{_GROUP}/{_VERSION}"
#: The name of the APIService.
NAME: Final = f"{_VERSION}.{_GROUP}"
#: Resource → kind.
KINDS: Final = {"nodes": "NodeMetrics", "pods": "PodMetrics"}
VERBS: Final = ["get", "list"]

API_SERVICE: Final[dict[str, Any]] = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": NAME, "labels": {"k8s-app": "metrics-server"}},
    "spec": {
        "group": _GROUP,
        "version": _VERSION,
        "service": {"namespace": "kube-system", "name": "metrics-server", "port": 443},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    },
}

#: The resources in the format of aggregated discovery.
DISCOVERY: Final[tuple[dict[str, Any], ...]] = tuple(
    {
        "resource": plural,
        "responseKind": {"group": _GROUP, "version": _VERSION, "kind": kind},
        "scope": "Namespaced" if plural == "pods" else "Cluster",
        "singularResource": "",
        "verbs": VERBS,
    }
    for plural, kind in KINDS.items()
)
