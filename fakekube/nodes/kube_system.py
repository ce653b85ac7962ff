"""The system components of a new kind cluster, as objects: `fakekube serve --kube-system`.

The control plane's pods are on the first node; CoreDNS, kube-proxy and kindnet are workloads, whose pods the controllers make, as
is the metrics-server that a cluster with metrics.k8s.io has. They do nothing: names resolve, traffic flows and metrics are
served without them. They are there for clients that look for system pods first.

Specified by: kubeadm (cmd/kubeadm/app/phases: controlplane, etcd, addons/dns, addons/proxy); kind (pkg/build/nodeimage).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakekube.apis.rest.cluster_access import ServiceRanges
from fakekube.apis.well_known import NAMESPACE_SYSTEM, TAINT_EFFECT_NO_SCHEDULE
from fakekube.base.objects import Object

#: The range of addresses for Services of kind.
SERVICE_SUBNET: Final = "10.96.0.0/16"

#: Component of the control plane → (image, port of its probes); `{version}` is that of the cluster.
_CONTROL_PLANE: Final = {
    "etcd": ("registry.k8s.io/etcd:3.6.8-0", 2381),
    "kube-apiserver": ("registry.k8s.io/kube-apiserver:{version}", 6443),
    "kube-controller-manager": ("registry.k8s.io/kube-controller-manager:{version}", 10257),
    "kube-scheduler": ("registry.k8s.io/kube-scheduler:{version}", 10259),
}


def kube_system(node: str, version: str, *, metrics: bool, storage: bool, subnet: str = SERVICE_SUBNET) -> Iterator[Object]:
    """Yields the objects of the system components.

    Args:
        node: the name of the node with the control plane.
        version: the version of the cluster, such as v1.36.3.
        metrics: whether the cluster serves metrics.k8s.io.
        storage: whether the cluster provisions volumes.
        subnet: the range of addresses for Services.
    """
    if storage:
        yield _STORAGE_CLASS
    for name in ("coredns", "kube-proxy", "kindnet", *(("metrics-server",) if metrics else ())):
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE_SYSTEM}}
    for name, (image, port) in _CONTROL_PLANE.items():
        yield _static_pod(name, node, image.format(version=version), port)
    metadata = {"name": "coredns", "namespace": NAMESPACE_SYSTEM}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"Corefile": _COREFILE}}
    dns = _service("kube-dns", "kube-dns", _DNS_PORTS, {"kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"})
    dns["spec"]["clusterIP"] = ServiceRanges((subnet,)).dns_address
    yield dns
    yield _workload("Deployment", "coredns", "kube-dns", "registry.k8s.io/coredns/coredns:v1.13.1", replicas=2)
    yield _workload("DaemonSet", "kube-proxy", "kube-proxy", f"registry.k8s.io/kube-proxy:{version}")
    yield _workload("DaemonSet", "kindnet", "kindnet", "docker.io/kindest/kindnetd:v20260101")
    if metrics:
        yield _service("metrics-server", "metrics-server", _METRICS_PORTS)
        yield _workload("Deployment", "metrics-server", "metrics-server", "registry.k8s.io/metrics-server/metrics-server:v0.8.1")


#: Its claims wait for the first pod that uses them.
_STORAGE_CLASS: Final[Object] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "rancher.io/local-path",
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
}
#: As kubeadm writes it.
_COREFILE: Final = """.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
"""
_DNS_PORTS: Final = (
    {"name": "dns", "port": 53, "protocol": "UDP"},
    {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    {"name": "metrics", "port": 9153, "protocol": "TCP"},
)
#: Workload → the taints that its pods tolerate. Those of kube-proxy and kindnet run on every node.
_TOLERATIONS: Final[Mapping[str, Sequence[Object]]] = {
    "coredns": (
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": "node-role.kubernetes.io/control-plane", "effect": TAINT_EFFECT_NO_SCHEDULE},
    ),
    "kube-proxy": ({"operator": "Exists"},),
    "kindnet": ({"operator": "Exists", "effect": TAINT_EFFECT_NO_SCHEDULE},),
}
#: Workload → the ports of its container.
_CONTAINER_PORTS: Final[Mapping[str, Sequence[Object]]] = {
    "coredns": ({"name": "dns", "containerPort": 53, "protocol": "UDP"},),
    "metrics-server": ({"name": "https", "containerPort": 10250, "protocol": "TCP"},),
}
_METRICS_PORTS: Final = ({"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"},)


def _static_pod(name: str, node: str, image: str, port: int) -> Object:
    """Returns a component of the control plane, which the kubelet of a node runs from a file; `port` serves its probe."""
    probe = {"httpGet": {"path": "/livez", "port": port, "host": "127.0.0.1", "scheme": "HTTPS"}}
    container = {"name": name, "image": image, "command": [name], "livenessProbe": probe}
    metadata = {
        "name": f"{name}-{node}",
        "namespace": NAMESPACE_SYSTEM,
        "labels": {"component": name, "tier": "control-plane"},
        "annotations": {"kubernetes.io/config.source": "file"},
    }
    spec: dict[str, Any] = {
        "hostNetwork": True,
        "nodeName": node,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _service(name: str, app: str, ports: Sequence[Mapping[str, Any]], labels: Mapping[str, str] | None = None) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE_SYSTEM, "labels": {"k8s-app": app, **(labels or {})}},
        "spec": {"selector": {"k8s-app": app}, "ports": [dict(one) for one in ports]},
    }


def _workload(kind: str, name: str, app: str, image: str, *, replicas: int | None = None) -> Object:
    """Returns a Deployment or a DaemonSet; `replicas` is for the former, one by default."""
    labels = {"k8s-app": app}
    ports = _CONTAINER_PORTS.get(name, ())
    pod = {
        "serviceAccountName": name,
        "priorityClassName": "system-cluster-critical" if kind == "Deployment" else "system-node-critical",
        "tolerations": [dict(one) for one in _TOLERATIONS.get(name, ())],
        "containers": [{"name": name if name != "kindnet" else "kindnet-cni", "image": image, "ports": list(ports)}],
        **({"hostNetwork": True} if kind == "DaemonSet" else {}),
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    metadata = {"name": name, "namespace": NAMESPACE_SYSTEM, "labels": labels}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": labels},
            "template": template,
            **({} if replicas is None else {"replicas": replicas}),
        },
    }
