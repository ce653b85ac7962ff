"""The nodes of a cluster, as a test author changes them: `cluster.nodes`.

Everything here goes through the API. A node fails by losing its kubelet, which its label says: what follows (conditions,
taints, eviction) is the business of controllers and of the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fakekube.client import ApiError, Client
from fakekube.controllers.kubelets import LABEL, SILENT
from fakekube.nodes.node_status import CAPACITY

__all__ = ["Nodes", "node_named"]

Object = dict[str, Any]

#: Keywords of `add` that stand for resources whose names are no words of Python.
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
    """A Node as its kubelet registers it, see `Nodes.add`."""
    room = dict(CAPACITY) | {_RESOURCES.get(key, key): str(value) for key, value in (resources or {}).items()}
    given = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        **(labels or {}),
        **({LABEL: SILENT} if silent else {}),
    }
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": given, **({"annotations": dict(annotations)} if annotations else {})},
        "spec": {"taints": [dict(taint) for taint in taints]} if taints else {},
        "status": {"capacity": room, "allocatable": room},
    }


class Nodes:
    """See the module.

    Args:
        client: of the cluster.
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
        """One node. Raises ApiError."""
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
        """Add a node; it is ready as soon as controllers have settled. Returns it as it was created. Raises ApiError.

        Args:
            labels: beside those that every kubelet gives its node (hostname, os, arch).
            annotations: of the node.
            taints: mappings of key, value and effect.
            silent: without a kubelet: the test writes the status of the node, and of its pods.
            resources: what it has for pods, by name, for names such as "example.com/gpu".
            more: the same for short names: cpu=4, memory="8Gi", pods=20, ephemeral_storage="10Gi".
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
        """Delete the node; its pods go when pod garbage is collected. Raises ApiError."""
        self._client.delete("nodes", name)

    def cordon(self, name: str) -> None:
        """Let no more pods be scheduled to the node. Raises ApiError."""
        self._client.patch("nodes", name, {"spec": {"unschedulable": True}})

    def uncordon(self, name: str) -> None:
        """The opposite. Raises ApiError."""
        self._client.patch("nodes", name, {"spec": {"unschedulable": None}})

    def fail(self, name: str) -> None:
        """The kubelet dies: no heartbeats, and nothing happens to its pods. Raises ApiError.

        After 50 seconds of the clock the node is unknown and its pods are not ready; five minutes later they are driven out,
        unless every node has failed.
        """
        self._client.patch("nodes", name, {"metadata": {"labels": {LABEL: SILENT}}})

    def recover(self, name: str) -> None:
        """The kubelet comes back. Raises ApiError."""
        self._client.patch("nodes", name, {"metadata": {"labels": {LABEL: None}}})

    def taint(self, name: str, key: str, *, effect: str, value: str = "") -> None:
        """Add a taint, or change the value of the one with this key and effect. Raises ApiError."""
        made = {"key": key, **({"value": value} if value else {}), "effect": effect}
        self._set_taints(name, lambda taints: [one for one in taints if not _is(one, key, effect)] + [made])

    def untaint(self, name: str, key: str, *, effect: str | None = None) -> None:
        """Take off the taints with this key (and effect). Raises ApiError."""
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
