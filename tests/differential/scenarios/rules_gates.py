"""Rules that a feature gate turns on or off.

The server is started with the gates of `recordings.GATES`.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

from tests.differential.client import Client
from tests.differential.registry import scenario
from tests.differential.rule_tables import State, each, tell

# fmt: off

tell_of = functools.partial(tell, module="rules_gates")

Edit = dict[str, Any]
PVC: Edit = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
POD: Edit = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
SERVICE: Edit = {"spec": {"ports": [{"port": 80}], "type": "LoadBalancer"}}
POLICY: Edit = {"spec": {"podSelector": {}}}
SLICE: Edit = {"spec": {"driver": "a.b", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}, "nodeName": "n", "devices": [{"name": "d"}]}}
RANGES = (["1.2.3.4/8"], ["01.0.0.0/8"], ["1.0.0.0/08"], ["::ffff:1.0.0.0/104"], ["2001:DB8::/32"], ["1.0.0.0/8"], ["2001:db8::1/32"], ["x"])


tell_of("leases", "coordination.k8s.io/v1/leases", {"spec": {}}, create=[{"spec.preferredHolder": "x"}, {"spec.preferredHolder": "x", "spec.strategy": ""}, {"spec.preferredHolder": "x", "spec.strategy": "OldestEmulationVersion"}, {"spec.strategy": "Nope"}, {"spec.strategy": "a b/c"}, {"spec.strategy": "a.b/c"}], states=[State(update=[{"spec.preferredHolder": "x"}])])
tell_of("claims", "v1/persistentvolumeclaims", PVC, create=[{"spec.dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}, "spec.dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "c"}}, {"spec.dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "c"}}, {"spec.dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "A_"}}])
tell_of("tolerations", "v1/pods", POD, create=each("spec.tolerations", *([{"key": "a", "operator": operator, "value": value}] for operator in ("Gt", "Lt") for value in ("1", "-1", "01", "x", "", "1.5", "99999999999999999999", "-0", "+1"))))
tell_of("ranges", "v1/services", SERVICE, create=[*each("spec.loadBalancerSourceRanges", *RANGES), *each("spec.externalIPs", ["01.2.3.4"], ["::ffff:1.2.3.4"], ["2001:DB8::1"], ["1.2.3.4"]), *each("spec.loadBalancerIP", "01.2.3.4", "x")])
tell_of("blocks", "networking.k8s.io/v1/networkpolicies", POLICY, create=[*({"spec.ingress": [{"from": [{"ipBlock": {"cidr": cidr}}]}]} for (cidr,) in RANGES), *({"spec.egress": [{"to": [{"ipBlock": {"cidr": "::/0" if ":" in cidr else "0.0.0.0/0", "except": [cidr]}}]}]} for (cidr,) in RANGES)])
tell_of("addresses", "v1/pods", POD, create=[*each("spec.hostAliases", [{"ip": "01.2.3.4"}], [{"ip": "::ffff:1.2.3.4"}], [{"ip": "2001:DB8::1"}]), *each("spec.dnsConfig", {"nameservers": ["01.2.3.4"]})])
tell_of("slices", "resource.k8s.io/v1/*resourceslices", SLICE, create=[*each("spec.devices[0].attributes", {"a": {"ints": []}}, {"a": {"ints": [1]}}, {"a": {"strings": ["x" * 65]}}, {"a": {"versions": ["x"]}}, {"a": {"bools": [True]}}, {"a": {"ints": [1], "int": 1}}, {"a": {"ints": list(range(49))}}, {f"a{n}": {"ints": [1, 2]} for n in range(25)}, {f"a{n}": {"ints": [1, 2]} for n in range(24)})])
INIT: Edit = {"spec": {**POD["spec"], "initContainers": [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}
tell_of("resizes", "v1/pods", INIT, states=[
    State(calls=[("PUT", "resize", {"spec.initContainers[0].resources.requests.cpu": "2"}), ("PUT", "resize", {"spec.initContainers[0].resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]})]),
    State(base={"spec.resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}}, calls=[("PUT", "resize", {"spec.resources.requests.cpu": "3"}), ("PUT", "resize", {"spec.containers[0].resources": {"requests": {"cpu": "1"}}})]),
    State(base={"spec.resourceClaims": [{"name": "r", "resourceClaimName": "x"}]}, status={"status.nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "x", "containers": ["c"], "resources": {"cpu": "1"}}]}, calls=[("PUT", "resize", {"spec.initContainers[0].resources.requests.cpu": "1500m"})]),
])
tell_of("tokens", "v1/serviceaccounts", {}, states=[State(calls=[("POST", "token", {"metadata": {"uid": uid}, "spec": {"expirationSeconds": 599}}) for uid in ("", "other")])])
ALLOCATED = "status.nodeAllocatableResourceClaimStatuses"
HELD: Edit = {"resourceClaimName": "x", "containers": ["c"], "resources": {"cpu": "1"}}
tell_of("claims_of_nodes", "v1/pods", POD, states=[
    State(
        base={"spec.resourceClaims": [{"name": "r", "resourceClaimName": "x"}, {"name": "t", "resourceClaimTemplateName": "y"}]},
        status={ALLOCATED: [HELD], "status.resourceClaimStatuses": [{"name": "t", "resourceClaimName": "z"}]},
        status_update=[
            *each(f"{ALLOCATED}[0].resourceClaimName", "", "y", "z"), *each(f"{ALLOCATED}[0].containers", None, [], ["nobody", "c"]),
            *each(f"{ALLOCATED}[0].resources", None, {}, {"cpu": "0"}, {"cpu": "-1"}, {"example.com/x": "-1"}, {"requests.cpu": "1"}, {"hugepages-2Mi": "2Mi", "pods": "1"}),
            {ALLOCATED: [HELD, HELD]}, {ALLOCATED: [{}]}, {ALLOCATED: None}, {"status.resourceClaimStatuses": None, f"{ALLOCATED}[0].resourceClaimName": "z"},
        ],
    ),
])

CAPACITY = {"spec.devices[0].capacity": {"c": {"value": "1"}}}
tell_of("mapped_resources", "resource.k8s.io/v1/*resourceslices", SLICE, create=[
    *({"spec.devices[0].nodeAllocatableResourceMappings": {name: {"allocationMultiplier": "1"}}} for name in ("cpu", "memory", "hugepages-2Mi", "ephemeral-storage", "pods", "x", "a.b/c", "kubernetes.io/x", "")),
    *({**held, "spec.devices[0].nodeAllocatableResourceMappings": {"cpu": mapping}} for held in ({}, CAPACITY) for mapping in (
        {}, {"capacityKey": ""}, {"capacityKey": "c"}, {"capacityKey": "d"}, *({"allocationMultiplier": amount} for amount in ("0", "-1", "1", "0.5")), {"allocationMultiplier": "-1", "capacityKey": "d"},
    )),
], states=[State(update=[{"spec.devices[0].nodeAllocatableResourceMappings": {"x.y/z": {}}}])])


@scenario
def initial_events_without_watch_lists(c: Client) -> None:
    """Without WatchList a watch must not ask for the initial events; a list must not ever."""
    path = f"/api/v1/namespaces/{c.ns}/configmaps"
    for sent, match, more in itertools.product(("true", "false", None), ("NotOlderThan", "Exact", None), ({}, {"resourceVersion": "0"}, {"continue": "x"})):
        query = {**({"sendInitialEvents": sent} if sent else {}), **({"resourceVersionMatch": match} if match else {}), **more}
        c.get(path, query)
        if sent or match:
            c.get(path, {"watch": "true", "timeoutSeconds": "1", **query})
