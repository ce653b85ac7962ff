"""What no other recording reaches: gated pods, directives of suspended jobs, forms of addresses, sums of quotas for claims and resizes."""

from __future__ import annotations

import functools
from typing import Any

from tests.differential.client import Client
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.rule_tables import Edit, State, each, tell
from tests.differential.scenarios.quotas import core, grouped, quota, used
from tests.differential.scenarios.rules_groups import CSR, ED, pem

# fmt: off

tell_of = functools.partial(tell, module="rules_paths")


def expression(key: str, *values: str, operator: str = "In") -> Edit:
    return {"key": key, "operator": operator, "values": list(values)}


NODE = "affinity.nodeAffinity"
TERMS = f"{NODE}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
REQUIRED: Edit = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [expression("a", "b")]}]}}
PREFERRED: Edit = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [expression("a", "b")]}}]}
SPREAD: Edit = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a", "labelSelector": {"matchLabels": {"a": "b"}}}]}

GATED: Edit = {"spec": {"containers": [{"name": "c", "image": "i"}], "schedulingGates": [{"name": "a.b/c"}, {"name": "d"}], "nodeSelector": {"a": "b"}, "affinity": {"nodeAffinity": {**REQUIRED, **PREFERRED}}}}
tell_of("gated_pods", "v1/pods", GATED, states=[
    State(update=[
        *each("spec.nodeSelector", None, {}, {"a": "c"}, {"a": "b", "c": "d"}, {"c": "d"}), *each("spec.schedulingGates", None, [{"name": "d"}], [{"name": "d"}, {"name": "e"}], [{"name": "a.b/c"}, {"name": "d"}, {"name": "e"}]),
        *each("spec.affinity", None, {}, {"nodeAffinity": REQUIRED}, {"nodeAffinity": PREFERRED}, {"nodeAffinity": {**REQUIRED, **PREFERRED}, "podAffinity": SPREAD}),
        *each(f"spec.{TERMS}", [], [{"matchExpressions": [expression("a", "b"), expression("c", "d")]}], [{"matchExpressions": [expression("a", "c")]}], [{"matchExpressions": [expression("a", "b")]}, {"matchExpressions": [expression("c", "d")]}], [{"matchExpressions": [expression("a", "b")], "matchFields": [expression("metadata.name", "n")]}], [{"matchFields": [expression("metadata.name", "n")]}], [{}]),
        {"spec.nodeSelector": {"a": "b", "c": "d"}, "spec.schedulingGates": None}, {"spec.nodeSelector": {"c": "d"}, "spec.containers[0].image": "j"}, {"spec.containers[0].image": "j"}, *each("spec.tolerations[2]", {"key": "a", "operator": "Exists"}), *each("spec.priority", 7),
    ]),
    State(base={"spec.affinity": None, "spec.nodeSelector": None}, update=[
        *each("spec.nodeSelector", {"a": "b"}), *each("spec.affinity", {}, {"nodeAffinity": {}}, {"nodeAffinity": REQUIRED}, {"nodeAffinity": PREFERRED}, {"podAffinity": SPREAD}, {"nodeAffinity": REQUIRED, "podAntiAffinity": SPREAD}),
    ]),
    State(base={"spec.affinity": {"podAffinity": SPREAD}}, update=[*each("spec.affinity", None, {"podAffinity": SPREAD, "nodeAffinity": REQUIRED}, {"nodeAffinity": REQUIRED})]),
])

JOB: Edit = {"spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
JOBS = "batch/v1/jobs"
TEMPLATE = "spec.template.spec"
DIRECTIVES: list[Edit] = [
    *each(f"{TEMPLATE}.affinity", None, {}, {"nodeAffinity": REQUIRED}, {"nodeAffinity": PREFERRED}, {"podAffinity": SPREAD}, {"nodeAffinity": PREFERRED, "podAffinity": SPREAD}, {"nodeAffinity": REQUIRED, "podAntiAffinity": SPREAD}),
    *each(f"{TEMPLATE}.nodeSelector", None, {"c": "d"}), *each(f"{TEMPLATE}.tolerations", None, [{"key": "a", "operator": "Exists"}]), *each(f"{TEMPLATE}.schedulingGates", None, [{"name": "a"}]),
    *each("spec.template.metadata.labels[c]", "d"), *each("spec.template.metadata.annotations[c]", "d"), *each(f"{TEMPLATE}.containers[0].resources", {"requests": {"cpu": "1"}}), *each(f"{TEMPLATE}.containers[0].image", "j"), *each(f"{TEMPLATE}.priorityClassName", "a"),
]
tell_of("directives_of_jobs", JOBS, JOB, states=[
    *(State(base={f"{TEMPLATE}.affinity": affinity, f"{TEMPLATE}.nodeSelector": {"a": "b"}}, update=DIRECTIVES) for affinity in (None, {"nodeAffinity": REQUIRED}, {"podAffinity": SPREAD}, {"nodeAffinity": REQUIRED, "podAffinity": SPREAD})),
    State(base={"spec.suspend": False}, update=DIRECTIVES), State(status={"status.startTime": "2026-01-01T00:00:00Z"}, update=DIRECTIVES),
])

ADDRESSES = (
    "::10000", "::ffff", "::FFFF", "::0ffff", "::00001", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "1:2:3:4::5:6:7:8", "1::2::3", "::1.2.3.4", "::1.2.3.256", "::01.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4",
    "1.2.3.4::", "fe80::1%eth0", "::g", "1.2.3", "1.2.3.4.5", "1.2.3.4 ", "01.2.3.4", "1.2.3.256", "1.2.3.-1", "1..2.3", "::ffff:1.2.3.4", "::ffff:01.2.3.4", "::ffff:102:304", ":::", ":1::2", "1::2:", "::", "0:0:0:0:0:0:0:0", "0.0.0.0", "",
)
tell_of("addresses_of_services", "v1/services", {"spec": {"ports": [{"port": 80}]}}, create=[
    *({"spec.externalIPs": [address]} for address in ADDRESSES), *({"spec.type": "LoadBalancer", "spec.loadBalancerSourceRanges": [f"{address}/{bits}"]} for address, bits in (
        ("::10000", 64), ("::", 128), ("::", 129), ("::1", 64), ("10.0.0.0", 32), ("10.0.0.0", 33), ("10.0.0.0", "08"), ("10.0.0.0", "-1"), ("10.0.0.0", ""), ("10.0.0.1", 8), ("::ffff:10.0.0.0", 104), ("::ffff:10.0.0.0", 95), ("010.0.0.0", 8), ("10.0.0", 8),
    )),
])
tell_of("addresses_of_hosts", "v1/pods", {"spec": {"containers": [{"name": "c", "image": "i"}]}}, create=[{"spec.hostAliases": [{"ip": address, "hostnames": ["a"]}]} for address in ADDRESSES])
tell_of("addresses_of_slices", "discovery.k8s.io/v1/endpointslices", {"addressType": "IPv6", "endpoints": []}, create=[{"endpoints": [{"addresses": [address]}]} for address in ADDRESSES])

#: As long as a signer's name may be, and its domain, and one byte more.
tell_of("signer_names", "certificates.k8s.io/v1/*certificatesigningrequests", {"spec": {"request": pem(CSR, ED), "signerName": "a.b/c", "usages": ["client auth"]}}, create=[
    *each("spec.signerName", *(f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * last}/e" for last in (60, 61, 62)), *(f"a.b/{'.'.join(['c' * 63] * 8)}.{'d' * last}" for last in (53, 54, 55, 56, 63)), *(f"{'a' * labels}.b/c" for labels in (63, 64)), f"a.b/{'c' * 253}", f"a.b/{'c' * 254}"),
])


@scenario
def quotas_of_claims(c: Client) -> None:
    """Devices of a class are counted as the worst alternative of each request."""
    name = "gold.deviceclass.resource.k8s.io/devices"
    quota(c, "q", {"count/resourceclaims.resource.k8s.io": "9", name: "5", "silver.deviceclass.resource.k8s.io/devices": "2"})
    claims = grouped(c, "resource.k8s.io/v1", "resourceclaims")

    def exactly(count: int, device_class: str = "gold", **more: Any) -> Edit:
        return {"exactly": {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count, **more}}

    def claim(name: str, *requests: Edit) -> Edit:
        return {"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": f"r{n}", **one} for n, one in enumerate(requests)]}}}

    until(lambda: c.post(claims, claim("p", exactly(6)), {"dryRun": "All"}, silent=True).status == 403)
    everything = {"exactly": {"deviceClassName": "gold", "allocationMode": "All"}}
    alternatives = {"firstAvailable": [{"name": f"s{n}", "deviceClassName": kind, "count": n} for kind, n in (("gold", 1), ("gold", 3), ("silver", 2), ("bronze", 9))]}
    for index, requests in enumerate(([exactly(2)], [exactly(4)], [everything], [alternatives], [alternatives, exactly(1, "silver")], [exactly(1), exactly(1)], [exactly(1, "bronze")], [])):
        c.post(claims, claim(f"c{index}", *requests))
        used(c, "q")


@scenario
def quotas_of_resizes(c: Client) -> None:
    """A resize counts the largest of what is asked, what the kubelet has allocated, and what is in effect."""
    quota(c, "q", {"requests.cpu": "4", "limits.cpu": "8", "requests.memory": "4Gi"})
    pods = core(c, "pods")
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    sidecar = {"name": "s", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}, "limits": {"cpu": "100m"}}}
    c.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}], "initContainers": [sidecar]}})
    used(c, "q")
    conditions = [[], [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}], [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]]
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    for conditioned in conditions:
        for actual, allocated in (("1", "1"), ("3", "1"), ("1", "3"), ("3500m", None)):
            status = c.get(f"{pods}/p", silent=True).json
            of = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": state, "resources": {"requests": {"cpu": actual, "memory": "1Gi"}, "limits": {"cpu": "2"}}}
            if allocated:
                of["allocatedResources"] = {"cpu": allocated, "memory": "2Gi"}
            status["status"].update(phase="Running", conditions=conditioned, containerStatuses=[of], initContainerStatuses=[{**of, "name": "s", "resources": {"requests": {"cpu": "200m"}}}])
            c.put(f"{pods}/p/status", status)
            for cpu in ("500m", "2", "4", "5"):
                resized = c.get(f"{pods}/p", silent=True).json
                resized["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
                resized["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "8"
                c.put(f"{pods}/p/resize", resized, {"dryRun": "All"})
    for field, cpu in (("containers", "1500m"), ("initContainers", "300m"), ("containers", "1")):
        resized = c.get(f"{pods}/p", silent=True).json
        resized["spec"][field][0]["resources"] = {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": "2"}}
        c.put(f"{pods}/p/resize", resized)
        used(c, "q")
