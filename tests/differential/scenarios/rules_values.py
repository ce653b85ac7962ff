"""Values at the edges, each of which random stories met: characters, numbers, prefixes and empty keywords, and how they are told."""

from __future__ import annotations

import copy
from typing import Any

from tests.differential.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Client
from tests.differential.definitions import CRDS, DRY, definition, make, obj, served
from tests.differential.registry import scenario
from tests.differential.steps import deployment, maps, pod

# fmt: off

Object = dict[str, Any]

#: A value that %q and JSON print differently.
ODD = "<a>&\x7f"
_SELECTOR: Object = {"matchExpressions": [{"key": "a", "operator": ODD}]}


def namespaced(c: Client, group: str, plural: str) -> str:
    return f"/{'apis' if '/' in group else 'api'}/{group}/namespaces/{c.ns}/{plural}"


def template(**spec: Any) -> Object:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def workload(**spec: Any) -> Object:
    return {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template(), **spec}}


@scenario
def odd_characters_of_types_of_their_own(c: Client) -> None:
    """A value is told as JSON if Go holds it by a pointer, or in a string type of its own; all others as %q."""
    term = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": ODD}], "matchFields": [{"key": "metadata.name", "operator": ODD, "values": ["n"]}]}]}
    c.post(namespaced(c, "v1", "pods"), pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}), DRY)
    for toleration in ({"operator": ODD}, {"key": "a", "effect": ODD, "tolerationSeconds": 1}):
        c.post(namespaced(c, "v1", "pods"), pod(tolerations=[toleration]), DRY)
    c.post(namespaced(c, "v1", "pods"), pod(securityContext={"windowsOptions": {"gmsaCredentialSpecName": ODD, "runAsUserName": ODD}}), DRY)
    for spec in ({"selector": _SELECTOR}, {"strategy": {"rollingUpdate": {"maxSurge": ODD, "maxUnavailable": "5"}}}):
        c.post(namespaced(c, "apps/v1", "deployments"), workload(**spec), DRY)
    c.post(namespaced(c, "apps/v1", "daemonsets"), workload(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": ODD}}), DRY)
    c.post(namespaced(c, "apps/v1", "statefulsets"), workload(podManagementPolicy=ODD, serviceName="s"), DRY)
    jobs = {"template": {"spec": {"template": template(restartPolicy="Never")}}, "schedule": "* * * * *"}
    for zone in (ODD, "", "Local", "Nope"):
        c.post(namespaced(c, "batch/v1", "cronjobs"), {"metadata": {"name": "a"}, "spec": {**jobs, "timeZone": zone}}, DRY)
    budget = {"metadata": {"name": "a"}, "spec": {"selector": _SELECTOR, "maxUnavailable": ODD}}
    c.post(namespaced(c, "policy/v1", "poddisruptionbudgets"), budget, DRY)
    limits = [{"type": ODD, "max": {"cpu": "1"}}, {"type": "Container", "max": {ODD: "1"}}]
    c.post(namespaced(c, "v1", "limitranges"), {"metadata": {"name": "a"}, "spec": {"limits": limits}}, DRY)
    scopes = [{"scopeName": ODD, "operator": "Exists"}, {"scopeName": "BestEffort", "operator": ODD}]
    c.post(namespaced(c, "v1", "resourcequotas"), {"metadata": {"name": "a"}, "spec": {"hard": {ODD: "1"}, "scopeSelector": {"matchExpressions": scopes}}}, DRY)
    metric = {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": ODD, "averageUtilization": 1}}}
    scaler = {"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "maxReplicas": 1, "metrics": [metric]}
    c.post(namespaced(c, "autoscaling/v2", "horizontalpodautoscalers"), {"metadata": {"name": "a"}, "spec": scaler}, DRY)
    c.post(namespaced(c, "v1", "services"), {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "trafficDistribution": ODD}}, DRY)
    parameters = {"kind": "K", "name": "n", "scope": ODD}
    c.post("/apis/networking.k8s.io/v1/ingressclasses", {"metadata": {"name": c.name("a")}, "spec": {"controller": "a.b/c", "parameters": parameters}}, DRY)
    schema = obj({"t": {"type": ODD}, "m": obj({}, **{"x-kubernetes-map-type": ODD}), "l": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": ODD}})
    c.post(CRDS, definition(c, schema), DRY)
    c.post(CRDS, definition(c, scope=ODD, conversion={"strategy": ODD}), DRY)
    secrets = namespaced(c, "v1", "secrets")
    c.post(secrets, {"metadata": {"name": "s"}, "type": "a"})
    c.patch(f"{secrets}/s", {"type": ODD}, MERGE, DRY)


@scenario
def numbers_beyond_float64(c: Client) -> None:
    """Strict decoding of a merge patch reads every number; without it only what reaches a field is read."""
    c.post(maps(c), {"metadata": {"name": "m"}, "data": {"a": "b"}})
    big = "1" + "0" * 310
    for body in ('{"metadata":{"name":1E400}}', '{"unknown":-1e999}', f'{{"data":{{"a":{big}}}}}', "1e309", "[1e309]", '{"data":{"b":"1e400"}}', '{"unknown":[{"a":1e400}]}', '{"unknown":{"a":{"b":1e400},"c":2e400}}'):
        for checks in ("Strict", "Warn", "Ignore"):
            for kind in (MERGE, STRATEGIC):
                c.patch(f"{maps(c)}/m", body, kind, {**DRY, "fieldValidation": checks})
        c.patch(f"{maps(c)}/m", body, APPLY, {**DRY, "fieldManager": "m"})
    body = definition(c, obj({"spec": obj({"n": {"type": "number"}, "i": {"type": "integer"}})}))
    with served(c, body) as path:
        c.post(path, make(body, spec={"n": 1}))
        for number in ("1e400", big, "1e308", "18446744073709551616"):
            for field in ("n", "i", "unknown"):
                for checks in ("Warn", "Ignore"):
                    c.patch(f"{path}/one", f'{{"spec":{{"{field}":{number}}}}}', MERGE, {**DRY, "fieldValidation": checks})


@scenario
def characters_that_yaml_has_not(c: Client) -> None:
    """An apply in JSON is read as YAML, too."""
    for text in ("\x7f", "\x9f", "\ufffe", "é", "\u2028", "\ufeff", "\x85"):
        body = f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"m"}},"data":{{"a":"{text}"}}}}'
        c.patch(f"{maps(c)}/m", body, APPLY, {**DRY, "fieldManager": "m"})
        c.post(maps(c), body, DRY, ctype="application/yaml")


@scenario
def metadata_in_schemas(c: Client) -> None:
    """A schema of metadata may have what a structural schema does not keep, if it is empty."""
    keywords: tuple[Object, ...] = (
        {"definitions": {}}, {"dependencies": {}}, {"patternProperties": {}}, {"example": {"a": 1}}, {"externalDocs": {"url": "u"}}, {"definitions": {"a": {}}},
        {"properties": {"name": {"type": "string"}}, "definitions": {}}, {"x-kubernetes-embedded-resource": False}, {"description": "d"}, {"title": "t"}, {"required": []}, {"enum": []},
        {"properties": {"labels": obj({})}}, {"additionalItems": False}, {"nullable": False}, {"default": {}}, {"x-kubernetes-validations": []}, {"uniqueItems": False},
    )
    for keyword in keywords:
        for name in ("metadata", "spec"):
            c.post(CRDS, definition(c, obj({name: {"type": "object", **keyword}})), DRY)


@scenario
def blocks_of_addresses_within_others(c: Client) -> None:
    """The prefixes of a block and of its exceptions are compared as written, among 32 bits or 128."""
    for cidr in ("1.0.0.0/8", "01.0.0.0/8", "::ffff:1.0.0.0/104", "fd00::/64", "0.0.0.0/0", "x"):
        for part in ("::ffff:1.0.0.0/104", "1.2.0.0/16", "01.2.0.0/16", "::ffff:1.2.0.0/112", "fd00::/96", "1.0.0.0/8", "x", "::ffff:1.2.3.4/120"):
            peer = {"ipBlock": {"cidr": cidr, "except": [part]}}
            c.post(namespaced(c, "networking.k8s.io/v1", "networkpolicies"), {"metadata": {"name": "p"}, "spec": {"podSelector": {}, "ingress": [{"from": [peer]}]}}, DRY)


@scenario
def label_keys_of_spread_constraints(c: Client) -> None:
    """Keys are validated although there is no selector, if they are not merged into it."""
    for selector in ({}, {"labelSelector": {"matchLabels": {"a": "b"}}}):
        for keys in (["101%"], ["a"], ["a", "a"], [""], ["a/b/c", "x"], ["x", "a", "101%"]):
            constraint = {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": keys, **selector}
            c.post(namespaced(c, "v1", "pods"), pod(topologySpreadConstraints=[constraint]), DRY)
            c.post(namespaced(c, "apps/v1", "deployments"), workload(template=template(topologySpreadConstraints=[constraint])), DRY)


@scenario
def templates_of_stateful_sets_that_are_recreated(c: Client) -> None:
    """The old spec is validated with the strategy that it may have; only if it is invalid is the new template not validated."""
    path = namespaced(c, "apps/v1", "statefulsets")
    for strategy in ("Recreate", "RollingUpdate", "OnDelete"):
        name = strategy.lower()
        body = {**workload(serviceName="s", updateStrategy={"type": strategy}), "metadata": {"name": name}}
        c.post(path, body)
        stored = c.get(f"{path}/{name}", silent=True).json
        if "spec" in stored:
            for after in ("Recreate", "RollingUpdate", "OnDelete"):
                changed = copy.deepcopy(stored)
                changed["spec"] |= {"updateStrategy": {"type": after}, "template": template(containers=[{"name": "c"}])}
                c.put(f"{path}/{name}", changed, DRY)


@scenario
def resizes_without_a_change(c: Client) -> None:
    """A pod that cannot be resized is refused even if nothing changes."""
    path = namespaced(c, "v1", "pods")
    for name, spec in (("w", {"os": {"name": "windows"}}), ("l", {"os": {"name": "linux"}}), ("n", {})):
        c.post(path, pod(name, **spec))
        stored = c.get(f"{path}/{name}", silent=True).json
        c.put(f"{path}/{name}/resize", stored, DRY)
        c.patch(f"{path}/{name}/resize", {}, MERGE, DRY)
        stored["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
        c.put(f"{path}/{name}/resize", stored, DRY)


@scenario
def events_of_another_group(c: Client) -> None:
    """The error of a precondition names the group in which the event is stored."""
    event = {"metadata": {"name": "e", "namespace": c.ns}, "involvedObject": {"kind": "Pod", "namespace": c.ns, "name": "p"}}
    c.post(namespaced(c, "v1", "events"), event)
    for group in ("v1", "events.k8s.io/v1"):
        for precondition in ({"uid": "wrong"}, {"resourceVersion": "1"}):
            c.delete(f"{namespaced(c, group, 'events')}/e", {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": precondition})


@scenario
def long_names_of_controllers(c: Client) -> None:
    """Of some kinds the bytes of a name are counted (since 1.35), of the others its characters."""
    for name in ("x" * 254, "X" * 254, "A.b", "é" * 130):
        for group, plural in (("v1", "replicationcontrollers"), ("apps/v1", "replicasets")):
            body = workload() if group == "apps/v1" else {"spec": {"selector": {"a": "b"}, "template": template()}}
            c.post(namespaced(c, group, plural), {**body, "metadata": {"name": name}}, DRY)
    c.post(namespaced(c, "apps/v1", "deployments"), deployment("x" * 254), DRY)


@scenario
def patches_of_odd_texts(c: Client) -> None:
    """Operations whose texts need escapes in JSON."""
    c.post(maps(c), {"metadata": {"name": "m"}, "data": {"a": ODD}})
    for operation in ({"op": "test", "path": "/data/a", "value": ODD}, {"op": "test", "path": "/data/a", "value": "x"}, {"op": "copy", "from": "/data/a", "path": "/data/b"}, {"op": "move", "from": f"/data/{ODD}", "path": "/data/b"}):
        c.patch(f"{maps(c)}/m", [operation], JSON_PATCH, DRY)


@scenario
def health_of_volumes(c: Client) -> None:
    """The health of volumes is dropped, or validated if its gate is on."""
    claims, pods = namespaced(c, "v1", "persistentvolumeclaims"), namespaced(c, "v1", "pods")
    c.post(claims, {"metadata": {"name": "a"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    c.post(pods, pod("a", volumes=[{"name": "v", "emptyDir": {}}]))
    good = {"status": "Degraded", "reason": "r"}
    lists: tuple[Any, ...] = (
        [{"status": "x", "reason": "r"}], [{"status": "Degraded"}], [{}], [good, good], [good, {**good, "reason": "s"}], [{**good, "message": "m" * 1025, "reason": "r" * 257}],
        [{**good, "reason": str(number)} for number in range(17)], [good], [{**good, "message": "m"}, {**good, "message": "n"}],
    )
    for conditions in lists:
        c.patch(f"{claims}/a/status", {"status": {"healthStatus": {"healthConditions": conditions}}}, MERGE, DRY)
        c.patch(f"{pods}/a/status", {"status": {"volumeHealth": [{"name": "v", "healthConditions": conditions}]}}, MERGE, DRY)
    for items in ([{}], [{"name": "v"}, {"name": "v"}], [{"name": "absent"}]):
        c.patch(f"{pods}/a/status", {"status": {"volumeHealth": items}}, MERGE, DRY)


@scenario
def policies_of_preemption_by_resizes(c: Client) -> None:
    """The policy of a node is dropped, or validated if its gate is on."""
    name = c.name("n")
    c.post("/api/v1/nodes", {"metadata": {"name": name}})
    for keys in (["a..b", "x", "\t"], ["a"], [], ["example.com/a", "example.com/a"], ["x" * 70], [str(number) for number in range(21)]):
        spec = {"podPreemptionPolicy": {"disableResizePreemption": keys}}
        c.post("/api/v1/nodes", {"metadata": {"name": c.name("other")}, "spec": spec}, DRY)
        c.patch(f"/api/v1/nodes/{name}", {"spec": spec}, MERGE, DRY)
    c.delete(f"/api/v1/nodes/{name}")
