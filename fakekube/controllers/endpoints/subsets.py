"""Computes the canonical form of Endpoints: addresses with the same ports are in the same subset.

The real controller sorts ports and subsets by a hash of their Go structs; here they are sorted by their content.

Specified by: pkg/api/v1/endpoints/util.go (RepackSubsets, SortSubsets).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from fakekube.controllers.objects import Object

__all__ = ["repack_subsets"]

_AddressKey = tuple[str, str]


def repack_subsets(subsets: Iterable[Mapping[str, Any]]) -> list[Object]:
    """Returns subsets in their canonical form. An address that is both ready and not ready for a port is not ready."""
    addresses: dict[_AddressKey, Object] = {}
    ready_by_port: dict[str, dict[_AddressKey, bool]] = {}
    for subset in subsets:
        for port in subset.get("ports") or (None,):
            ready = ready_by_port.setdefault(_text(port), {})
            for field, is_ready in (("addresses", True), ("notReadyAddresses", False)):
                for address in subset.get(field) or ():
                    key = (address["ip"], (address.get("targetRef") or {}).get("uid", ""))
                    addresses.setdefault(key, dict(address))
                    ready[key] = ready.get(key, True) and is_ready
    ports_by_addresses: dict[tuple[tuple[_AddressKey, bool], ...], list[Object]] = {}
    for port_text, states in ready_by_port.items():
        ports = ports_by_addresses.setdefault(tuple(sorted(states.items())), [])
        if port_text != _text(None):
            ports.append(json.loads(port_text))
    made = [_subset(members, sorted(ports, key=_text), addresses) for members, ports in ports_by_addresses.items()]
    return sorted(made, key=_text)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _subset(members: Iterable[tuple[_AddressKey, bool]], ports: list[Object], addresses: Mapping[_AddressKey, Object]) -> Object:
    made: Object = {}
    for field, wanted in (("addresses", True), ("notReadyAddresses", False)):
        found = [addresses[key] for key, ready in members if ready is wanted]
        if found:
            made[field] = found
    if ports:
        made["ports"] = ports
    return made
