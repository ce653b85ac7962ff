"""Validation of clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy of Services, alone and together.

A Service has one address of one family, or two addresses of both families. The first address is immutable; the second
can be added and removed.

Specified by: ValidateServiceClusterIPsRelatedFields and validateUpgradeDowngrade… of pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, invalid, required
from fakekube.apis.core.services.types import EXTERNAL_NAME, NONE, is_headless
from fakekube.apis.rest.strategy import Object
from fakekube.apis.validation import ip as addresses
from fakekube.apis.validation.checks import one_of

__all__ = ["SET_ONCE", "changed_cluster_ips", "changed_families", "cluster_ip_fields"]

FAMILIES = ("IPv4", "IPv6")
FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")

SET_ONCE = "may not change once set"


def cluster_ip_fields(spec: Object, old_spec: Object) -> list[FieldError]:
    """Validates clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy, alone and together."""
    if spec.get("type") == EXTERNAL_NAME:
        return []
    ips: list[str] = spec.get("clusterIPs") or []
    families: list[str] = spec.get("ipFamilies") or []
    path = "spec.clusterIPs"
    errors = _first_of_cluster_ips(spec.get("clusterIP", ""), ips, path)
    for index, family in enumerate(families):
        errors += one_of(family, f"spec.ipFamilies[{index}]", FAMILIES)
        if family in families[:index]:
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None:
        errors += one_of(policy, "spec.ipFamilyPolicy", FAMILY_POLICIES)
    wrong_ips = _each_cluster_ip(ips, old_spec.get("clusterIPs") or (), path)
    errors += wrong_ips
    if len(ips) > 2:
        errors.append(invalid(path, ips, "may only hold up to 2 values"))
    if wrong_ips:
        return errors
    if len(ips) > 1 and not _is_dual_stack(ips):
        errors.append(invalid(path, ips, "may specify no more than one IP for each IP family"))
    return errors if is_headless(spec) else errors + _matching_families(ips, families, path)


def _first_of_cluster_ips(ip: str, ips: list[str], path: str) -> list[FieldError]:
    if not ip:
        return [invalid(path, ips, "must be empty when `clusterIP` is not specified")] if ips else []
    if not ips:
        return [required(path)]
    return [] if ips[0] == ip else [invalid(path, ips, "first value must match `clusterIP`")]


def _each_cluster_ip(ips: list[str], old_ips: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, ip in enumerate(ips):
        if index == 0 and ip == NONE:
            if len(ips) > 1:
                errors.append(invalid(path, ips, "'None' must be the first and only value"))
            continue
        errors += addresses.legacy_ip(f"{path}[{index}]", ip, strict=True, old=old_ips)
    return errors


def _is_dual_stack(ips: Sequence[str]) -> bool:
    return len({addresses.is_ipv6(ip) for ip in ips}) == 2


def _matching_families(ips: Sequence[str], families: Sequence[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, (ip, family) in enumerate(zip(ips, families, strict=False)):
        if family in FAMILIES and (family == "IPv6") != addresses.is_ipv6(ip):
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"{path}[{index}]", ip, detail))
    return errors


def changed_cluster_ips(spec: Object, old_spec: Object) -> list[FieldError]:
    new, old = spec.get("clusterIPs") or [], old_spec.get("clusterIPs") or []
    if len(new) == len(old):
        changed = [index for index, ip in enumerate(old) if new[index] != ip]
        return [_set_once("clusterIPs", index, new) for index in changed]
    if not new:
        return [invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset")]
    errors = [_set_once("clusterIPs", 0, new)] if old and new[0] != old[0] else []
    if len(old) > len(new) == 1:
        errors += _released("clusterIP", spec)
    return errors


def changed_families(spec: Object, old_spec: Object) -> list[FieldError]:
    new, old = spec.get("ipFamilies") or [], old_spec.get("ipFamilies") or []
    ips = spec.get("clusterIPs") or None
    if len(new) == len(old):
        return [_set_once("ipFamilies", 0, new) for index, family in enumerate(old) if new[index] != family]
    errors: list[FieldError] = []
    if len(old) > len(new) and not ips:
        errors.append(invalid("spec.ipFamilies[0]", new or None, "primary ipFamily can not be unset"))
    if new and old and new[0] != old[0]:
        errors.append(_set_once("ipFamilies", 0, ips))
    if len(old) > len(new) == 1:
        errors += _released("ipFamily", spec)
    return errors


def _set_once(field: str, index: int, value: Any) -> FieldError:
    return invalid(f"spec.{field}[{index}]", value, SET_ONCE)


def _released(what: str, spec: Object) -> list[FieldError]:
    """Returns an error about a removed secondary address unless ipFamilyPolicy is SingleStack."""
    policy = spec.get("ipFamilyPolicy")
    if policy == "SingleStack":
        return []
    return [invalid("spec.ipFamilyPolicy", policy, f"must be set to 'SingleStack' when releasing the secondary {what}")]
