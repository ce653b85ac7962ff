"""The nodes of a cluster, for tests: `cluster.nodes`.

All methods use the API. A node fails by the loss of its kubelet, which a label marks; conditions, taints and eviction follow from
the controllers and the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from fakekube.base.objects import Object
from fakekube.controllers.client import ApiError, Client
from fakekube.controllers.node_lifecycle import KUBELET_LABEL, SILENT
from fakekube.nodes.kubelet_node_status import CAPACITY

#: Keywords of `add` → resources whose names are not Python identifiers.
_RESOURCES: Final = {"ephemeral_storage": "ephemeral-storage"}


def node_named(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    silent: bool = False,
    resources: Mapping[str, object] | None = None,
) -> Object:
    """Returns a Node as its kubelet registers it, see `Nodes.add`."""
    capacity = dict(CAPACITY) | {_RESOURCES.get(key, key): str(value) for key, value in (resources or {}).items()}
    all_labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        **(labels or {}),
        **({KUBELET_LABEL: SILENT} if silent else {}),
    }
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": all_labels, **({"annotations": dict(annotations)} if annotations else {})},
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


class Nodes:
    """The nodes of a cluster: iterates over them, and adds, changes and removes them.

    Args:
        client: a client of the cluster.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def __iter__(self) -> Iterator[Object]:
        return iter(self._client.list("nodes"))

    def __len__(self) -> int:
        return len(self._client.list("nodes"))

    def __contains__(self, name: object) -> bool:
        return any(node["metadata"]["name"] == name for node in self)

    def __getitem__(self, name: str) -> Object:
        """Returns one node. Raises ApiError."""
        return self._client.get("nodes", name)

    def add(
        self,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        silent: bool = False,
        resources: Mapping[str, object] | None = None,
        **more: object,
    ) -> Object:
        """Adds a node; it is ready as soon as the controllers have settled. Returns it as created. Raises ApiError.

        Args:
            name: the name of the node.
            labels: of the node, in addition to those of every kubelet (hostname, os, arch).
            annotations: of the node.
            taints: mappings of key, value and effect.
            silent: the node has no kubelet: the test writes the status of the node and of its pods.
            resources: capacity and allocatable by name, for names such as "example.com/gpu".
            more: resources with names that are Python identifiers: cpu=4, memory="8Gi", pods=20, ephemeral_storage="10Gi".
        """
        return self._client.create(
            node_named(
                name,
                labels=labels,
                annotations=annotations,
                taints=taints,
                silent=silent,
                resources={**(resources or {}), **more},
            )
        )

    def remove(self, name: str) -> None:
        """Deletes the node; the pod garbage collector deletes its pods. Raises ApiError."""
        self._client.delete("nodes", name)

    def cordon(self, name: str) -> None:
        """Makes the node unschedulable. Raises ApiError."""
        self._client.patch("nodes", name, {"spec": {"unschedulable": True}})

    def uncordon(self, name: str) -> None:
        """Makes the node schedulable again. Raises ApiError."""
        self._client.patch("nodes", name, {"spec": {"unschedulable": None}})

    def fail(self, name: str) -> None:
        """Stops the kubelet: there are no heartbeats, and its pods do not change. Raises ApiError.

        After 50 seconds of the clock the conditions of the node are Unknown and its pods are not ready. Five minutes later
        its pods are evicted, unless all nodes have failed.
        """
        self._client.patch("nodes", name, {"metadata": {"labels": {KUBELET_LABEL: SILENT}}})

    def recover(self, name: str) -> None:
        """Starts the kubelet again. Raises ApiError."""
        self._client.patch("nodes", name, {"metadata": {"labels": {KUBELET_LABEL: None}}})

    def taint(self, name: str, key: str, *, effect: str, value: str = "") -> None:
        """Adds a taint, or changes the value of the one with this key and effect. Raises ApiError."""
        made = {"key": key, **({"value": value} if value else {}), "effect": effect}
        self._set_taints(name, lambda taints: [one for one in taints if not _is(one, key, effect)] + [made])

    def untaint(self, name: str, key: str, *, effect: str | None = None) -> None:
        """Removes the taints with this key (and effect). Raises ApiError."""
        self._set_taints(name, lambda taints: [one for one in taints if not _is(one, key, effect)])

    def _set_taints(self, name: str, change: Callable[[list[Object]], list[Object]]) -> None:
        for _ in range(10):
            node = self._client.get("nodes", name)
            taints = change(node["spec"].get("taints") or [])
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            try:
                self._client.patch("nodes", name, {"metadata": version, "spec": {"taints": taints or None}})
            except ApiError as error:
                if error.reason != "Conflict":
                    raise
            else:
                return


def _is(taint: Mapping[str, str], key: str, effect: str | None) -> bool:
    return taint["key"] == key and effect in (None, taint.get("effect"))
