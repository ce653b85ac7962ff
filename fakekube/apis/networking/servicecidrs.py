"""ServiceCIDRs: the networks from which cluster IPs are allocated.

Specified by: pkg/registry/networking/servicecidr, pkg/apis/networking/validation (ValidateServiceCIDR),
pkg/api/servicecidr.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import immutable, invalid, required
from fakekube.apis.rest.strategy import Object, StatusStrategy, Strategy, WriteContext
from fakekube.apis.validation import ip

__all__ = ["STATUS", "ServiceCIDRStrategy"]

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
            return [immutable(f"{PATH}[{i}]", new[i]) for i, cidr in enumerate(before) if cidr != new[i]]
        if len(before) == 1 and len(new) == 2:
            errors = [immutable(f"{PATH}[0]", new[0])] if new[0] != before[0] else []
            return errors + _networks(new)
        return [immutable(PATH, (obj.get("spec") or {}).get("cidrs"))]

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
