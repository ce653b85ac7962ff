"""Admission plugins that are off by default.

The server is started with `--enable-admission-plugins=` and the names in `recordings.OPTIONAL_PLUGINS`.
"""

from __future__ import annotations

import json
from typing import Any

from tests.differential.client import MERGE, STRATEGIC, Client
from tests.differential.registry import scenario

# fmt: off

DRY = {"dryRun": "All"}
CONTAINER = {"name": "c", "image": "i"}
PREFIX = "scheduler.alpha.kubernetes.io/"
Object = dict[str, Any]


def pod(name: str = "p", **spec: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": [CONTAINER], **spec}}


def asking(**requests: str) -> Object:
    return {**CONTAINER, "resources": {"requests": requests, "limits": requests}}


def pods(c: Client, suffix: str = "", **annotations: str) -> str:
    """The pods of the client's namespace, or of one with annotations of the scheduler."""
    if not suffix:
        return f"/api/v1/namespaces/{c.ns}/pods"
    name = c.name(suffix)
    c.post("/api/v1/namespaces", {"metadata": {"name": name, "annotations": {PREFIX + key.replace("_", "-"): text for key, text in annotations.items()}}}, silent=True)
    return f"/api/v1/namespaces/{name}/pods"


def forget(c: Client, path: str) -> None:
    c.delete(path.removesuffix("/pods"), silent=True)


@scenario
def images_are_always_pulled(c: Client) -> None:
    """AlwaysPullImages sets the policy of containers and image volumes, when a pod is made and when an update brings a new image."""
    path = pods(c)
    image = {"name": "v", "image": {"reference": "r", "pullPolicy": "Never"}}
    for spec in (
        {}, {"containers": [{**CONTAINER, "imagePullPolicy": "Never"}]}, {"initContainers": [{**CONTAINER, "name": "d", "imagePullPolicy": "IfNotPresent"}]}, {"volumes": [image]},
        {"volumes": [{"name": "w", "emptyDir": {}}, {"name": "v", "image": {"reference": "r"}}]}, {"containers": [{**CONTAINER, "imagePullPolicy": "Nope"}]},
    ):
        c.post(path, pod(**spec), DRY)
    c.post(path, pod(initContainers=[{**CONTAINER, "name": "d", "image": "j"}]), silent=True)
    for change in (
        {"metadata": {"labels": {"a": "b"}}}, {"spec": {"containers": [{"name": "c", "image": "new"}]}}, {"spec": {"containers": [{"name": "c", "image": "j"}]}},
        {"spec": {"containers": [{"name": "c", "imagePullPolicy": "Never"}]}}, {"spec": {"containers": [{"name": "c", "image": "new", "imagePullPolicy": "Never"}]}},
    ):
        c.patch(f"{path}/p", change, STRATEGIC, DRY)
    for policy in ("Never", "Always", ""):
        for name in ("i", "new"):
            c.patch(f"{path}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": name, **({"imagePullPolicy": policy} if policy else {})}]}}, STRATEGIC, DRY)


@scenario
def required_anti_affinity_is_about_the_hostname(c: Client) -> None:
    """LimitPodHardAntiAffinityTopology refuses any other topology key of a required term."""
    host = "kubernetes.io/hostname"

    def terms(*keys: str) -> list[Object]:
        return [{"topologyKey": key, "labelSelector": {}} for key in keys]

    for keys in ([], [host], ["zone"], [host, "zone"], ["zone", host], [""], ["a", "b"]):
        c.post(pods(c), pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms(*keys)}}), DRY)
    c.post(pods(c), pod(affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": terms("zone")[0]}]}}), DRY)
    c.post(pods(c), pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms("zone")}}), DRY)
    c.post(pods(c), pod(affinity={"podAntiAffinity": {}}), DRY)
    c.post(pods(c), pod(affinity={}), DRY)
    c.post(pods(c), {"metadata": {"generateName": "g-"}, "spec": pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms("zone")}})["spec"]}, DRY)


@scenario
def extended_resources_are_tolerated(c: Client) -> None:
    """ExtendedResourceToleration adds a toleration for each extended resource that is requested, in their order, unless it is there."""
    two = {"example.com/b": "1", "example.com/a": "1"}
    own = {"key": "example.com/a", "operator": "Exists", "effect": "NoSchedule"}
    for spec in (
        {}, {"containers": [asking(cpu="1", memory="1Gi")]}, {"containers": [asking(**two)]}, {"initContainers": [{**asking(**two), "name": "d"}]},
        {"containers": [asking(**two)], "initContainers": [{**asking(**two, **{"a.b/c": "2"}), "name": "d"}]}, {"containers": [asking(**two)], "tolerations": [own]},
        *({"containers": [asking(**two)], "tolerations": [{**own, **change}]} for change in ({"effect": "NoExecute"}, {"operator": "Equal", "value": "x"}, {"effect": None}, {"effect": "NoExecute", "tolerationSeconds": 5})),
        {"containers": [asking(**{"example.com/a": "0"})]}, {"containers": [asking(**{"hugepages-2Mi": "2Mi", "cpu": "1"})]}, {"containers": [{**CONTAINER, "resources": {"limits": {"example.com/a": "1"}}}]},
        {"containers": [asking(**{"x.kubernetes.io/a": "1"})]}, {"containers": [asking(**{"kubernetes.io/a": "1"})]},
    ):
        c.post(pods(c), pod(**spec), DRY)
    c.post(pods(c), pod(containers=[asking(**two)]), silent=True)
    c.patch(f"{pods(c)}/p", {"metadata": {"labels": {"a": "b"}}}, MERGE, DRY)


@scenario
def external_addresses_are_denied(c: Client) -> None:
    """DenyServiceExternalIPs refuses new external addresses; those that a service has may stay or go."""
    path = f"/api/v1/namespaces/{c.ns}/services"
    for spec in ({}, {"externalIPs": []}, {"externalIPs": ["1.2.3.4"]}, {"externalIPs": ["x"]}, {"type": "ExternalName", "externalName": "a.b", "externalIPs": ["1.2.3.4"]}):
        c.post(path, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], **spec}}, DRY)
    c.post(path, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, silent=True)
    for addresses in ([], ["1.2.3.4"], ["1.2.3.4", "2.3.4.5"]):
        c.patch(f"{path}/s", {"spec": {"externalIPs": addresses}}, MERGE, DRY)
    c.patch(f"{path}/s", {"metadata": {"labels": {"a": "b"}}}, MERGE, DRY)


@scenario
def selectors_of_namespaces(c: Client) -> None:
    """PodNodeSelector adds the selector of the namespace; a pod must not ask for anything else by the same labels."""
    for number, text in enumerate(("a=b", " a = b ,c=d", "a=b=c", "a", "", ",", "a=b,", "A b=c", "a=b c", f"{'a' * 64}=b", f"a={'b' * 64}", f"a={'b' * 63}", "x.y/a=b", "=b", "a=")):
        path = pods(c, f"s{number}", node_selector=text)
        for asked in ({}, {"a": "b"}, {"a": "x"}, {"z": "y"}, {"a": "b", "z": "y"}):
            c.post(path, pod(nodeSelector=asked), DRY)
        forget(c, path)
    path = pods(c, "update", node_selector="a=b")
    c.post(path, pod())
    c.patch(f"{path}/p", {"metadata": {"labels": {"a": "b"}}}, MERGE, DRY)
    c.patch(path.removesuffix("/pods"), {"metadata": {"annotations": {f"{PREFIX}node-selector": "a=c"}}}, MERGE, silent=True)
    c.patch(f"{path}/p", {"metadata": {"labels": {"a": "b"}}}, MERGE, DRY)
    c.post(path, pod("q"), DRY)
    forget(c, path)


EQUAL = {"key": "k", "operator": "Equal", "value": "v"}
EXISTS = {"key": "k", "operator": "Exists"}
TOLERATIONS: list[Object] = [
    EQUAL, EXISTS, {"key": "k", "value": "v"}, {"key": "k"}, {**EQUAL, "value": "w"}, {"operator": "Exists"}, {"operator": "Exists", "effect": "NoSchedule"}, {**EXISTS, "key": "l"},
    *({**one, "effect": effect} for one in (EQUAL, EXISTS) for effect in ("NoSchedule", "NoExecute", "PreferNoSchedule")),
    *({**one, "effect": "NoExecute", "tolerationSeconds": seconds} for one in (EQUAL, EXISTS) for seconds in (-1, 0, 5, 6)),
]
"""Each of them is compared with each."""


@scenario
def default_tolerations(c: Client) -> None:
    """PodTolerationRestriction adds the tolerations of the namespace, without those that others cover; pods that ask for something tolerate a lack of memory."""
    for number, one in enumerate(TOLERATIONS[::3]):
        path = pods(c, f"t{number}", defaultTolerations=json.dumps([one]))
        for other in TOLERATIONS:
            c.post(path, pod(tolerations=[other]), DRY)
        c.post(path, pod(), DRY)
        forget(c, path)
    path = pods(c, "many", defaultTolerations=json.dumps([EQUAL, EXISTS, {**EXISTS, "key": "l"}, EQUAL]))
    for held in ([], TOLERATIONS[:8], TOLERATIONS[::-1], [EXISTS, EXISTS], [{**EXISTS, "effect": "NoSchedule"}, EXISTS]):
        c.post(path, pod(tolerations=held), DRY)
    for container in (asking(cpu="1"), asking(cpu="1", memory="1Gi"), {**CONTAINER, "resources": {"requests": {"memory": "1Gi"}}}):
        c.post(path, pod(containers=[container]), DRY)
    c.post(path, pod(containers=[asking(cpu="1")]), silent=True)
    c.patch(f"{path}/p", {"metadata": {"labels": {"a": "b"}}}, MERGE, DRY)
    c.patch(f"{path}/p", {"spec": {"tolerations": [*c.get(f"{path}/p", silent=True).json["spec"]["tolerations"], {**EXISTS, "key": "m"}]}}, MERGE, DRY)
    forget(c, path)


@scenario
def allowed_tolerations(c: Client) -> None:
    """PodTolerationRestriction refuses what no toleration of the namespace's whitelist covers; a text that cannot be read refuses everything."""
    more = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}, {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]
    for number, one in enumerate(TOLERATIONS):
        path = pods(c, f"w{number}", tolerationsWhitelist=json.dumps([one, *more]))
        for other in TOLERATIONS:
            c.post(path, pod(tolerations=[other]), DRY)
        c.post(path, pod(), DRY)
        forget(c, path)
    for number, text in enumerate(("", "[]", "null", "{}", "x", "[1]", "[null]", '["a"]', '[{"key":1}]', '[{"nope":"x"}]', '[{"operator":"Nope"}]', "[", "1")):
        for name in ("tolerationsWhitelist", "defaultTolerations"):
            path = pods(c, f"{name[0]}x{number}", **{name: text})
            c.post(path, pod(), DRY)
            c.post(path, pod(containers=[asking(cpu="1")]), DRY)
            c.post(path, pod(tolerations=[EXISTS]), DRY)
            forget(c, path)
