"""The objects of a fresh server that depend on its service ranges: the ServiceCIDR `kubernetes`, the Service of that name and
its IPAddress; and how an object of a fresh server, as it was recorded, becomes one of now.

Invariant: the Service `kubernetes` has the first address of the first network.

Specified by: pkg/controlplane/controller/kubernetesservice and …/defaultservicecidr.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fakekube.apimachinery.patch.apply.schema import OBJECT_META
from fakekube.apimachinery.schema import printing
from fakekube.apimachinery.schema.builtin import type_of
from fakekube.apis.rest.cluster_access import ServiceRanges
from fakekube.apis.well_known import LABEL_IP_ADDRESS_FAMILY
from fakekube.base.chance import random_uuid

Object = Mapping[str, Any]


def with_service_ranges(path: str, obj: Object, ranges: ServiceRanges) -> Object:
    """Returns a recorded object of a collection, by its path, as a server with these ranges has it."""
    change = _CHANGES.get(path)
    return obj if change is None else change(obj, ranges)


def _service_cidr(obj: Object, ranges: ServiceRanges) -> Object:
    return {**obj, "spec": {"cidrs": list(ranges.networks)}}


def _ip_address(obj: Object, ranges: ServiceRanges) -> Object:
    labels = {**obj["metadata"]["labels"], LABEL_IP_ADDRESS_FAMILY: ranges.families[0]}
    return {**obj, "metadata": {**obj["metadata"], "name": ranges.first_address, "labels": labels}}


def _service(obj: Object, ranges: ServiceRanges) -> Object:
    address = ranges.first_address
    changed = {"clusterIP": address, "clusterIPs": [address], "ipFamilies": [ranges.families[0]]}
    return {**obj, "spec": {**obj["spec"], **changed}}


_CHANGES: Mapping[str, Callable[[Object, ServiceRanges], Object]] = {
    "/api/v1/services": _service,
    "/apis/networking.k8s.io/v1/ipaddresses": _ip_address,
    "/apis/networking.k8s.io/v1/servicecidrs": _service_cidr,
}


def as_created_now(obj: Object, now: str) -> dict[str, Any]:
    """Returns a recorded object in storage form with the current time as its creation time."""
    meta = {**obj["metadata"], "uid": random_uuid(), "creationTimestamp": now, "resourceVersion": "0"}
    if "managedFields" in meta:
        meta["managedFields"] = [{**entry, "time": now} for entry in meta["managedFields"]]
    status = dict(obj.get("status") or {})
    if "conditions" in status:
        status["conditions"] = [{**condition, "lastTransitionTime": now} for condition in status["conditions"]]
    meta = printing.normalise(type_of(OBJECT_META), meta)  # sorts the fields
    return {**obj, "metadata": meta, **({"status": status} if status else {})}
