"""NetworkPolicies.

Specified by: pkg/apis/networking (validation, v1/defaults.go), pkg/registry/networking/networkpolicy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden, invalid, not_supported, required
from fakekube.apis.rest.strategy import Object, Strategy, WriteContext
from fakekube.apis.validation import ip, names
from fakekube.apis.validation.checks import invalid_each, port
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.selectors import label_selector
from fakekube.apis.validation.to_internal import contains_empty

PROTOCOLS = ("TCP", "UDP", "SCTP")
POLICY_TYPES = ("Ingress", "Egress")

#: (list of rules, list of the peers of a rule)
DIRECTIONS = (("ingress", "from"), ("egress", "to"))


class NetworkPolicyStrategy(Strategy):
    """The strategy of networkpolicies."""

    generation = True

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        if contains_empty(context.resource.storage_type.fields["spec"].type, obj["spec"]):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return _spec(obj.get("spec") or {}, allow_invalid_values=False, old_cidrs=())

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        old_spec = old.get("spec") or {}
        allow_invalid_values = bool(label_selector(old_spec.get("podSelector"), ""))
        old_cidrs = [cidr for _, block in _blocks(old_spec) for cidr in _cidrs(block)]
        return _spec(obj.get("spec") or {}, allow_invalid_values=allow_invalid_values, old_cidrs=old_cidrs)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        warnings: list[str] = []
        for path, block in _blocks(obj.get("spec") or {}):
            warnings += ip.cidr_warnings(f"{path}.cidr", block.get("cidr", ""))
            for index, cidr in enumerate(block.get("except") or ()):
                warnings += ip.cidr_warnings(f"{path}.except[{index}]", cidr)
        return warnings


def _peers(spec: Object) -> Iterator[tuple[str, Object]]:
    """Yields every peer with its path."""
    for rules, peers in DIRECTIONS:
        for index, rule in enumerate(spec.get(rules) or ()):
            for position, peer in enumerate(rule.get(peers) or ()):
                yield f"spec.{rules}[{index}].{peers}[{position}]", peer


def _blocks(spec: Object) -> Iterator[tuple[str, Object]]:
    for path, peer in _peers(spec):
        if peer.get("ipBlock") is not None:
            yield f"{path}.ipBlock", peer["ipBlock"]


def _cidrs(block: Object) -> list[str]:
    return [block.get("cidr", ""), *(block.get("except") or ())]


def _spec(spec: Object, *, allow_invalid_values: bool, old_cidrs: Sequence[str]) -> list[FieldError]:
    errors = label_selector(spec.get("podSelector"), "spec.podSelector", allow_invalid_values=allow_invalid_values)
    for rules, peers in DIRECTIONS:
        for index, rule in enumerate(spec.get(rules) or ()):
            path = f"spec.{rules}[{index}]"
            for position, item in enumerate(rule.get("ports") or ()):
                errors += _port(item, f"{path}.ports[{position}]")
            for position, peer in enumerate(rule.get(peers) or ()):
                errors += _peer(peer, f"{path}.{peers}[{position}]", allow_invalid_values, old_cidrs)
    types: list[Any] = spec.get("policyTypes") or []
    if len(types) > len(POLICY_TYPES):
        return [*errors, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    wrong = [(index, kind) for index, kind in enumerate(types) if kind not in POLICY_TYPES]
    return errors + [not_supported(f"spec.policyTypes[{index}]", kind, POLICY_TYPES) for index, kind in wrong]


def _port(item: Object, path: str) -> list[FieldError]:
    protocol, number, end = item.get("protocol"), item.get("port"), item.get("endPort")
    errors: list[FieldError] = []
    if protocol is not None and protocol not in PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
    if isinstance(number, int):
        errors += port(number, f"{path}.port")
        if end is not None:
            if end < number:
                shown = end if from_minor(37) else number
                errors.append(invalid(f"{path}.endPort", shown, "must be greater than or equal to `port`"))
            errors += port(end, f"{path}.endPort")
        return errors
    if end is not None:
        state = "specified" if number is None else "non-numeric"
        negation = "not " if number is None else ""
        errors.append(invalid(f"{path}.endPort", end, f"may not be specified when `port` is {negation}{state}"))
    if number is not None:
        errors += invalid_each(f"{path}.port", number, names.port_name(number))
    return errors


def _peer(peer: Object, path: str, allow_invalid_values: bool, old_cidrs: Sequence[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    selectors = [field for field in ("podSelector", "namespaceSelector") if peer.get(field) is not None]
    for field in selectors:
        errors += label_selector(peer[field], f"{path}.{field}", allow_invalid_values=allow_invalid_values)
    block = peer.get("ipBlock")
    if block is not None:
        errors += _validate_ip_block(block, f"{path}.ipBlock", old_cidrs)
    if block is None and not selectors:
        errors.append(required(path, "must specify a peer"))
    elif block is not None and selectors:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _validate_ip_block(block: Object, path: str, old_cidrs: Sequence[str]) -> list[FieldError]:
    text = block.get("cidr", "")
    if not text:
        return [required(f"{path}.cidr")]
    errors = ip.legacy_cidr(f"{path}.cidr", text, strict=True, old=old_cidrs)
    whole = ip.parse_cidr(text)
    if whole is None:
        return errors
    for index, exception in enumerate(block.get("except") or ()):
        where = f"{path}.except[{index}]"
        errors += ip.legacy_cidr(where, exception, strict=True, old=old_cidrs)
        part = ip.parse_cidr(exception)
        if part is not None and not _strictly_within(part, whole):
            errors.append(invalid(where, exception, "must be a strict subset of `cidr`"))
    return errors


def _strictly_within(part: ip.Network, whole: ip.Network) -> bool:
    if part.network.version != whole.network.version or whole.length >= part.length:
        return False
    shift = whole.network.max_prefixlen - whole.length
    return int(part.network) >> shift == int(whole.network) >> shift
