"""Write options, field validation, allocation, virtual resources, bad bodies and bad paths."""

from __future__ import annotations

from typing import Any

from tests.differential.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, TABLE, Client
from tests.differential.registry import scenario
from tests.differential.transports import Reply

POD = {"containers": [{"name": "c", "image": "i"}]}
DEPLOYMENT = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}}
AUTH, AUTHN = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"


def at(c: Client, plural: str = "configmaps", *rest: str) -> str:
    root = {"deployments": "/apis/apps/v1", "leases": "/apis/coordination.k8s.io/v1"}.get(plural, "/api/v1")
    return "/".join([f"{root}/namespaces/{c.ns}", plural, *rest])


def make(c: Client, name: str, plural: str = "configmaps", **body: Any) -> Reply:
    spec = {
        "configmaps": {"data": {"k": "v"}},
        "deployments": {"spec": DEPLOYMENT},
        "pods": {"spec": POD},
        "services": {"spec": {"ports": [{"port": 80}]}},
    }.get(plural, {})
    return c.post(at(c, plural), {**spec, "metadata": {"name": name}, **body}, silent=True)


def service(c: Client, name: str, query: Any = None, **spec: Any) -> Reply:
    return c.post(at(c, "services"), {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}, query)


@scenario
def a_dry_run_of_every_verb(c: Client) -> None:
    """The answers of the real thing, and nothing stored."""
    dry = {"dryRun": "All"}
    c.post(at(c), {"metadata": {"name": "new"}, "data": {"a": "b"}}, dry)
    c.get(at(c, "configmaps", "new"))
    make(c, "old")
    c.put(at(c, "configmaps", "old"), {"metadata": {"name": "old"}, "data": {"k": "2"}}, dry)
    for ctype, body in (
        (MERGE, {"data": {"k": "3"}}),
        (STRATEGIC, {"data": {"k": "4"}}),
        (JSON_PATCH, [{"op": "add", "path": "/data/x", "value": "5"}]),
        (APPLY, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "old"}, "data": {"y": "6"}}),
    ):
        c.patch(at(c, "configmaps", "old"), body, ctype, {**dry, "fieldManager": "m"})
    c.patch(
        at(c, "configmaps", "fresh"),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fresh"}},
        APPLY,
        {**dry, "fieldManager": "m"},
    )
    c.delete(at(c, "configmaps", "old"), None, dry)
    c.delete(at(c), None, dry)
    c.get(at(c))


@scenario
def dry_runs_fail_like_the_real_thing(c: Client) -> None:
    """Validation, conflicts, absence."""
    dry = {"dryRun": "All"}
    old = make(c, "x").json
    c.patch(at(c, "configmaps", "x"), {"data": {"n": "1"}}, MERGE, silent=True)
    c.post(at(c), {"metadata": {"name": "x"}}, dry)
    c.post(at(c), {"metadata": {"name": "BAD"}}, dry)
    c.put(at(c, "configmaps", "x"), old, dry)
    c.put(at(c, "configmaps", "absent"), {"metadata": {"name": "absent"}}, dry)
    c.patch(at(c, "configmaps", "absent"), {}, MERGE, dry)
    c.delete(at(c, "configmaps", "absent"), None, dry)
    c.delete(at(c, "configmaps", "x"), {"preconditions": {"uid": "x"}}, dry)
    c.put(at(c, "leases", "made-by-put"), {"metadata": {"name": "made-by-put"}}, dry)
    c.get(at(c, "leases", "made-by-put"))


@scenario
def values_of_dry_run(c: Client) -> None:
    """All is the one value; empty means for real."""
    for i, query in enumerate(
        (
            {"dryRun": "all"},
            {"dryRun": "None"},
            {"dryRun": ""},
            {"dryRun": "true"},
            "dryRun",
            "dryRun=All&dryRun=All",
            "dryRun=All&dryRun=Nope",
            "dryRun=&dryRun=All",
            "dryrun=All",
        )
    ):
        c.post(at(c), {"metadata": {"name": f"v{i}"}}, query)
    make(c, "y")
    c.patch(at(c, "configmaps", "y"), {}, MERGE, {"dryRun": "x"})
    c.put(at(c, "configmaps", "y"), {"metadata": {"name": "y"}}, {"dryRun": "x"})
    c.get(at(c), {"dryRun": "x"}, headers={"Accept": TABLE})


@scenario
def dry_runs_of_other_kinds(c: Client) -> None:
    """Pods, services, deployments, namespaces, nodes, subresources."""
    dry = {"dryRun": "All"}
    c.post(at(c, "pods"), {"metadata": {"name": "p"}, "spec": POD}, dry)
    c.post(at(c, "deployments"), {"metadata": {"name": "d"}, "spec": DEPLOYMENT}, dry)
    c.post("/api/v1/namespaces", {"metadata": {"name": c.name("n")}}, dry)
    c.get("/api/v1/namespaces/" + c.name("n"))
    c.post("/api/v1/nodes", {"metadata": {"name": c.name("n")}}, dry)
    make(c, "e", "deployments")
    c.patch(at(c, "deployments", "e/scale"), {"spec": {"replicas": 9}}, MERGE, dry)
    c.patch(at(c, "deployments", "e/status"), {"status": {"replicas": 9}}, MERGE, dry)
    c.get(at(c, "deployments", "e"))
    make(c, "q", "pods")
    c.post(at(c, "pods", "q/binding"), {"metadata": {"name": "q"}, "target": {"name": "n"}}, dry)
    c.post(at(c, "configmaps"), {"metadata": {"generateName": "generated-"}}, dry)


@scenario
def unknown_fields_at_three_levels(c: Client) -> None:
    """Ignore is silent, Warn warns for each field, Strict refuses with all of them."""
    body = {
        "bogus": 1,
        "metadata": {"name": "u", "nope": 2, "labels": {"ok": "1"}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "imge": "x", "ports": [{"containerPort": 1, "hots": 2}]}],
            "restartPolice": "x",
        },
    }
    for level in ("Ignore", "Warn", "Strict", None, "", "strict", "Nope"):
        c.post(at(c, "pods"), body, {"fieldValidation": level, "dryRun": "All"} if level is not None else {"dryRun": "All"})
    make(c, "u", "pods")
    for level in ("Ignore", "Warn", "Strict"):
        query = {"fieldValidation": level, "dryRun": "All"}
        c.put(at(c, "pods", "u"), body, query)
        c.patch(at(c, "pods", "u"), {"bogus": 1, "spec": {"nope": 2}}, MERGE, query)
        c.patch(at(c, "pods", "u"), {"bogus": 1, "metadata": {"nope": 2}}, STRATEGIC, query)
        c.patch(
            at(c, "pods", "u"),
            [{"op": "add", "path": "/spec/nope", "value": 1}, {"op": "add", "path": "/bogus", "value": 1}],
            JSON_PATCH,
            query,
        )
        c.patch(
            at(c, "pods", "u"),
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "u"}, "spec": {"nope": 1}},
            APPLY,
            {**query, "fieldManager": "m"},
        )


@scenario
def duplicate_fields_at_three_levels(c: Client) -> None:
    """The last value counts; Warn and Strict tell where."""
    text = '{"metadata": {"name": "d", "name": "e", "labels": {"a": "1", "a": "2"}}, "data": {"k": "1", "k": "2"}, "data": {"l": "3"}}'
    for level in ("Ignore", "Warn", "Strict", None):
        c.post(at(c), text, {"dryRun": "All", **({"fieldValidation": level} if level else {})})
    make(c, "e")
    for level in ("Ignore", "Warn", "Strict"):
        query = {"fieldValidation": level, "dryRun": "All"}
        c.put(at(c, "configmaps", "e"), text, query)
        c.patch(at(c, "configmaps", "e"), '{"data": {"m": "1", "m": "2"}, "data": {"n": "3"}}', MERGE, query)
        c.patch(at(c, "configmaps", "e"), '{"data": {"m": "1", "m": "2"}}', STRATEGIC, query)
        c.patch(
            at(c, "configmaps", "e"), '[{"op": "add", "path": "/data/z", "path": "/data/y", "value": "1"}]', JSON_PATCH, query
        )
        c.patch(
            at(c, "configmaps", "e"),
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e}\ndata: {q: '1', q: '2'}\n",
            APPLY,
            {**query, "fieldManager": "m"},
        )
        c.post(at(c), "metadata: {name: f}\ndata: {q: '1', q: '2'}\nbogus: 1\n", query, ctype="application/yaml")


@scenario
def unknown_and_duplicate_together(c: Client) -> None:
    """Both in one message, in the order of the text; field names are compared with case."""
    for text in (
        '{"metadata": {"name": "b"}, "x": 1, "x": 2}',
        '{"metadata": {"name": "b"}, "Data": {"k": "v"}}',
        '{"Metadata": {"name": "b"}}',
        '{"metadata": {"Name": "b"}}',
        '{"metadata": {"name": "b"}, "metadata": {"name": "c"}, "y": {"z": 1, "z": 2}}',
        '{"metadata": {"name": "b"}, "data": {"a": "1"}, "DATA": {"b": "2"}}',
        '{"metadata": {"name": "b"}, "kind": "ConfigMap", "kind": "ConfigMap", "apiVersion": "v1", "apiVersion": "v1"}',
    ):
        for level in ("Warn", "Strict"):
            c.post(at(c), text, {"dryRun": "All", "fieldValidation": level})


@scenario
def a_wrong_type_hides_unknown_fields(c: Client) -> None:
    """A fatal error is reported alone, at every level."""
    for level in ("Ignore", "Warn", "Strict"):
        query = {"fieldValidation": level}
        c.post(at(c), {"metadata": {"name": "w"}, "bogus": 1, "data": "text"}, query)
        c.post(at(c, "pods"), {"metadata": {"name": "w"}, "nope": 1, "spec": {"containers": "x"}}, query)
        c.post(at(c, "deployments"), {"metadata": {"name": "w"}, "spec": {**DEPLOYMENT, "replicas": "three", "nope": 1}}, query)
    for spec in (
        {"replicas": 1.5},
        {"replicas": 2**40},
        {"replicas": None},
        {"replicas": True},
        {"paused": "yes"},
        {"paused": 1},
        {"minReadySeconds": "1"},
        {"template": []},
        {"selector": None},
        {"strategy": "Recreate"},
    ):
        c.post(at(c, "deployments"), {"metadata": {"name": "t"}, "spec": {**DEPLOYMENT, **spec}}, {"dryRun": "All"})


@scenario
def warnings_beyond_fields(c: Client) -> None:
    """Deprecations and dubious values come as Warning headers, too, several at once."""
    c.post(
        at(c, "pods"),
        {
            "metadata": {"name": "w", "annotations": {"scheduler.alpha.kubernetes.io/critical-pod": ""}},
            "spec": {
                "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}],
                "nodeSelector": {"beta.kubernetes.io/os": "linux"},
                "serviceAccount": "x",
            },
            "bogus": 1,
        },
        {"dryRun": "All"},
    )
    c.post(
        at(c, "pods"),
        {
            "metadata": {"name": "w"},
            "spec": {
                "terminationGracePeriodSeconds": -1,
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "ports": [{"containerPort": 80}, {"containerPort": 80, "name": "again"}],
                        "resources": {"requests": {"cpu": "0.0001", "memory": "100m"}},
                    }
                ],
            },
        },
        {"dryRun": "All"},
    )
    c.post(
        at(c, "pods"),
        {
            "metadata": {"name": "a.b_c"[:3]},
            "spec": {
                "hostAliases": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}],
                "volumes": [{"name": "v", "gitRepo": {"repository": "r"}}],
                **POD,
            },
        },
        {"dryRun": "All"},
    )
    c.post(at(c, "endpoints"), {"metadata": {"name": "w"}}, {"dryRun": "All"})
    c.get(at(c, "endpoints"))
    c.get("/api/v1/componentstatuses", {"labelSelector": f"x={c.id}"})
    service(
        c, "w", {"dryRun": "All"}, externalIPs=["1.2.3.4"], type="ClusterIP", sessionAffinity="None", loadBalancerIP="5.6.7.8"
    )
    c.post(
        at(c, "persistentvolumeclaims"),
        {
            "metadata": {"name": "w", "annotations": {"volume.beta.kubernetes.io/storage-class": "x"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1.5"}}},
        },
        {"dryRun": "All"},
    )
    c.post(
        f"/apis/batch/v1/namespaces/{c.ns}/cronjobs",
        {
            "metadata": {"name": "w"},
            "spec": {
                "schedule": "TZ=UTC * * * * *",
                "jobTemplate": {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}},
            },
        },
        {"dryRun": "All"},
    )
    c.post(
        f"/apis/batch/v1/namespaces/{c.ns}/cronjobs",
        {
            "metadata": {"name": "w" * 52},
            "spec": {
                "schedule": "* * * * *",
                "x": 1,
                "jobTemplate": {"spec": {"y": 1, "template": {"spec": {**POD, "z": 1, "restartPolicy": "Never"}}}},
            },
        },
        {"dryRun": "All"},
    )


@scenario
def many_unknown_fields(c: Client) -> None:
    """Warnings are cut off at a point, and so is their text."""
    c.post(at(c), {"metadata": {"name": "m"}, **{f"unknown{i}": i for i in range(30)}}, {"dryRun": "All"})
    c.post(
        at(c),
        {"metadata": {"name": "m"}, **{f"unknown{i}": i for i in range(30)}},
        {"dryRun": "All", "fieldValidation": "Strict"},
    )
    c.post(at(c), {"metadata": {"name": "m"}, "x" * 3000: 1}, {"dryRun": "All"})
    c.post(at(c), {"metadata": {"name": "m"}, 'quo"te': 1, "back\\slash": 2, "é": 3, "new\nline": 4}, {"dryRun": "All"})


@scenario
def cluster_addresses_are_allocated_and_kept(c: Client) -> None:
    """A free address by default, a chosen one if free, None for headless, nothing for ExternalName."""
    service(c, "auto")
    service(c, "chosen", clusterIP="10.0.123.45")
    service(c, "taken", clusterIP="10.0.123.45")
    service(c, "outside", clusterIP="192.168.1.1")
    service(c, "text", clusterIP="hello")
    service(c, "v6", clusterIP="fd00::1")
    service(c, "headless", clusterIP="None")
    service(c, "external", type="ExternalName", externalName="example.com")
    service(c, "bare-external", type="ExternalName")
    service(c, "both", clusterIP="10.0.123.46", clusterIPs=["10.0.123.47"])
    service(c, "list", clusterIPs=["10.0.123.48"])
    service(c, "none", clusterIPs=["None"])
    c.delete(at(c, "services", "chosen"))
    service(c, "taken", clusterIP="10.0.123.45")
    c.delete(at(c, "services", "taken"), silent=True)
    c.delete(at(c, "services", "list"), silent=True)
    service(c, "dry", {"dryRun": "All"}, clusterIP="10.0.123.49")
    service(c, "wet", clusterIP="10.0.123.49")
    c.delete(at(c, "services", "wet"), silent=True)


@scenario
def node_ports_are_allocated_and_kept(c: Client) -> None:
    """From 30000 to 32767, one owner each and protocol."""

    def ports(name: str, *pairs: Any, **more: Any) -> None:
        service(
            c,
            name,
            type="NodePort",
            ports=[{"name": f"p{i}", "port": p, "nodePort": n, "protocol": t} for i, (p, n, t) in enumerate(pairs)],
            **more,
        )

    ports("one", (80, 30034, "TCP"))
    ports("two", (80, 30034, "TCP"))
    ports("udp", (80, 30034, "UDP"))
    ports("low", (80, 80, "TCP"))
    ports("high", (80, 40000, "TCP"))
    ports("same", (80, 30035, "TCP"), (81, 30035, "TCP"))
    ports("mixed", (80, 30036, "TCP"), (81, 30036, "UDP"))
    ports("auto", (80, 0, "TCP"))
    service(c, "cluster", ports=[{"port": 80, "nodePort": 30037}])
    service(c, "balanced", type="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=30038)
    c.patch(at(c, "services", "one"), {"spec": {"type": "ClusterIP"}}, MERGE)
    ports("two", (80, 30034, "TCP"))
    for name in ("one", "two", "udp", "mixed", "auto", "balanced", "same"):
        c.delete(at(c, "services", name), silent=True)


@scenario
def services_change_their_type(c: Client) -> None:
    """Addresses and ports come and go with the type."""
    service(c, "s")
    for spec in (
        {"type": "NodePort"},
        {"type": "LoadBalancer"},
        {"type": "ClusterIP"},
        {"type": "ExternalName", "externalName": "x.y"},
        {"type": "ClusterIP", "externalName": None},
        {"type": "Nope"},
        {"clusterIP": "None"},
        {"ports": []},
        {"sessionAffinity": "ClientIP"},
        {"internalTrafficPolicy": "Local"},
        {"ipFamilyPolicy": "PreferDualStack"},
        {"ipFamilies": ["IPv6"]},
    ):
        c.patch(at(c, "services", "s"), {"spec": spec}, MERGE)
    for ports in (
        [{"port": 0}],
        [{"port": 70000}],
        [{"port": 1}, {"port": 2}],
        [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}],
        [{"port": 1, "name": "BAD"}],
        [{"port": 1, "protocol": "XYZ"}],
        [{"port": 1, "targetPort": "toolongportnamehere"}],
        [],
    ):
        service(c, "t", {"dryRun": "All"}, ports=ports)


@scenario
def tokens_of_service_accounts(c: Client) -> None:
    """The token subresource issues a TokenRequest; odd requests are refused."""
    c.post(at(c, "serviceaccounts"), {"metadata": {"name": "robot"}}, silent=True)
    path = at(c, "serviceaccounts", "robot/token")
    for body in (
        {"spec": {"expirationSeconds": 5}},
        {"spec": {"expirationSeconds": 2**33}},
        {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "absent"}}},
        {"spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}}},
        {"metadata": {"name": "other"}, "spec": {}},
        {"kind": "Pod", "apiVersion": "v1"},
    ):
        c.post(path, body)
    reply = c.post(
        path,
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": ["a"], "expirationSeconds": 3600},
        },
    )
    if isinstance(c.transcript[-1].get("body"), dict) and "status" in c.transcript[-1]["body"]:
        c.transcript[-1]["body"]["status"]["token"] = f"a token of {len(str(reply.get('status', 'token')).split('.'))} parts"
    c.post(at(c, "serviceaccounts", "absent/token"), {"spec": {}})
    c.get(path)
    c.delete(path)


@scenario
def pods_are_bound_once(c: Client) -> None:
    """binding sets the node; a second one is a conflict; bindings of the namespace work as well."""
    for name in ("a", "b", "d"):
        make(c, name, "pods")
    c.post(at(c, "pods", "a/binding"), {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}})
    c.get(at(c, "pods", "a"))
    c.post(at(c, "pods", "a/binding"), {"metadata": {"name": "a"}, "target": {"name": "n2"}})
    c.post(at(c, "bindings"), {"metadata": {"name": "b", "annotations": {"x": "y"}}, "target": {"name": "n1"}})
    c.get(at(c, "pods", "b"))
    for body in (
        {"metadata": {"name": "d"}},
        {"metadata": {"name": "d"}, "target": {"kind": "Pod", "name": "n"}},
        {"metadata": {"name": "d"}, "target": {"name": ""}},
        {"metadata": {"name": "other"}, "target": {"name": "n"}},
        {"target": {"name": "n"}},
        {"metadata": {"name": "d", "uid": "x"}, "target": {"name": "n"}},
    ):
        c.post(at(c, "pods", "d/binding"), body)
    c.post(at(c, "pods", "absent/binding"), {"metadata": {"name": "absent"}, "target": {"name": "n"}})
    c.get(at(c, "pods", "d/binding"))
    c.get(at(c, "bindings"))


@scenario
def ephemeral_containers(c: Client) -> None:
    """They are added through their subresource only, and never changed or removed."""
    make(c, "e", "pods")
    path = at(c, "pods", "e/ephemeralcontainers")
    debug = {"name": "debug", "image": "busybox", "targetContainerName": "c"}
    c.get(path)
    c.patch(at(c, "pods", "e"), {"spec": {"ephemeralContainers": [debug]}}, STRATEGIC)
    c.patch(path, {"spec": {"ephemeralContainers": [debug]}}, STRATEGIC)
    c.patch(path, {"spec": {"ephemeralContainers": [{**debug, "image": "other"}]}}, STRATEGIC)
    c.patch(path, {"spec": {"ephemeralContainers": [{"name": "more", "image": "x"}]}}, STRATEGIC)
    c.patch(path, {"spec": {"ephemeralContainers": []}}, MERGE)
    c.patch(path, {"spec": {"ephemeralContainers": [{"name": "c", "image": "x"}]}}, STRATEGIC)
    c.patch(
        path,
        {
            "spec": {
                "ephemeralContainers": [
                    {"name": "bad", "image": "x", "ports": [{"containerPort": 1}], "resources": {"limits": {"cpu": "1"}}}
                ]
            }
        },
        STRATEGIC,
    )
    c.patch(path, {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "changed"}]}}, STRATEGIC)
    c.post(path, {})
    c.get(at(c, "pods", "absent/ephemeralcontainers"))


@scenario
def resizing_pods(c: Client) -> None:
    """Resources change through resize only."""
    c.post(
        at(c, "pods"),
        {
            "metadata": {"name": "r"},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}},
                    }
                ]
            },
        },
        silent=True,
    )
    path = at(c, "pods", "r/resize")

    def sized(cpu: str, memory: str) -> dict[str, Any]:
        return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}}

    c.get(path)
    c.patch(at(c, "pods", "r"), sized("150m", "64Mi"), STRATEGIC)
    c.patch(path, sized("150m", "64Mi"), STRATEGIC)
    c.patch(path, sized("900m", "64Mi"), STRATEGIC)
    c.patch(path, sized("200m", "32Mi"), STRATEGIC)
    c.patch(path, sized("200m", "64Mi"), STRATEGIC)
    c.patch(path, {"spec": {"containers": [{"name": "c", "image": "other"}]}}, STRATEGIC)
    c.patch(path, {"spec": {"containers": [{"name": "c", "resources": {"requests": None}}]}}, STRATEGIC)
    c.patch(path, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    c.delete(path)


@scenario
def access_reviews(c: Client) -> None:
    """Virtual resources answer a POST with themselves and a status."""
    attributes = {"namespace": c.ns, "verb": "get", "resource": "pods"}
    c.post(AUTH + "/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}})
    c.post(
        AUTH + "/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": attributes}},
        headers={"Authorization": "Bearer user-token"},
    )
    c.post(AUTH + "/selfsubjectaccessreviews", {"spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}})
    c.post(AUTH + "/subjectaccessreviews", {"spec": {"user": "alice", "groups": ["g"], "resourceAttributes": attributes}})
    c.post(
        AUTH + "/subjectaccessreviews", {"spec": {"user": "root", "groups": ["system:masters"], "resourceAttributes": attributes}}
    )
    c.post(AUTH + "/subjectaccessreviews", {"spec": {"resourceAttributes": attributes}})
    c.post(AUTH + "/subjectaccessreviews", {"spec": {"user": "x"}})
    c.post(
        AUTH + "/subjectaccessreviews",
        {"spec": {"user": "x", "resourceAttributes": attributes, "nonResourceAttributes": {"path": "/", "verb": "get"}}},
    )
    c.post(AUTH + f"/namespaces/{c.ns}/localsubjectaccessreviews", {"spec": {"user": "alice", "resourceAttributes": attributes}})
    c.post(
        AUTH + f"/namespaces/{c.ns}/localsubjectaccessreviews",
        {"spec": {"user": "alice", "resourceAttributes": {**attributes, "namespace": "other"}}},
    )
    c.post(
        AUTH + "/selfsubjectrulesreviews",
        {"spec": {"namespace": c.ns}},
        headers={"Authorization": "Bearer user-token"},
        silent=True,
    )
    c.get(AUTH + "/subjectaccessreviews")
    c.get(AUTH + "/subjectaccessreviews/x")
    c.post(AUTH + "/selfsubjectaccessreviews", {"spec": {}, "metadata": {"name": "named"}})


@scenario
def who_am_i(c: Client) -> None:
    """SelfSubjectReview and TokenReview."""
    c.post(AUTHN + "/selfsubjectreviews", {})
    c.post(AUTHN + "/selfsubjectreviews", {"metadata": {"name": "x"}}, headers={"Authorization": "Bearer user-token"})
    for token in ("user-token", "admin-token", "nobody", ""):
        c.post(AUTHN + "/tokenreviews", {"spec": {"token": token}})
    c.post(AUTHN + "/tokenreviews", {"spec": {"token": "user-token", "audiences": ["x"]}})
    c.get(AUTHN + "/tokenreviews")
    c.post(AUTHN + "/selfsubjectreviews", {}, {"dryRun": "All"})


@scenario
def bodies_that_are_none(c: Client) -> None:
    """Empty, broken, of another kind or version."""
    for body in (
        "",
        " ",
        "{",
        "}",
        "null",
        "[]",
        "5",
        '"x"',
        "{} {}",
        '{"metadata": {"name": "x"},}',
        "{'a': 1}",
        '{"a": 1e999}',
        "\ufeff{}",
        "// comment\n{}",
        '{"metadata": {"name": "\\ud800"}}',
        '{"metadata": NaN}',
    ):
        c.post(at(c), body)
    for kind, version in (
        ("ConfigMap", "v2"),
        ("Secret", "v1"),
        ("ConfigMapList", "v1"),
        ("List", "v1"),
        ("Status", "v1"),
        ("Deployment", "apps/v1"),
        ("Bogus", "v1"),
        ("ConfigMap", "bogus/v1"),
        ("ConfigMap", ""),
        ("", "v1"),
        ("configmap", "v1"),
        ("ConfigMap", "v1/"),
        ("ConfigMap", "a/b/c"),
    ):
        c.post(at(c), {"kind": kind, "apiVersion": version, "metadata": {"name": "k"}}, {"dryRun": "All"})


@scenario
def types_of_bodies(c: Client) -> None:
    """Content-Type decides how a body is read, or that it is not."""
    body = {"metadata": {"name": "t"}}
    for ctype in (
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/yaml",
        "text/json",
        "text/plain",
        "application/x-www-form-urlencoded",
        "",
        "*/*",
        "application/*",
        "nonsense",
        "application/merge-patch+json",
        "application/vnd.kubernetes.protobuf",
        "application/json;",
    ):
        c.post(at(c), body, {"dryRun": "All"}, ctype=ctype)
    make(c, "p")
    for ctype in (
        "application/json",
        "",
        "text/plain",
        "application/yaml",
        "application/apply-patch+json",
        "application/merge-patch+json; charset=utf-8",
        "application/json-patch",
        "application/strategic-merge-patch+yaml",
    ):
        c.patch(at(c, "configmaps", "p"), {"data": {"x": "y"}}, ctype)


@scenario
def bodies_that_are_too_large(c: Client) -> None:
    """Three MiB are the limit of a request, one MiB that of the values of a ConfigMap."""
    for size in (3 * 1024 * 1024 + 100, 3 * 1024 * 1024 - 200, 1024 * 1024 + 1):
        c.post(at(c), {"metadata": {"name": "big"}, "data": {"k": "x" * size}})
        c.transcript[-1]["request"]["body"] = f"{size} characters of data"
    make(c, "small")
    c.patch(at(c, "configmaps", "small"), {"data": {"k": "x" * (3 * 1024 * 1024 + 100)}}, MERGE)
    c.transcript[-1]["request"]["body"] = "3 MiB and more of patch"
    c.patch(at(c, "configmaps", "small"), [{"op": "test", "path": "/data/k", "value": "v"}] * 10001, JSON_PATCH)
    c.transcript[-1]["request"]["body"] = "10001 operations"
    c.patch(at(c, "configmaps", "small"), [{"op": "test", "path": "/data/k", "value": "v"}] * 10000, JSON_PATCH)
    c.transcript[-1]["request"]["body"] = "10000 operations"


@scenario
def bodies_that_are_too_deep(c: Client) -> None:
    """Nesting beyond what the parser takes."""
    for depth in (100, 9000, 10001):
        text = '{"metadata": {"name": "deep"}, "x": ' + "[" * depth + "]" * depth + "}"
        c.post(at(c), text, {"dryRun": "All", "fieldValidation": "Ignore"})
        c.transcript[-1]["request"]["body"] = f"{depth} brackets"
    text = '{"metadata": {"annotations": ' + '{"a":' * 10001 + "1" + "}" * 10001 + "}}"
    c.patch(at(c, "configmaps", "absent"), text, MERGE)
    c.transcript[-1]["request"]["body"] = "10001 braces"


@scenario
def methods_that_are_not_allowed(c: Client) -> None:
    """405 with a Status; odd methods; OPTIONS and TRACE."""
    make(c, "m")
    for method, path in (
        ("PUT", at(c)),
        ("PATCH", at(c)),
        ("POST", at(c, "configmaps", "m")),
        ("FOO", at(c)),
        ("OPTIONS", at(c)),
        ("TRACE", at(c)),
        ("LIST", at(c)),
        ("get", at(c)),
        ("POST", at(c, "deployments", "x/status")),
        ("DELETE", at(c, "deployments", "x/scale")),
        ("PUT", "/api/v1/nodes"),
        ("POST", "/api/v1/pods"),
        ("PATCH", "/api/v1/pods"),
        ("POST", "/api"),
        ("POST", "/apis/apps/v1"),
        ("DELETE", "/version"),
        ("POST", "/healthz"),
        ("CONNECT", at(c)),
    ):
        if method != "CONNECT":
            c.request(method, path, {} if method in ("PUT", "POST", "PATCH") else None)


@scenario
def paths_that_are_unknown(c: Client) -> None:
    """404: as a Status below /api and /apis, as text elsewhere."""
    for path in (
        "/nope",
        "/api/v2",
        "/api/v1/nopes",
        "/api/v1/nopes/x",
        "/apis/nope",
        "/apis/nope/v1",
        "/apis/nope/v1/things",
        "/apis/apps/v2",
        "/apis/apps/v1/nopes",
        "/apis/apps/v1/namespaces/x/nopes",
        "/apis/apps/v1beta1/deployments",
        "/api/v1/namespaces/x/pods/y/nope",
        "/api/v1/namespaces/x/pods/y/status/z",
        "/api/v1/",
        "/apis/apps/",
        "/apis/apps/v1/",
        "//api/v1",
        "/api//v1/pods",
        "/api/v1/namespaces/",
        "/api/v1/pods/",
        "/api/v1/../v1/pods",
        "/API/v1/pods",
        "/api/v1/Pods",
        "/api/v1/pod",
        "/api/v1/namespaces/x/nodes",
        "/api/v1/configmaps/x",
        "/healthz/nope",
        "/livez/nope",
        "/metrics/nope",
        "/openapi",
        "/openapi/v4",
        "/.well-known/nope",
        "/ui",
        "/api/v1/proxy",
        "/logs/x",
    ):
        c.get(
            path,
            headers={"Accept": TABLE} if path == "/api/v1/pods/" else None,
            silent=path in ("/api/v1/pods/", "/api/v1/namespaces/", "/api/v1/../v1/pods"),
        )


@scenario
def queries_that_are_malformed(c: Client) -> None:
    """Escapes that are none, options of the wrong type, for writes."""
    for query in (
        "dryRun=%zz",
        "dryRun=All;fieldManager=x",
        "fieldManager=a&fieldManager=b",
        "pretty=maybe",
        "fieldValidation=Strict&fieldValidation=Ignore",
        "force=true",
        "resourceVersion=1",
        "gracePeriodSeconds=x",
        "limit=x",
        "&=&",
        "%00=1",
        "timeout=1s",
        "timeout=x",
        "timeout=-1s",
        "timeout=1000h",
    ):
        c.post(at(c), {"metadata": {"generateName": "malformed-"}}, query)


@scenario
def pretty_answers(c: Client) -> None:
    """Two blanks of indent and a final line break on demand."""
    make(c, "p")
    for query, headers in (
        ({"pretty": "true"}, {}),
        ({"pretty": "false"}, {"User-Agent": "curl/8"}),
        ({}, {"User-Agent": "curl/8"}),
    ):
        reply = c.get(at(c, "configmaps", "p"), query, headers=headers)
        c.transcript[-1]["body"] = [reply.json, reply.body.count(b"\n"), reply.body[:20].decode(), reply.body[-3:].decode()]
        reply = c.post(at(c), {"metadata": {"name": "p"}}, query, headers=headers)
        c.transcript[-1]["body"] = [reply.json, reply.body.count(b"\n"), reply.body[-3:].decode()]


@scenario
def who_may_not(c: Client) -> None:
    """401 without a good token, 403 for alice, and anonymous."""
    for headers in (
        {"Authorization": "Bearer user-token"},
        {"Authorization": "Bearer nope"},
        {"Authorization": "Basic eDp5"},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Impersonate-User": "bob"},
        {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"},
        {"Impersonate-Group": "x"},
    ):
        c.get(at(c), headers=headers)
        c.post(at(c), {"metadata": {"name": "x"}}, {"dryRun": "All"}, headers=headers)
        c.get("/version", headers=headers, silent=True)
        c.delete(at(c, "configmaps", "x"), headers=headers)
    c.get("/api/v1/nodes", headers={"Authorization": "Bearer user-token"})
    c.get("/apis/apps/v1/deployments", headers={"Authorization": "Bearer user-token"})
    c.post(at(c, "pods", "x/binding"), {}, headers={"Authorization": "Bearer user-token"})
    c.get("/metrics", headers={"Authorization": "Bearer user-token"})
