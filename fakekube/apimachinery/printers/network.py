"""Printers of Services, their endpoints, Ingresses and network policies.

Specified by: k8s.io/kubernetes/pkg/printers/internalversion (printers.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakekube.apimachinery.printers.texts import NONE, UNKNOWN, Ages, Cells, age, labels, more, name, selector
from fakekube.base.objects import StoredObject


def _service(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    addresses = spec.get("clusterIPs") or [NONE]
    ports = ",".join(_port(port) for port in spec.get("ports") or ()) or NONE
    return [
        name(obj), spec.get("type", ""), addresses[0], _external(spec, obj.get("status", {})), ports,
        age(obj, ages), labels(spec.get("selector")),
    ]  # fmt: skip


def _port(port: StoredObject) -> str:
    node_port = port.get("nodePort", 0)
    number = f"{port.get('port', 0)}:{node_port}" if node_port > 0 else f"{port.get('port', 0)}"
    return f"{number}/{port.get('protocol', '')}"


def _external(spec: StoredObject, status: StoredObject) -> str:
    kind, addresses = spec.get("type"), spec.get("externalIPs") or []
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(addresses) or NONE
    if kind == "LoadBalancer":
        balancers = _load_balancer(status)
        return ",".join([balancers, *addresses] if balancers else addresses) or "<pending>"
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    return UNKNOWN


def _load_balancer(status: StoredObject) -> str:
    points = status.get("loadBalancer", {}).get("ingress") or ()
    found = {point.get("ip") or point.get("hostname", "") for point in points}
    return ",".join(sorted(found - {""}))


def _endpoints(obj: StoredObject, ages: Ages) -> list[Any]:
    subsets = obj.get("subsets") or ()
    if not subsets:
        return [name(obj), NONE, age(obj, ages)]
    found: list[str] = []
    for subset in subsets:
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += addresses if not ports else [_join_host_port(ip, port) for port in ports for ip in addresses]
    return [name(obj), more(found, empty=""), age(obj, ages)]


def _join_host_port(ip: str, port: StoredObject) -> str:
    host = f"[{ip}]" if ":" in ip else ip
    return f"{host}:{port.get('port', 0)}"


def _endpoint_slice(obj: StoredObject, ages: Ages) -> list[Any]:
    ports = (str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ())
    addresses = (ip for endpoint in obj.get("endpoints") or () for ip in endpoint.get("addresses") or ())
    return [name(obj), obj.get("addressType", ""), more(ports), more(addresses), age(obj, ages)]


def _ingress(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    ports = "80, 443" if spec.get("tls") else "80"
    address = _load_balancer(obj.get("status", {}))
    return [name(obj), spec.get("ingressClassName", NONE), _hosts(spec), address, ports, age(obj, ages)]


def _hosts(spec: StoredObject) -> str:
    """Returns up to three hosts; the number of further ones is that of the rules, not of their hosts."""
    rules = spec.get("rules") or ()
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == 3:
            return f"{','.join(hosts)} + {len(rules) - 3} more..."
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def _ingress_class(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    annotations = obj["metadata"].get("annotations") or {}
    default = annotations.get("ingressclass.kubernetes.io/is-default-class") == "true"
    parameters, shown = spec.get("parameters"), NONE
    if parameters is not None:
        group = parameters.get("apiGroup")
        kind = parameters.get("kind", "") if group is None else f"{parameters.get('kind', '')}.{group}"
        shown = f"{kind}/{parameters.get('name', '')}"
    title = f"{name(obj)} (default)" if default else name(obj)
    return [title, spec.get("controller", ""), shown, age(obj, ages)]


def _network_policy(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), selector(obj.get("spec", {}).get("podSelector")) or NONE, age(obj, ages)]


def _service_cidr(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), ",".join(obj.get("spec", {}).get("cidrs") or ()), age(obj, ages)]


def _ip_address(obj: StoredObject, ages: Ages) -> list[Any]:
    """Returns one cell more than there are columns, as the real printer does."""
    parent = obj.get("spec", {}).get("parentRef")
    shown = NONE
    if parent is not None:
        group, resource = parent.get("group", ""), parent.get("resource", "")
        parts = [f"{resource}.{group}".lower() if group else resource.lower(), parent.get("namespace", "")]
        shown = "/".join([*filter(None, parts), parent.get("name", "")])
    return [name(obj), shown, age(obj, ages)]


CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "endpoints"): _endpoints,
    ("", "services"): _service,
    ("discovery.k8s.io", "endpointslices"): _endpoint_slice,
    ("networking.k8s.io", "ingressclasses"): _ingress_class,
    ("networking.k8s.io", "ingresses"): _ingress,
    ("networking.k8s.io", "ipaddresses"): _ip_address,
    ("networking.k8s.io", "networkpolicies"): _network_policy,
    ("networking.k8s.io", "servicecidrs"): _service_cidr,
}
