"""How endpoints are distributed over EndpointSlices: as few changes as possible, no slice over its limit.

Endpoints of the same ports stand together. A slice keeps the endpoints that are still wanted; new ones go into slices that
change anyway, then into the fullest that has room for all that are left, then into new slices.

Invariant: after the plan is carried out each wanted endpoint is in exactly one slice of its ports.

Specified by: k8s.io/endpointslice/reconciler.go (reconcileByPortMapping), utils.go (getSliceToFill), util/endpointset.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fakekube.controllers.controller_ref_manager import new_controller_ref

__all__ = ["Group", "Plan", "new_slice", "plan", "port_key"]

Object = dict[str, Any]
EndpointKey = tuple[tuple[str, ...], str, str, str]


def port_key(ports: Iterable[Mapping[str, Any]] | None) -> str:
    """What tells sets of ports apart."""
    return json.dumps(sorted(json.dumps(port, sort_keys=True) for port in ports or ()))


def endpoint_key(endpoint: Mapping[str, Any]) -> EndpointKey:
    """What tells endpoints apart."""
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
    """An EndpointSlice that is not yet created, named after its owner.

    Args:
        owner: the Service or the Endpoints that the slice belongs to.
        metadata: the labels, and the annotations if there are any.
        family: the addressType, IPv4 or IPv6.
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


@dataclass(slots=True)
class Group:
    """The endpoints that are wanted with the same ports."""

    ports: list[Object]
    endpoints: dict[EndpointKey, Object] = field(default_factory=dict)

    def add(self, endpoint: Object) -> None:
        """One more endpoint."""
        self.endpoints[endpoint_key(endpoint)] = endpoint


@dataclass(slots=True)
class Plan:
    """What is to be written."""

    create: list[Object] = field(default_factory=list)
    update: list[Object] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    unchanged: list[Object] = field(default_factory=list)

    def recycle(self, usable: Callable[[Object, Object], bool]) -> None:
        """Let slices that would be deleted become those that would be created."""
        for slice_ in list(self.delete):
            if self.create and usable(slice_, self.create[-1]):
                self.delete.remove(slice_)
                made = self.create.pop()
                metadata = {**made["metadata"], "name": slice_["metadata"]["name"]}
                self.update.append({**made, "metadata": metadata})


def plan(
    existing: Sequence[Object],
    group: Group,
    new: Callable[[list[Object]], Object],
    labelled: Callable[[Object], Object | None],
    limit: int,
) -> Plan:
    """The plan for the endpoints of one set of ports.

    Args:
        existing: the slices that have these ports.
        group: what is wanted.
        new: makes a slice of endpoints.
        labelled: the slice with the labels that it should have, or None if it has them.
        limit: most endpoints of a slice.
    """
    wanted = dict(group.endpoints)
    made = Plan()
    for slice_ in existing:
        kept = [wanted.pop(key) for key in map(endpoint_key, slice_.get("endpoints") or ()) if key in wanted]
        relabelled = labelled(slice_)
        if not kept:
            made.delete.append(slice_)
        elif kept != (slice_.get("endpoints") or []) or relabelled is not None:
            made.update.append({**(relabelled or slice_), "endpoints": kept})
        else:
            made.unchanged.append(slice_)
    left = list(wanted.values())
    for slice_ in sorted(made.update, key=lambda one: -len(one["endpoints"])):
        room = limit - len(slice_["endpoints"])
        slice_["endpoints"] = slice_["endpoints"] + left[:room]
        left = left[room:]
    while left:
        filled = _to_fill(made.unchanged, len(left), limit) if len(left) < limit else None
        if filled is not None:
            made.unchanged.remove(filled)
            made.update.append({**filled, "endpoints": filled["endpoints"] + left})
            left = []
        elif made.delete:
            slice_ = made.delete.pop(0)
            made.update.append({**(labelled(slice_) or slice_), "endpoints": left[:limit]})
            left = left[limit:]
        else:
            made.create.append(new(left[:limit]))
            left = left[limit:]
    return made


def _to_fill(slices: Iterable[Object], count: int, limit: int) -> Object | None:
    """The slice that is fullest once so many endpoints are added."""
    fitting = [one for one in slices if len(one["endpoints"]) + count <= limit]
    return max(fitting, key=lambda one: len(one["endpoints"]), default=None)
