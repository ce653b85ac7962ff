"""What an update of a Service keeps, allocates and releases: node ports, addresses and families of a server with two ranges.

Numbers are of the lower bands, from which nothing is allocated by chance.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from tests.differential.rule_tables import Edit, State, tell

# fmt: off

tell_of = functools.partial(tell, module="rules_service_updates")
SERVICES = "v1/services"


def ports(*numbers: int | None, **more: Any) -> list[Edit]:
    """Ports with these node ports; None: with none."""
    return [{"name": name, "port": 80 + index, **more, **({} if number is None else {"nodePort": number})}
            for index, (name, number) in enumerate(zip("ab", numbers, strict=True))]


def told(title: str, base: Edit, state: State, old: str, new: str) -> None:
    """Registers a table with other numbers than its siblings, which may be played at the same time."""

    def renumbered(value: Any) -> Any:
        return json.loads(json.dumps(value).replace(old, new))

    tell_of(title, SERVICES, renumbered(base), states=[State(base=renumbered(state.base), update=renumbered(state.update))])


PORTS: Edit = {"spec": {"type": "NodePort", "selector": {"a": "b"}, "ports": ports(30001, 30002)}}
CHANGED_PORTS: list[Edit] = [{"spec.ports": changed} for changed in (
    ports(None, None), ports(30002, None), ports(30002, 30001), ports(30003, None), ports(None, 30001), [{"port": 80}], [{"port": 80, "nodePort": 30001}],
    [{"name": "c", "port": 80}, {"name": "b", "port": 81}], [*ports(None, None), {"name": "c", "port": 82, "nodePort": 30001}],
    [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "u", "port": 80, "protocol": "UDP", "nodePort": 30001}], ports(30001, 30001), ports(29999, None),
)]
tell_of("node_ports", SERVICES, PORTS, states=[
    State(update=[
        *CHANGED_PORTS, *({"spec.type": kind, "spec.ports": left} for kind in ("ClusterIP", "LoadBalancer") for left in (ports(None, None), ports(30001, 30002))),
        {"spec.type": "LoadBalancer", "spec.allocateLoadBalancerNodePorts": False, "spec.ports": ports(None, None)}, {"spec.type": "ExternalName", "spec.externalName": "a.b", "spec.ports": ports(None, None)},
    ]),
    State(base={"spec.ports": ports(30011, None)}, update=[  # the other one has 30001
        *({"spec.ports": given} for given in (ports(30001, None), ports(None, 30001), ports(30012, 30012), ports(30013, 30013, protocol="UDP"))), {"spec.ports": [{"name": "t", "port": 80, "nodePort": 30014}, {"name": "u", "port": 80, "protocol": "UDP", "nodePort": 30014}]},
        {"spec.type": "LoadBalancer", "spec.externalTrafficPolicy": "Local", "spec.healthCheckNodePort": 30001}, {"spec.type": "LoadBalancer", "spec.externalTrafficPolicy": "Local", "spec.healthCheckNodePort": 30011},
    ]),
])
for title, allocates, numbers in (("allocated_node_ports", True, "3003"), ("given_node_ports", False, "3004")):
    told(title, PORTS, State(base={"spec.type": "LoadBalancer", "spec.allocateLoadBalancerNodePorts": allocates}, update=[
        {"spec.ports": ports(None, None)}, *({"spec.allocateLoadBalancerNodePorts": other, "spec.ports": left} for other in (True, False, None) for left in (ports(None, None), ports(30001, 30002), ports(None, 30002))),
        *({"spec.type": kind, "spec.allocateLoadBalancerNodePorts": None, "spec.ports": ports(None, None)} for kind in ("NodePort", "ClusterIP")),
    ]), "3000", numbers)

LOCAL: Edit = {"spec": {**PORTS["spec"], "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30008}}
told("health_checks", LOCAL, State(update=[
    *({"spec.healthCheckNodePort": number} for number in (None, 0, 30009, 30008)), {"spec.externalTrafficPolicy": "Cluster"}, {"spec.externalTrafficPolicy": "Cluster", "spec.healthCheckNodePort": None},
    {"spec.type": "NodePort"}, {"spec.type": "NodePort", "spec.healthCheckNodePort": None}, {"spec.ports": ports(30008, None)}, {"spec.ports": ports(None, None)},
]), "3000", "3005")

DUAL: Edit = {"spec": {"ports": [{"port": 80}], "ipFamilyPolicy": "PreferDualStack", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7", "fd00::7"]}}
GIVEN: list[Edit] = [{}, {"spec.clusterIPs": ["10.0.0.7"]}, {"spec.clusterIP": None, "spec.clusterIPs": None}]
NAMED: Edit = {"spec.type": "ExternalName", "spec.externalName": "a.b"}
CLEARED: Edit = {"spec.clusterIP": None, "spec.clusterIPs": None, "spec.ipFamilies": None, "spec.ipFamilyPolicy": None}
POLICIES = (None, "SingleStack", "PreferDualStack", "RequireDualStack")
tell_of("released_families", SERVICES, DUAL, states=[
    State(update=[
        *({"spec.ipFamilies": families, "spec.ipFamilyPolicy": policy, **given} for families in (["IPv4"], ["IPv4", "IPv6"]) for policy in POLICIES for given in GIVEN),
        {"spec.ipFamilies": ["IPv6"]}, {"spec.ipFamilies": ["IPv6", "IPv4"]}, {"spec.ipFamilies": None}, {"spec.ipFamilies": []}, {"spec.ipFamilies": ["IPv4", "IPv4"]}, {"spec.ipFamilies": ["IPv4", "IPv6", "IPv4"]},
        {"spec.clusterIPs": ["10.0.0.7", "fd00::8"]}, {"spec.clusterIPs": ["10.0.0.8", "fd00::7"]}, {"spec.clusterIP": "10.0.0.8"}, {"spec.clusterIP": "10.0.0.8", "spec.clusterIPs": ["10.0.0.8", "fd00::7"]}, {"spec.clusterIPs": ["fd00::7", "10.0.0.7"]},
        {"spec.clusterIP": "None"}, {"spec.clusterIP": "None", "spec.clusterIPs": ["None"]}, NAMED, {**NAMED, **CLEARED}, {**NAMED, "spec.clusterIP": None, "spec.clusterIPs": None}, {"spec.type": "NodePort"},
    ]),
])
told("added_families", DUAL, State(base={"spec.ipFamilyPolicy": "SingleStack", "spec.clusterIPs": ["10.0.0.7"]}, update=[
        *({"spec.ipFamilyPolicy": policy, **more} for policy in POLICIES for more in (
            {}, {"spec.ipFamilies": ["IPv4", "IPv6"]}, {"spec.clusterIPs": ["10.0.0.7", "fd00::8"]}, {"spec.ipFamilies": ["IPv4", "IPv6"], "spec.clusterIPs": ["10.0.0.7", "fd00::8"]},
        )),
        {"spec.ipFamilies": ["IPv6"]}, {"spec.ipFamilies": ["IPv6", "IPv4"], "spec.ipFamilyPolicy": "PreferDualStack"}, {"spec.ipFamilyPolicy": "PreferDualStack", "spec.clusterIPs": ["10.0.0.7", "fd01::1"]},
        {"spec.ipFamilyPolicy": "PreferDualStack", "spec.clusterIPs": ["10.0.0.7", "10.0.0.8"]}, NAMED, {**NAMED, **CLEARED},
]), '7"', '5"')
tell_of("named_services", SERVICES, DUAL, states=[State(base={**CLEARED, **NAMED}, update=[
        *({"spec.type": "ClusterIP", "spec.externalName": None, **more} for more in (
            {}, *({"spec.ipFamilyPolicy": policy} for policy in POLICIES[1:]), {"spec.ipFamilies": ["IPv6"]}, {"spec.ipFamilies": ["IPv6", "IPv4"]}, {"spec.clusterIP": "10.0.0.9"}, {"spec.clusterIP": "None"},
            {"spec.clusterIPs": ["fd00::9", "10.0.0.9"], "spec.ipFamilyPolicy": "RequireDualStack"}, {"spec.clusterIP": "10.1.0.1"}, {"spec.clusterIP": "10.0.0.1"},
        )),
        {"spec.type": "NodePort"}, {"spec.type": "NodePort", "spec.externalName": None, "spec.ports[0].nodePort": 30020}, {"spec.externalName": "c.d"}, {"spec.externalName": ""},
])])
tell_of("headless_services", SERVICES, DUAL, states=[State(base={"spec.clusterIP": "None", "spec.clusterIPs": ["None"], "spec.selector": {"a": "b"}, "spec.ipFamilyPolicy": "RequireDualStack"}, update=[
        {"spec.ipFamilyPolicy": "SingleStack", "spec.ipFamilies": ["IPv4"]}, {"spec.ipFamilies": ["IPv4"]}, {"spec.selector": None}, {"spec.clusterIP": None, "spec.clusterIPs": None}, {"spec.clusterIP": "10.0.0.11", "spec.clusterIPs": ["10.0.0.11"]},
        {"spec.ports": None}, {"spec.type": "NodePort"}, NAMED, {**NAMED, **CLEARED},
])])
