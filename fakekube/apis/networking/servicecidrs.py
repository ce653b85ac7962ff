"""ServiceCIDRs, the networks from which cluster IPs are allocated, and IPAddresses, one for each allocated address.

The server creates one for every cluster IP of a Service, and deletes it with the Service; users can create others.

Specified by: pkg/registry/networking/servicecidr, pkg/apis/networking/validation (ValidateServiceCIDR), pkg/api/servicecidr;
pkg/registry/networking/ipaddress, pkg/apis/networking/validation (ValidateIPAddress),
pkg/registry/core/service/ipallocator/ipallocator.go (createIPAddress).
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError, field
from fakekube.apimachinery.errors.field import invalid, required
from fakekube.apis.rest.strategy import Object, RevalidatingStrategy, StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import ip
from fakekube.apis.validation.checks import invalid_each
from fakekube.apis.validation.names import dns_subdomain, path_segment
from fakekube.apis.validation.rules import NEVER, by_minor, changes, fixed, immutable
from fakekube.apis.validation.to_internal import to_internal
from fakekube.apis.well_known import LABEL_IP_ADDRESS_FAMILY
from fakekube.base.chance import random_uuid

PATH = "spec.cidrs"
ONE_PER_FAMILY = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


class ServiceCIDRStrategy(Strategy):
    """The strategy of servicecidrs."""

    has_status = True

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _networks(_cidrs(obj))

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        new, before = _cidrs(obj), _cidrs(old)
        if len(new) == len(before):
            return [field.immutable(f"{PATH}[{i}]", new[i]) for i, cidr in enumerate(before) if cidr != new[i]]
        if len(before) == 1 and len(new) == 2:
            errors = [field.immutable(f"{PATH}[0]", new[0])] if new[0] != before[0] else []
            return errors + _networks(new)
        return [field.immutable(PATH, (obj.get("spec") or {}).get("cidrs"))]

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("status",)]


STATUS = StatusStrategy(keeps_metadata=True, resets=(("metadata",), ("spec",)))


def _cidrs(obj: Object) -> list[str]:
    return obj.get("spec", {}).get("cidrs") or []


def _networks(cidrs: list[str]) -> list[FieldError]:
    if not cidrs:
        return [required(PATH, "at least one CIDR required")]
    if len(cidrs) > 2:
        return [invalid(PATH, {"CIDRs": cidrs}, "may only hold up to 2 values")]
    errors = [error for i, cidr in enumerate(cidrs) for error in ip.cidr(f"{PATH}[{i}]", cidr)]
    networks = [ip.parse_cidr(cidr) for cidr in cidrs]
    families = {network.network.version for network in networks if network}
    if len(cidrs) == 2 and len(families) == 1 and None not in networks:
        errors.append(invalid(PATH, cidrs, ONE_PER_FAMILY))
    return errors


MANAGED_BY_LABEL = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR = "ipallocator.k8s.io"

_OWNED_FIELDS: Object = {
    "f:metadata": {"f:labels": {".": {}, f"f:{LABEL_IP_ADDRESS_FAMILY}": {}, f"f:{MANAGED_BY_LABEL}": {}}},
    "f:spec": {"f:parentRef": {".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}}},
}


class IPAddressStrategy(RevalidatingStrategy):
    """The strategy of ipaddresses."""

    suffixes_names = False

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return [error.detail for error in ip.ip("", name)]

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return parent_reference(obj.get("spec", {}).get("parentRef"), "spec.parentRef")

    def validate_change(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        return IP_ADDRESS_CHANGES.validate(obj, old)


def _shown_parent(reference: Object | None) -> Object | None:
    return None if reference is None else to_internal("ParentReference", reference)


IP_ADDRESS_CHANGES = changes(
    "IPAddress", "ValidateIPAddressUpdate", *by_minor("spec.parentRef", (immutable(_shown_parent), 0, 37), (fixed(), 37, NEVER))
)


def parent_reference(reference: Object | None, path: str) -> list[FieldError]:
    """Validates the reference to the owner of the address (validateIPAddressParentReference)."""
    if reference is None:
        return [required(path)]
    errors: list[FieldError] = []
    group, resource = reference.get("group", ""), reference.get("resource", "")
    name, namespace = reference.get("name", ""), reference.get("namespace", "")
    if group:
        errors += invalid_each(f"{path}.group", group, dns_subdomain(group))
    for member, value in (("resource", resource), ("name", name)):
        where = f"{path}.{member}"
        errors += invalid_each(where, value, path_segment(value)) if value else [required(where)]
    if namespace:
        errors += invalid_each(f"{path}.namespace", namespace, path_segment(namespace))
    return errors


def service_ip_address(context: WriteContext, address: str, service: str) -> Object:
    """Returns the IPAddress of a cluster IP of the Service with this name, in the namespace of the write."""
    now = context.now()
    owner = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "networking.k8s.io/v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": _OWNED_FIELDS,
    }
    family = "IPv6" if ip.is_ipv6(address) else "IPv4"
    return {
        "metadata": {
            "name": address,
            "uid": random_uuid(),
            "creationTimestamp": now,
            "labels": {LABEL_IP_ADDRESS_FAMILY: family, MANAGED_BY_LABEL: ALLOCATOR},
            "managedFields": [owner],
        },
        "spec": {"parentRef": {"resource": "services", "namespace": context.namespace, "name": service}},
    }
