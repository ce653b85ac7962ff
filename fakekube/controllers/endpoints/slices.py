"""Distributes endpoints over EndpointSlices, with as few writes as possible.

Endpoints with the same ports are in the same slices. A slice keeps its endpoints that are still desired. New ones are added to
slices that are written anyway, then to the fullest slice that can take all remaining ones, then to new slices.

Invariants: no slice exceeds the limit, but for the existing endpoints that it keeps. After the changes each desired endpoint is
in exactly one slice with its ports.

Specified by: k8s.io/endpointslice/reconciler.go (reconcileByPortMapping), utils.go (getSliceToFill), util/endpointset.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.controllers.objects import Object, new_controller_ref

__all__ = [
    "MANAGED_BY",
    "SLICES",
    "DesiredEndpoints",
    "SliceChanges",
    "new_slice",
    "port_key",
    "reconcile_by_port_mapping",
    "with_nil_lists",
]

EndpointKey = tuple[tuple[str, ...], str, str, str]

SLICES: Final = "endpointslices.discovery.k8s.io"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"


def port_key(ports: Iterable[Mapping[str, Any]] | None) -> str:
    """Returns a key that is equal for equal sets of ports (NewPortMapKey)."""
    return json.dumps(sorted(json.dumps(port, sort_keys=True) for port in ports or ()))


def endpoint_key(endpoint: Mapping[str, Any]) -> EndpointKey:
    """Returns a key that identifies an endpoint (hashEndpoint)."""
    reference = endpoint.get("targetRef") or {}
    return (
        tuple(sorted(endpoint.get("addresses") or ())),
        endpoint.get("hostname", ""),
        reference.get("namespace", ""),
        reference.get("name", ""),
    )


def new_slice(
    owner: Object, metadata: Mapping[str, Any], family: str, ports: Sequence[Object], endpoints: Sequence[Object]
) -> Object:
    """Returns an EndpointSlice for a creation, with a generated name that begins with that of its owner.

    Args:
        owner: the Service or the Endpoints that the slice belongs to.
        metadata: the labels, and the annotations if there are any.
        family: the addressType, IPv4 or IPv6.
        ports: the ports of the slice.
        endpoints: the endpoints of the slice.
    """
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            "generateName": f"{owner['metadata']['name']}-",
            "namespace": owner["metadata"]["namespace"],
            **metadata,
            "ownerReferences": [new_controller_ref(owner)],
        },
        "addressType": family,
        "endpoints": endpoints,
        "ports": ports,
    }


def with_nil_lists(slice_: Object) -> Object:
    """Returns the slice as it is written: empty lists are null, as nil slices of Go are."""
    return {**slice_, "endpoints": slice_["endpoints"] or None, "ports": slice_["ports"] or None}


@dataclass(slots=True)
class DesiredEndpoints:
    """The desired endpoints with the same ports."""

    ports: list[Object]
    endpoints: dict[EndpointKey, Object] = field(default_factory=dict)

    def add(self, endpoint: Object) -> None:
        """Adds an endpoint."""
        self.endpoints[endpoint_key(endpoint)] = endpoint


@dataclass(slots=True)
class SliceChanges:
    """The slices to write, and those that stay as they are."""

    create: list[Object] = field(default_factory=list)
    update: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    unchanged: list[Object] = field(default_factory=list)

    def add(self, other: SliceChanges) -> None:
        """Adds the writes of other changes."""
        self.create += other.create
        self.update += other.update
        self.delete += other.delete

    def recycle(self, usable: Callable[[Object, Object], bool]) -> None:
        """Replaces pairs of a deletion and a creation by updates (recycleSlices).

        Args:
            usable: whether the slice to delete, the first argument, can become the new one, the second argument.
        """
        for slice_ in list(self.delete):
            if self.create and usable(slice_, self.create[-1]):
                self.delete.remove(slice_)
                new = self.create.pop()
                metadata = {**new["metadata"], "name": slice_["metadata"]["name"]}
                self.update.append({**new, "metadata": metadata})


def reconcile_by_port_mapping(
    existing: Sequence[Object],
    desired: DesiredEndpoints,
    new: Callable[[list[Object]], Object],
    with_metadata: Callable[[Object], Object | None],
    limit: int,
) -> SliceChanges:
    """Returns the changes for the endpoints with one set of ports.

    Args:
        existing: the slices with these ports.
        desired: the desired endpoints.
        new: returns a new slice with endpoints.
        with_metadata: returns a slice with its desired labels and annotations; None if it has them.
        limit: the maximum number of endpoints in a slice.
    """
    wanted = dict(desired.endpoints)
    made = SliceChanges()
    for slice_ in existing:
        kept = [wanted.pop(key) for key in map(endpoint_key, slice_.get("endpoints") or ()) if key in wanted]
        updated = with_metadata(slice_)
        if not kept:
            made.delete.append(slice_)
        elif kept != (slice_.get("endpoints") or []) or updated is not None:
            made.update.append({**(updated or slice_), "endpoints": kept})
        else:
            made.unchanged.append(slice_)
    left = list(wanted.values())
    for slice_ in sorted(made.update, key=lambda one: -len(one["endpoints"])):
        room = limit - len(slice_["endpoints"])
        slice_["endpoints"] = slice_["endpoints"] + left[:room]
        left = left[room:]
    while left:
        filled = _get_slice_to_fill(made.unchanged, len(left), limit) if len(left) < limit else None
        if filled is not None:
            made.unchanged.remove(filled)
            made.update.append({**filled, "endpoints": filled["endpoints"] + left})
            left = []
        elif made.delete:
            slice_ = made.delete.pop(0)
            made.update.append({**(with_metadata(slice_) or slice_), "endpoints": left[:limit]})
            left = left[limit:]
        else:
            made.create.append(new(left[:limit]))
            left = left[limit:]
    return made


def _get_slice_to_fill(slices: Iterable[Object], count: int, limit: int) -> Object | None:
    """Returns the fullest slice to which so many endpoints can be added; None if there is none."""
    fitting = [one for one in slices if len(one["endpoints"]) + count <= limit]
    return max(fitting, key=lambda one: len(one["endpoints"]), default=None)
