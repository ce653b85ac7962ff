"""Rules of servers with flags: a small range of addresses for services, plugins about namespaces, alpha versions beside others."""

from __future__ import annotations

from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.definitions import DRY
from tests.differential.registry import scenario


@scenario
def services_exhaust_the_addresses(client: Client) -> None:
    """All addresses of a small range are given, but the first and, of IPv4, the last; what is released is given again."""
    path = f"/api/v1/namespaces/{client.ns}/services"
    for family in ("IPv4", "IPv6"):
        for number in range(16):
            client.post(path, {"metadata": {"name": f"s{number}"}, "spec": {"ports": [{"port": 80}], "ipFamilies": [family]}})
        client.delete(f"{path}/s3")
        client.post(path, {"metadata": {"name": "again"}, "spec": {"ports": [{"port": 80}], "ipFamilies": [family]}})
        for number in range(16):
            client.delete(f"{path}/s{number}", silent=True)
        client.delete(f"{path}/again", silent=True)
    for address in ("10.0.0.0", "10.0.0.2", "10.0.0.14", "10.0.0.15", "fd00::", "fd00::1", "fd00::f", "fd00::10"):
        client.post(path, {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "clusterIP": address}}, DRY)


@scenario
def services_release_addresses(client: Client) -> None:
    """A change of families or of the type releases an address, which another service may ask for."""
    path = f"/api/v1/namespaces/{client.ns}/services"

    def service(name: str, **spec: Any) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}

    both = {
        "ipFamilyPolicy": "RequireDualStack",
        "ipFamilies": ["IPv4", "IPv6"],
        "clusterIPs": ["10.0.0.5", "fd00::5"],
        "clusterIP": "10.0.0.5",
    }
    single = {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"], "clusterIPs": ["10.0.0.5"]}
    for change in (
        single,
        {**single, "ipFamilies": None, "clusterIPs": None},
        {
            "type": "ExternalName",
            "externalName": "a.b",
            "clusterIP": "",
            "clusterIPs": None,
            "ipFamilies": None,
            "ipFamilyPolicy": None,
        },
        {"clusterIP": "None", "clusterIPs": ["None"]},
    ):
        client.post(path, service("a", **both))
        client.post(path, service("b", clusterIP="fd00::5", ipFamilies=["IPv6"]))
        client.patch(f"{path}/a", {"spec": change}, MERGE, DRY)
        client.post(path, service("b", clusterIP="fd00::5", ipFamilies=["IPv6"]))
        client.patch(f"{path}/a", {"spec": change}, MERGE)
        client.post(path, service("b", clusterIP="fd00::5", ipFamilies=["IPv6"]))
        client.post(path, service("c", clusterIP="10.0.0.5"))
        client.patch(f"{path}/a", {"spec": {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]}}, MERGE)
        for name in ("a", "b", "c"):
            client.delete(f"{path}/{name}", silent=True)
    client.post(path, service("a", clusterIP="10.0.0.5"))
    client.patch(f"{path}/a", {"spec": {**both, "clusterIPs": ["10.0.0.5", "fd00::6"]}}, MERGE)
    client.post(path, service("b", clusterIP="fd00::6", ipFamilies=["IPv6"]))
    client.delete(f"{path}/a")
    client.post(path, service("b", clusterIP="fd00::6", ipFamilies=["IPv6"]))
    client.delete(f"{path}/b")


@scenario
def namespaces_that_do_not_exist(client: Client) -> None:
    """NamespaceAutoProvision makes them, but not in a dry run; NamespaceExists refuses the rest."""
    for number, (plural, body) in enumerate(
        (
            ("configmaps", {}),
            ("pods", {"spec": {"containers": [{"name": "c", "image": "i"}]}}),
            ("secrets", {"data": 3}),
            ("services", {"spec": {}}),
        )
    ):
        own = client.name(f"n{number}")
        path = f"/api/v1/namespaces/{own}/{plural}"
        client.get(path)
        client.get(f"{path}/a")
        client.put(f"{path}/a", {"metadata": {"name": "a"}, **body})
        client.patch(f"{path}/a", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        client.delete(f"{path}/a")
        client.delete(path)
        client.post(path, {"metadata": {"name": "a"}, **body}, DRY)
        client.get(f"/api/v1/namespaces/{own}")
        client.post(path, {"metadata": {"name": "a"}, **body})
        client.get(f"/api/v1/namespaces/{own}")
        client.post(path, {"metadata": {"name": "b"}, **body})
        client.post(f"/api/v1/namespaces/{own}/serviceaccounts/default/token", {"spec": {}})
        client.post(
            f"/apis/authorization.k8s.io/v1/namespaces/{own}-x/localsubjectaccessreviews",
            {"spec": {"user": "u", "resourceAttributes": {"namespace": f"{own}-x"}}},
        )
        client.delete(f"/api/v1/namespaces/{own}")
        client.post(path, {"metadata": {"name": "c"}, **body})
    for wrong in ("A_", "a" * 64, "a.b"):
        client.post(f"/api/v1/namespaces/{wrong}/configmaps", {"metadata": {"name": "a"}})
    client.delete("/api/v1/namespaces/kube-system", None, DRY)
    client.put(f"/api/v1/namespaces/{client.name('absent')}", {"metadata": {"name": client.name("absent")}}, DRY)


GROUP = {"schedulingPolicy": {"gang": {"minCount": 1}}}
#: Path of a kind in a version beside which another one is served → bodies, the first of them valid.
ALPHA: dict[str, tuple[dict[str, Any], ...]] = {
    "scheduling.k8s.io/v1alpha3/namespaces/{ns}/workloads": ({"spec": {"podGroupTemplates": [{"name": "g", **GROUP}]}}, {"spec": {}}, {"spec": {"podGroupTemplates": [{"name": "A", **GROUP}, {"name": "A", **GROUP}]}}, {"spec": {"podGroupTemplates": [{"name": "g", "schedulingPolicy": {}}]}}, {"spec": {"podGroupTemplates": [{"name": "g", "schedulingPolicy": {"gang": {"minCount": 0}}}]}}),
    "scheduling.k8s.io/v1alpha3/namespaces/{ns}/podgroups": ({"spec": GROUP}, {"spec": {}}, {"spec": {"schedulingPolicy": {"gang": {"minCount": -1}}}}, {"spec": {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}}),
    "scheduling.k8s.io/v1beta1/namespaces/{ns}/workloads": ({"spec": {"podGroupTemplates": [{"name": "g", **GROUP}]}}, {"spec": {}}),
    "scheduling.k8s.io/v1beta1/namespaces/{ns}/podgroups": ({"spec": GROUP}, {"spec": {}}),
}  # fmt: skip


@scenario
def alpha_versions(client: Client) -> None:
    """Versions that another stands beside have the same strategy: validation, defaults, updates and status."""
    for place, bodies in ALPHA.items():
        path = f"/apis/{place.format(ns=client.ns)}"
        name = place.replace("/", "").replace(".", "")[-12:]
        for body in bodies:
            client.post(path, {"metadata": {"name": "a"}, **body}, DRY)
        client.post(path, {"metadata": {"name": name}, **bodies[0]})
        stored = client.get(f"{path}/{name}").json
        for body in bodies:
            client.put(f"{path}/{name}", {**stored, **body}, DRY)
            client.patch(f"{path}/{name}/status", {"status": {"conditions": [{"type": "A b"}]}}, MERGE, DRY)
        client.delete(f"{path}/{name}")


SKIPPED: tuple[Any, ...] = (
    None,
    [],
    ["NodePrepareResources"],
    ["NodeUnprepareResources"],
    ["NodePrepareResources", "NodeUnprepareResources"],
    ["*"],
    ["*", "NodePrepareResources"],
    ["NodePrepareResources", "NodePrepareResources"],
    ["Nope"],
    [""],
)
ATTRIBUTES: tuple[dict[str, Any], ...] = (
    {},
    {"t": {"string": "x"}},
    {"a.b/t": {"string": "x"}},
    {"t": {"int": 1}},
    {"a.b/t": {"int": 1}, "t": {"string": "x"}},
    {"c.d/t": {"string": "x"}},
    *({"a": {name: []}} for name in ("ints", "bools", "strings", "versions")),
    {"a": {"ints": [], "int": 1}},
    {"a": {"ints": [], "bools": []}},
    {"a": {"ints": [], "bools": [True]}},
    {"a": {"int": 1, "bool": True}},
    {"a": {}},
)


@scenario
def alpha_fields_of_devices(client: Client) -> None:
    """Operations of nodes that are skipped, attributes that name partitions, lists in attributes, and tolerations of results."""
    path, name = "/apis/resource.k8s.io/v1/resourceslices", client.name("s")
    base = {"driver": "a.b", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}, "nodeName": "n"}

    def send(**spec: Any) -> None:
        client.post(path, {"metadata": {"name": name}, "spec": {**base, **spec}}, DRY)

    for skipped in SKIPPED:
        send(devices=[{"name": "d"}], skipNodeOperations=skipped)
    counters = [{"counterSet": "c", "counters": {"x": {"value": "1"}}}]
    for attribute in (None, "a.b/t", "c.d/t", "t", "", "a.b/", "A B"):
        for attributes in ATTRIBUTES[:6]:
            for consumed in (None, counters):
                device = {"name": "d", "attributes": attributes, **({"consumesCounters": consumed} if consumed else {})}
                send(devices=[device], partitionTypeAttribute=attribute)
    for attributes in ATTRIBUTES[5:]:
        send(devices=[{"name": "d", "attributes": attributes}])
    claims = f"/apis/resource.k8s.io/v1/namespaces/{client.ns}/resourceclaims"
    client.post(
        claims,
        {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c.d"}}]}}},
    )
    tolerations: tuple[dict[str, Any], ...] = (
        {"operator": "Exists"},
        {},
        {"operator": "x"},
        {"key": "a", "operator": "Exists", "value": "v"},
        {"key": "-5%", "operator": "Equal", "value": "a b", "effect": "x"},
        {"key": "a", "operator": "Equal", "effect": "NoSchedule", "tolerationSeconds": -1},
    )
    stored = client.get(f"{claims}/c", silent=True).json
    for extra in (
        *({"tolerations": [each]} for each in tolerations),
        {"tolerations": list(tolerations)},
        *({"skipNodeOperations": skipped} for skipped in SKIPPED),
    ):
        result = {"request": "r", "driver": "a.b", "pool": "p", "device": "d", **extra}
        client.put(f"{claims}/c/status", {**stored, "status": {"allocation": {"devices": {"results": [result]}}}}, DRY)


CONTAINER = {"name": "c", "image": "i"}


@scenario
def alpha_fields_of_pods(client: Client) -> None:
    """Modes of directories in memory, options of mounts, protocols of probes and hooks."""
    path = f"/api/v1/namespaces/{client.ns}/pods"

    def send(container: dict[str, Any] | None = None, **spec: Any) -> None:
        client.post(path, {"metadata": {"name": "p"}, "spec": {"containers": [{**CONTAINER, **(container or {})}], **spec}}, DRY)

    for mode in (None, 0, 1, 511, 512, 1023, 1024, -1):
        send(volumes=[{"name": "v", "emptyDir": {"mode": mode}}])
    for options in ([], ["noexec"], ["nodev", "nosuid", "noexec"], ["x"], ["noexec", "noexec"], [""]):
        for source in ({"emptyDir": {}}, {"image": {"reference": "a"}}, {"configMap": {"name": "a"}}):
            send(
                {"volumeMounts": [{"name": "v", "mountPath": "/a", "bindMountOptions": options}]},
                volumes=[{"name": "v", **source}],
            )
    for protocol in (None, "HTTP1", "HTTP2", "HTTP", ""):
        for more in ({}, {"scheme": "HTTP"}, {"scheme": "HTTPS"}, {"host": "a"}, {"host": "a", "scheme": "HTTPS"}):
            action = {"httpGet": {"port": 1, "protocol": protocol, **more}}
            send({"livenessProbe": action})
            send({"lifecycle": {"postStart": action, "preStop": action}})
    for mode in (None, "", "TLS", "Plaintext", "x"):
        send({"livenessProbe": {"grpc": {"port": 1, "mode": mode}}})
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{**CONTAINER, "livenessProbe": {"httpGet": {"port": 1}}}]},
    }
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    client.post(f"/apis/apps/v1/namespaces/{client.ns}/deployments", deployment, DRY)


@scenario
def workloads_without_their_other_gates(client: Client) -> None:
    """Fields of templates whose gates are off are dropped from updates too, which then change nothing."""
    path = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{client.ns}/workloads"
    template = {"name": "t", "schedulingPolicy": {"basic": {}}}
    client.post(path, {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": [template]}})
    for fields in (
        {"schedulingConstraints": {"topology": [{"key": "a"}]}},
        {"schedulingConstraints": None},
        {"priority": 1, "priorityClassName": "a", "disruptionMode": "Pod"},
        {"resourceClaims": [{"name": "c", "resourceClaimName": "d"}]},
        {"schedulingPolicy": {"gang": {"minCount": 1}}},
    ):
        client.patch(f"{path}/w", {"spec": {"podGroupTemplates": [{**template, **fields}]}}, MERGE, DRY)
