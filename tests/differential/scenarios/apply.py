"""Server-side apply: who owns which field, what conflicts, what an applier that stops naming a field takes with it."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.differential import pacing, registry
from tests.differential.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Client
from tests.differential.definitions import STRING, definition, make, obj, served
from tests.differential.transports import Reply

LAST = "kubectl.kubernetes.io/last-applied-configuration"


def scenario(function: Callable[[Client], None]) -> Callable[[Client], None]:
    """A scenario whose managedFields are compared by name: the server sorts them by the second of their last write first."""

    @functools.wraps(function)
    def told(c: Client) -> None:
        try:
            function(c)
        finally:
            for exchange in c.transcript:
                body = exchange.get("body")
                meta = body.get("metadata") if isinstance(body, dict) else None
                if isinstance(meta, dict) and meta.get("managedFields"):
                    meta["managedFields"] = sorted(
                        meta["managedFields"],
                        key=lambda entry: [str(entry.get(k, "")) for k in ("operation", "manager", "apiVersion", "subresource")],
                    )

    return registry.scenario(told)


def core(c: Client, what: str) -> str:
    return f"/api/v1/namespaces/{c.ns}/{what}"


def apps(c: Client, what: str) -> str:
    return f"/apis/apps/v1/namespaces/{c.ns}/{what}"


def put_on(c: Client, path: str, body: Any, manager: str = "one", **query: Any) -> Reply:
    """Apply `body` at `path` as `manager`; a conflict's causes are kept sorted, the server lists managers in no fixed order."""
    query = {"fieldManager": manager, **query}
    reply = c.patch(path, body, APPLY, query, silent=True)
    if reply.status == 409:
        (reply.get("details", "causes", default=None) or []).sort(
            key=lambda cause: (cause.get("field", ""), cause.get("message", ""))
        )
    c._record("PATCH", path, query, body, {"Accept": "application/json", "Content-Type": APPLY}, reply)
    return reply


def config_map(data: Any = None, name: str = "m", **meta: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}}
    return body if data is None else {**body, "data": data}


def deployment(spec: dict[str, Any] | None = None, **pod: Any) -> dict[str, Any]:
    pod = pod or {"containers": [{"name": "one", "image": "nginx:1"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod},
            **(spec or {}),
        },
    }


def note(c: Client, what: str, **facts: Any) -> None:
    """Keep something the normaliser would hide, as an exchange of its own."""
    c.transcript.append(
        {
            "request": {"method": "NOTE", "path": what, "query": None, "accept": "", "type": "", "body": None},
            "status": 200,
            "headers": {},
            "body": facts,
        }
    )


def times(reply: Reply) -> list[str]:
    return [entry.get("time") for entry in reply.get("metadata", "managedFields", default=[])]


SHAPES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "number": {"type": "integer"},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "atomicList": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}},
        "plainList": {"type": "array", "items": {"type": "string"}},
        "byName": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "value": {"type": "string"},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                },
            },
        },
        "byTwo": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {
                    "port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"},
                    "name": {"type": "string"},
                },
            },
        },
        "atomicMap": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        },
        "granular": {"type": "object", "x-kubernetes-map-type": "granular", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "either": {"x-kubernetes-int-or-string": True},
        "nullable": {"type": "string", "nullable": True},
        "defaulted": {"type": "string", "default": "d"},
    },
}


@contextlib.contextmanager
def shapes(c: Client) -> Iterator[tuple[str, Any]]:
    """A definition with every list and map type; yields the object's path and a maker of bodies."""
    status = obj({"phase": STRING, "count": {"type": "integer"}})
    version = {"subresources": {"status": {}}}
    body = definition(c, obj({"spec": SHAPES, "status": status}), version, plural="shapes", kind="Shape", prefix="a")
    with served(c, body) as collection:
        yield (
            f"{collection}/s",
            lambda status=None, **spec: make(body, "s", spec=spec, **({"status": status} if status else {})),
        )


# ---------------------------------------------------------------- creating


@scenario
def apply_creates(c: Client) -> None:
    """Apply of an absent object is 201; of a present one 200."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"a": "1"}))
    put_on(c, path, config_map({"a": "1"}))
    put_on(c, path, config_map({"a": "2", "b": "3"}))
    c.get(path)
    put_on(c, core(c, "configmaps/dry"), config_map(name="dry"), dryRun="All")
    c.get(core(c, "configmaps/dry"))


@scenario
def apply_needs_a_manager(c: Client) -> None:
    """fieldManager is required, at most 128 printable characters."""
    path = core(c, "configmaps/m")
    c.patch(path, config_map({"a": "1"}), APPLY)
    for manager in ("", "x" * 128, "x" * 129, "with space", "tab\there", "nul\x00", "é"):
        put_on(c, path, config_map({"a": "1"}), manager, force="true")
    c.get(path)


@scenario
def apply_body_must_name_itself(c: Client) -> None:
    """apiVersion, kind and name of the body against the path."""
    path = core(c, "configmaps/m")
    for body in (
        {},
        {"apiVersion": "v1"},
        {"kind": "ConfigMap"},
        {"apiVersion": "v1", "kind": "ConfigMap"},
        config_map(name="other"),
        config_map(namespace="default"),
        config_map(namespace=c.ns),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "m"}},
        {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "m"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m"}},
        config_map(generateName="g-"),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": None},
    ):
        put_on(c, path, body)


@scenario
def apply_documents(c: Client) -> None:
    """Bodies that are no object, YAML bodies, several documents, duplicate keys."""
    path = core(c, "configmaps/m")
    for raw in (
        "",
        "null",
        "5",
        "[]",
        '"x"',
        "{",
        "a: [",
        "\t",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  y: 'yes'\n  n: \"1\"\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {y: yes}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {o: 010}\n",
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: n}\n",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"1","a":"2"}}',
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  a: '1'\n  a: '2'\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: m}\ndata:\n  anchor: &x text\n  alias: *x\n",
        "# only a comment\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  block: |\n    line\n    line\n  folded: >-\n    one\n    two\n",
    ):
        put_on(c, path, raw)
    c.get(path)


@scenario
def apply_preconditions(c: Client) -> None:
    """resourceVersion and uid in the body are preconditions, also for an object that is not there."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"a": "1"}, resourceVersion="1"))
    put_on(c, path, config_map({"a": "1"}, uid="11111111-2222-3333-4444-555555555555"))
    first = put_on(c, path, config_map({"a": "1"}))
    for meta in (
        {"resourceVersion": first.rv},
        {"resourceVersion": "1"},
        {"resourceVersion": "0"},
        {"resourceVersion": ""},
        {"resourceVersion": "x"},
        {"uid": first.uid},
        {"uid": "11111111-2222-3333-4444-555555555555"},
        {"creationTimestamp": "2001-02-03T04:05:06Z"},
        {"creationTimestamp": None},
        {"generation": 9},
    ):
        put_on(c, path, config_map({"a": str(meta)}, **meta))
    c.get(path)


@scenario
def apply_refuses_managed_fields(c: Client) -> None:
    """metadata.managedFields must be absent or empty in an applied body."""
    path = core(c, "configmaps/m")
    for value in (
        None,
        [],
        [{}],
        [{"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}],
    ):
        put_on(c, path, config_map({"a": "1"}, managedFields=value))
    c.get(path)


@scenario
def apply_same_again_is_nothing(c: Client) -> None:
    """A no-op apply keeps the resourceVersion and the manager's time; a real one renews both."""
    path = core(c, "configmaps/m")
    first = put_on(c, path, config_map({"a": "1"}))
    pacing.sleep(1.1)
    second = put_on(c, path, config_map({"a": "1"}))
    note(c, "no-op apply", rv=first.rv == second.rv, time=times(first) == times(second))
    third = put_on(c, path, config_map({"a": "2"}))
    note(c, "real apply", rv=second.rv == third.rv, time=times(second) == times(third))
    fourth = c.patch(path, {"data": {"a": "2"}}, MERGE, {"fieldManager": "other"})
    note(c, "no-op merge", rv=third.rv == fourth.rv, time=times(third) == times(fourth))
    pacing.sleep(1.1)
    fifth = put_on(c, path, config_map({"a": "2"}), "second")
    note(c, "same values by another", rv=fourth.rv == fifth.rv, kept=times(fourth)[0] in times(fifth), managers=len(times(fifth)))


@registry.scenario
def managers_are_in_order_of_time(c: Client) -> None:
    """Appliers come before updaters, each sorted by the second of their last write, then by name."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"z": "1"}), "zed")
    pacing.sleep(1.1)
    c.patch(path, {"data": {"u": "1"}}, MERGE, {"fieldManager": "updater"})
    put_on(c, path, config_map({"a": "1"}), "amy")
    pacing.sleep(1.1)
    put_on(c, path, config_map({"z": "2"}), "zed")
    c.patch(path, {"data": {"b": "1"}}, MERGE, {"fieldManager": "able"})


# ---------------------------------------------------------------- managedFields of built-ins


@scenario
def managed_fields_of_a_config_map(c: Client) -> None:
    """Maps own key by key, f:data itself as well; labels, annotations, immutable."""
    path = core(c, "configmaps/m")
    put_on(
        c,
        path,
        config_map(
            {"a": "1", "b.c": "2"}, labels={"l": "1", "x.io/y": "2"}, annotations={"n": "3"}, finalizers=["example.com/f"]
        ),
    )
    put_on(c, path, {**config_map({}), "binaryData": {"b": "AA=="}}, "two")
    put_on(c, path, {**config_map(), "immutable": True}, "three")
    put_on(c, path, config_map(), "four")
    put_on(c, path, config_map(labels={}), "five")


@scenario
def managed_fields_of_a_deployment(c: Client) -> None:
    """Containers by name, ports by containerPort and protocol (with its default), env by name, atomic lists and structs."""
    path = apps(c, "deployments/d")
    put_on(
        c,
        path,
        deployment(
            {"replicas": 3, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}},
            containers=[
                {
                    "name": "one",
                    "image": "nginx:1",
                    "args": ["a"],
                    "command": ["b"],
                    "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}],
                    "env": [
                        {"name": "A", "value": "1"},
                        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    ],
                    "envFrom": [{"configMapRef": {"name": "m"}}],
                    "resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}},
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                    "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
                    "securityContext": {"capabilities": {"drop": ["ALL"]}},
                }
            ],
            volumes=[{"name": "v", "emptyDir": {}}],
            tolerations=[{"key": "k", "operator": "Exists"}],
            nodeSelector={"a": "b"},
            imagePullSecrets=[{"name": "s"}],
            hostAliases=[{"ip": "1.2.3.4", "hostnames": ["h"]}],
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]
                    }
                }
            },
            topologySpreadConstraints=[
                {
                    "maxSkew": 1,
                    "topologyKey": "z",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"a": "b"}},
                }
            ],
        ),
    )
    c.get(path)


@scenario
def managed_fields_of_a_service(c: Client) -> None:
    """Service ports by port and protocol; selector is atomic; allocated fields belong to nobody."""
    path = core(c, "services/s")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {
            "selector": {"a": "b", "c": "d"},
            "ports": [{"name": "x", "port": 80}, {"name": "y", "port": 80, "protocol": "UDP", "targetPort": "t"}],
            "externalIPs": ["1.2.3.4"],
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}},
        },
    }
    put_on(c, path, service)
    put_on(c, path, {**service, "spec": {"selector": {"a": "b"}}}, "two")
    put_on(c, path, {**service, "spec": {"ports": [{"port": 80, "name": "x", "targetPort": 99}]}}, "three")
    put_on(c, path, {**service, "spec": {"ports": [{"port": 81, "name": "z"}]}}, "three")
    put_on(c, path, {**service, "spec": {**service["spec"], "ports": [{"name": "x", "port": 80}]}})


@scenario
def managed_fields_of_a_pod(c: Client) -> None:
    """A pod applied, its defaults owned by nobody, its status by the one who writes it."""
    path = core(c, "pods/p")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "readinessGates": [{"conditionType": "x.io/y"}]},
    }
    put_on(c, path, pod)
    c.patch(
        path + "/status",
        {
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "podIP": "1.2.3.4",
                "podIPs": [{"ip": "1.2.3.4"}],
                "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0}],
            }
        },
        STRATEGIC,
        {"fieldManager": "kubelet"},
    )
    put_on(c, path + "/status", {**pod, "spec": {}, "status": {"conditions": [{"type": "x.io/y", "status": "True"}]}}, "gate")
    put_on(c, path, {**pod, "spec": {"containers": [{"name": "c", "image": "j"}]}})
    put_on(c, path, {**pod, "spec": {"containers": [{"name": "c", "image": "j"}, {"name": "d", "image": "j"}]}})


@scenario
def managed_fields_of_creates_and_updates(c: Client) -> None:
    """POST, PUT and patches own as operation Update; the manager defaults to the first part of the user agent."""
    path = core(c, "configmaps/m")
    c.post(core(c, "configmaps"), config_map({"a": "1"}))
    c.put(path, config_map({"a": "2", "b": "1"}), {"fieldManager": "putter"})
    c.patch(path, {"data": {"c": "1"}}, MERGE, {"fieldManager": "merger"})
    c.patch(path, [{"op": "add", "path": "/data/d", "value": "1"}], JSON_PATCH, {"fieldManager": "json"})
    c.patch(path, {"data": {"e": "1"}}, STRATEGIC)
    for agent in ("kubectl/v1.36 (linux/amd64)", "no-slash", "", "a b/c", "/x", "very" * 50):
        c.patch(path, {"data": {"agent": agent or "none"}}, MERGE, headers={"User-Agent": agent})


# ---------------------------------------------------------------- conflicts


@scenario
def conflict_with_an_applier(c: Client) -> None:
    """Another applier's different value conflicts: 409 with one cause a field."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"a": "1", "b": "2"}))
    put_on(c, path, config_map({"a": "9"}), "two")
    put_on(c, path, config_map({"a": "9", "b": "9"}), "two")
    put_on(c, path, config_map({"a": "9", "z": "9"}), "two")
    put_on(c, path, config_map({"a": "1"}), "two")
    put_on(c, path, config_map({"a": "9"}), "three")
    put_on(c, path, config_map({"a": "9"}), "two")
    c.get(path)


@scenario
def conflict_with_an_updater(c: Client) -> None:
    """Conflicts with an updater name the operation, the apiVersion and the time."""
    path = core(c, "configmaps/m")
    c.post(core(c, "configmaps"), config_map({"a": "1", "b": "2"}, labels={"l": "x"}), {"fieldManager": "creator"})
    put_on(c, path, config_map({"a": "9"}))
    put_on(c, path, config_map({"a": "9", "b": "9"}, labels={"l": "y"}))
    c.patch(path, {"data": {"b": "3"}}, MERGE, {"fieldManager": "changer"})
    put_on(c, path, config_map({"a": "9", "b": "9"}, labels={"l": "y"}))
    put_on(c, path, config_map({"a": "9", "b": "9"}, labels={"l": "y"}), force="true")


@scenario
def conflict_with_several(c: Client) -> None:
    """Several managers of one field, and several fields of several managers."""
    path = core(c, "configmaps/m")
    for manager in ("one", "two", "three"):
        put_on(c, path, config_map({"shared": "s", manager: "1"}), manager)
    put_on(c, path, config_map({"shared": "t"}), "four")
    put_on(c, path, config_map({"shared": "t", "one": "x", "two": "y"}), "four")
    put_on(c, path, config_map({"shared": "t"}), "one")
    put_on(c, path, config_map({"shared": "t"}), "four", force="true")


@scenario
def conflict_of_a_manager_with_itself(c: Client) -> None:
    """The same name with another operation is another manager."""
    path = core(c, "configmaps/m")
    c.post(core(c, "configmaps"), config_map({"a": "1"}), {"fieldManager": "me"})
    put_on(c, path, config_map({"a": "2"}), "me")
    put_on(c, path, config_map({"a": "1"}), "me")
    put_on(c, path, config_map({"a": "2"}), "me")
    put_on(c, path, config_map({"a": "2"}), "me", force="true")
    c.patch(path, {"data": {"a": "3"}}, MERGE, {"fieldManager": "me"})


@scenario
def conflict_in_lists(c: Client) -> None:
    """Paths of conflicts inside keyed lists and atomic fields."""
    path = apps(c, "deployments/d")
    put_on(
        c,
        path,
        deployment(
            {"replicas": 1},
            containers=[
                {
                    "name": "one",
                    "image": "nginx:1",
                    "args": ["a"],
                    "ports": [{"containerPort": 80, "name": "x"}],
                    "env": [{"name": "A", "value": "1"}],
                }
            ],
        ),
    )
    for body in (
        deployment(containers=[{"name": "one", "image": "nginx:2"}]),
        deployment({"replicas": 2}),
        deployment(containers=[{"name": "one", "image": "nginx:1", "args": ["b"]}]),
        deployment(
            containers=[
                {
                    "name": "one",
                    "image": "nginx:1",
                    "ports": [{"containerPort": 80, "name": "y"}],
                    "env": [{"name": "A", "value": "2"}],
                }
            ]
        ),
        deployment({"replicas": 5, "selector": {"matchLabels": {"app": "b"}}}),
    ):
        put_on(c, path, body, "two")
    put_on(c, path, deployment(containers=[{"name": "one", "image": "nginx:1", "env": [{"name": "B", "value": "2"}]}]), "two")


@scenario
def force_takes_ownership(c: Client) -> None:
    """force=true changes the value and takes the field from the others."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"a": "1", "b": "1"}))
    for force in ("false", "", "nope", "1", "true", "TRUE", "t"):
        put_on(c, path, config_map({"a": force}), "two", force=force)
    put_on(c, path, config_map({"b": "1"}))
    put_on(c, path, config_map({"a": "back"}))


# ---------------------------------------------------------------- giving up


@scenario
def fields_given_up_go(c: Client) -> None:
    """A field that its only applier no longer names is removed; a shared one stays."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"a": "1", "b": "2", "c": "3"}))
    put_on(c, path, config_map({"b": "2"}), "two")
    put_on(c, path, config_map({"a": "1"}))
    put_on(c, path, config_map(), "two")
    put_on(c, path, config_map())
    put_on(c, path, config_map({"a": "1"}))


@scenario
def fields_of_updaters_stay(c: Client) -> None:
    """A field that an updater owns as well is not removed when the applier gives it up."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"a": "1", "b": "2"}))
    c.patch(path, {"data": {"a": "changed"}}, MERGE, {"fieldManager": "updater"})
    put_on(c, path, config_map({"b": "2"}))
    c.patch(path, {"data": {"b": None}}, MERGE, {"fieldManager": "updater"})
    c.get(path)


@scenario
def list_items_given_up_go(c: Client) -> None:
    """A keyed item goes with its last applier; what others own in it keeps it."""
    path = apps(c, "deployments/d")
    one, two = {"name": "one", "image": "nginx:1"}, {"name": "two", "image": "redis:7"}
    put_on(c, path, deployment(containers=[one, two]))
    put_on(c, path, deployment(containers=[one]))
    put_on(c, path, deployment(containers=[two]), "second")
    put_on(c, path, deployment(containers=[two]))
    put_on(c, path, deployment(containers=[{"name": "one", "env": [{"name": "E", "value": "1"}]}, two]), "second")
    put_on(c, path, deployment(containers=[two]), "second")
    c.patch(
        path,
        {"spec": {"template": {"spec": {"containers": [{"name": "two", "env": [{"name": "X", "value": "1"}]}]}}}},
        STRATEGIC,
        {"fieldManager": "updater"},
    )
    put_on(c, path, deployment(containers=[one]), "second")


@scenario
def defaults_come_back(c: Client) -> None:
    """Giving up a defaulted field puts the default back."""
    path = apps(c, "deployments/d")
    put_on(c, path, deployment({"replicas": 5, "revisionHistoryLimit": 3, "strategy": {"type": "Recreate"}}))
    put_on(c, path, deployment({"replicas": 5}))
    put_on(c, path, deployment())
    put_on(c, path, deployment(), "two")
    c.patch(path + "/scale", {"spec": {"replicas": 7}}, MERGE, {"fieldManager": "scaler"})
    put_on(c, path, deployment({"replicas": 1}))


@scenario
def required_fields_given_up(c: Client) -> None:
    """Giving up what the object needs fails validation and changes nothing."""
    path = core(c, "services/s")
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    put_on(c, path, service)
    put_on(c, path, {**service, "spec": {}})
    put_on(c, path, {**service, "spec": {"ports": []}})
    put_on(c, path, {**service, "spec": None})
    c.get(path)


# ---------------------------------------------------------------- shapes of custom resources


@scenario
def custom_scalars(c: Client) -> None:
    """Scalars, int-or-string, defaults and nulls of a custom resource."""
    with shapes(c) as (path, body):
        put_on(c, path, body(text="x", number=1, either=5))
        put_on(c, path, body(text="y"), "two")
        put_on(c, path, body(text="x", either="five"))
        put_on(c, path, body(nullable=None, text=None))
        put_on(c, path, body(defaulted="d"))
        put_on(c, path, body(defaulted="e"), "two")
        put_on(c, path, body())
        put_on(c, path, body(number="x"))
        put_on(c, path, body(unknown=1))
        c.get(path)


@scenario
def custom_sets(c: Client) -> None:
    """A set list merges its members; owners are members; duplicates are refused."""
    with shapes(c) as (path, body):
        put_on(c, path, body(set=["b", "a"]))
        put_on(c, path, body(set=["c", "b"]), "two")
        put_on(c, path, body(set=["a"]))
        put_on(c, path, body(set=["a", "a"]), "three")
        put_on(c, path, body(set=[]), "two")
        put_on(c, path, body(set=None))
        put_on(c, path, body(set="x"))
        c.patch(path, {"spec": {"set": ["z", "y"]}}, MERGE, {"fieldManager": "merger"})
        put_on(c, path, body(set=["y", "new"]))
        c.patch(path, {"spec": {"set": ["z", "z"]}}, MERGE)


@scenario
def custom_atomic_lists(c: Client) -> None:
    """Atomic lists (and lists without a type) belong to one value as a whole."""
    with shapes(c) as (path, body):
        put_on(c, path, body(atomicList=["a"], plainList=["a"]))
        put_on(c, path, body(atomicList=["a", "b"]), "two")
        put_on(c, path, body(plainList=["b"]), "two")
        put_on(c, path, body(atomicList=["a"]), "two")
        put_on(c, path, body(atomicList=[]))
        put_on(c, path, body(plainList=["c"]), "two", force="true")


@scenario
def custom_keyed_lists(c: Client) -> None:
    """Lists of type map: items by key, nested sets, order, items without a key, duplicates."""
    with shapes(c) as (path, body):
        put_on(c, path, body(byName=[{"name": "a", "value": "1"}, {"name": "b", "tags": ["x"]}]))
        put_on(c, path, body(byName=[{"name": "c"}, {"name": "a"}]), "two")
        put_on(c, path, body(byName=[{"name": "b", "tags": ["y", "x"]}]), "two")
        put_on(c, path, body(byName=[{"name": "a", "value": "2"}]), "two")
        put_on(c, path, body(byName=[{"name": "a"}, {"name": "a", "value": "3"}]), "three")
        put_on(c, path, body(byName=[{"value": "3"}]), "three")
        put_on(c, path, body(byName=[{"name": None}]), "three")
        put_on(c, path, body(byName={"name": "x"}), "three")
        put_on(c, path, body(byName=["x"]), "three")
        put_on(c, path, body(byName=[{"name": "b", "tags": ["x"]}]))
        c.get(path)


@scenario
def custom_lists_with_two_keys(c: Client) -> None:
    """A key of two fields, one with a default."""
    with shapes(c) as (path, body):
        put_on(c, path, body(byTwo=[{"port": 80}, {"port": 80, "protocol": "UDP", "name": "u"}]))
        put_on(c, path, body(byTwo=[{"port": 80, "protocol": "TCP", "name": "t"}]), "two")
        put_on(c, path, body(byTwo=[{"port": 80}, {"port": 80, "protocol": "TCP"}]), "three")
        put_on(c, path, body(byTwo=[{"port": 80, "protocol": "UDP"}]))
        put_on(c, path, body(byTwo=[{"protocol": "UDP"}]), "three")
        put_on(c, path, body(byTwo=[{"port": 81, "protocol": "SCTP"}]), "three")
        put_on(c, path, body(), "two")


@scenario
def custom_maps(c: Client) -> None:
    """Atomic and granular maps, and what no schema describes."""
    with shapes(c) as (path, body):
        put_on(c, path, body(atomicMap={"a": "1"}, granular={"a": "1"}, free={"x": {"y": [1, {"z": 2}]}, "l": [1, 2]}))
        put_on(c, path, body(atomicMap={"b": "1"}), "two")
        put_on(c, path, body(granular={"b": "1"}), "two")
        put_on(c, path, body(free={"x": {"w": 1}}), "two")
        put_on(c, path, body(free={"l": [1, 3]}), "two")
        put_on(c, path, body(atomicMap={"a": "1"}, granular={}), "two")
        put_on(c, path, body(granular={"c": "3"}))


@scenario
def custom_status(c: Client) -> None:
    """Apply to status owns only status, under a subresource entry of its own."""
    with shapes(c) as (path, body):
        put_on(c, path + "/status", body(status={"phase": "early"}))
        put_on(c, path, body(status={"phase": "ignored"}, text="x"))
        put_on(c, path + "/status", body(status={"phase": "Ready"}, text="ignored"))
        put_on(c, path + "/status", body(status={"count": 1}), "two")
        put_on(c, path + "/status", body(status={"phase": "Other"}), "two")
        put_on(c, path, body())
        put_on(c, path + "/status", body())
        c.get(path)


@scenario
def custom_updates_after_apply(c: Client) -> None:
    """PUT and merge patches of a custom resource take and drop ownership."""
    with shapes(c) as (path, body):
        first = put_on(c, path, body(text="x", granular={"a": "1", "b": "2"}, byName=[{"name": "a", "value": "1"}]))
        second = c.put(
            path,
            {**body(text="y", granular={"a": "1"}), "metadata": {"name": "s", "resourceVersion": first.rv}},
            {"fieldManager": "putter"},
        )
        c.put(
            path,
            {**body(text="y", granular={"a": "1"}), "metadata": {"name": "s", "resourceVersion": second.rv}},
            {"fieldManager": "third"},
        )
        put_on(c, path, body(text="x"))
        put_on(c, path, body(text="x"), force="true")


# ---------------------------------------------------------------- unknown fields, options


@scenario
def unknown_fields(c: Client) -> None:
    """An unknown field of a built-in is an error of the typed schema unless fieldValidation lets it pass."""
    for level in ("Strict", "Warn", "Ignore", "", "nope"):
        put_on(c, core(c, "configmaps/m"), {**config_map({"a": level}), "unknown": 1}, force="true", fieldValidation=level)
        put_on(c, core(c, "configmaps/m"), config_map({"a": level}, odd=1), force="true", fieldValidation=level)
    with shapes(c) as (path, body):
        for level in ("Strict", "Warn", "Ignore"):
            put_on(c, path, body(text=level, unknown=1), fieldValidation=level)
            put_on(c, path, {**body(text=level), "unknown": {"a": 1}}, fieldValidation=level)


@scenario
def wrong_types(c: Client) -> None:
    """Values that do not fit the type."""
    path = apps(c, "deployments/d")
    for body in (
        deployment({"replicas": "x"}),
        deployment({"replicas": 1.5}),
        deployment({"replicas": True}),
        deployment(containers="x"),
        deployment(containers={"name": "x"}),
        deployment(containers=[{"image": "x"}]),
        deployment(containers=[5]),
        deployment(containers=[None]),
        deployment({"paused": "yes"}),
        deployment({"strategy": []}),
        deployment({"selector": None}),
        {**deployment(), "spec": "x"},
        {**deployment(), "spec": []},
        deployment(containers=[{"name": "a", "image": "i"}, {"name": "a", "image": "j"}]),
        deployment(containers=[{"name": "a", "image": "i", "ports": [{"containerPort": "x"}]}]),
        deployment(containers=[{"name": "a", "image": "i", "ports": [{"name": "p"}]}]),
        deployment(containers=[{"name": "a", "image": "i", "env": [{"value": "p"}]}]),
    ):
        put_on(c, path, body)
    put_on(c, core(c, "configmaps/m"), config_map({"a": 1}))
    put_on(c, core(c, "configmaps/m"), config_map({"a": None}))
    put_on(c, core(c, "configmaps/m"), config_map(["a"]))
    put_on(c, core(c, "configmaps/m"), config_map({"a": "1"}, labels={"a": True}))
    put_on(c, core(c, "configmaps/m"), config_map({"a": "1"}, labels="x"))


@scenario
def failing_validation(c: Client) -> None:
    """An apply that fails validation leaves object and ownership alone."""
    path = apps(c, "deployments/d")
    put_on(c, path, deployment({"replicas": -1}))
    put_on(c, path, deployment())
    put_on(c, path, deployment({"replicas": -1, "minReadySeconds": -1}))
    put_on(c, path, deployment({"selector": {"matchLabels": {"app": "b"}}}))
    put_on(c, path, deployment(containers=[{"name": "one", "image": "nginx:1"}, {"name": "Bad Name", "image": " x"}]))
    c.get(path)


@scenario
def dry_run_apply(c: Client) -> None:
    """dryRun computes owners and conflicts without keeping them."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"a": "1"}), dryRun="All")
    put_on(c, path, config_map({"a": "1"}))
    put_on(c, path, config_map({"a": "2"}), "two", dryRun="All")
    put_on(c, path, config_map({"a": "2"}), "two", dryRun="All", force="true")
    put_on(c, path, config_map({"a": "2"}), "two", dryRun="nope")
    c.get(path)


@scenario
def where_apply_is_not_served(c: Client) -> None:
    """Apply to collections, to virtual resources, to subresources that take none; a missing namespace."""
    put_on(c, core(c, "configmaps"), config_map({"a": "1"}))
    put_on(
        c,
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x",
        {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {"name": "x"}},
    )
    put_on(c, core(c, "pods/p/binding"), {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}})
    put_on(c, "/api/v1/namespaces/absent-ns/configmaps/m", config_map({"a": "1"}))
    put_on(c, core(c, "configmaps/UPPER"), config_map({"a": "1"}, "UPPER"))
    put_on(
        c,
        core(c, "pods/p/status"),
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Running"}},
    )


# ---------------------------------------------------------------- editing managedFields


@scenario
def managed_fields_cleared(c: Client) -> None:
    """[] leaves them as they are, [{}] resets them; the next writer starts anew."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"a": "1", "b": "2"}))
    c.patch(path, {"metadata": {"managedFields": []}}, MERGE)
    c.patch(path, {"metadata": {"managedFields": None}}, MERGE)
    c.patch(path, {"metadata": {"managedFields": [{}]}}, MERGE)
    c.patch(path, {"data": {"a": "2"}}, MERGE, {"fieldManager": "later"})
    put_on(c, path, config_map({"a": "3"}))
    put_on(c, path, config_map({"b": "3"}))
    c.patch(path, [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}], JSON_PATCH)
    c.patch(path, [{"op": "remove", "path": "/metadata/managedFields"}], JSON_PATCH)
    put_on(c, path, config_map({"a": "5"}))


@scenario
def managed_fields_by_hand(c: Client) -> None:
    """Entries may be edited by PUT and patch; bad entries are refused or leave the old ones."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"a": "1"}))
    entry = {
        "manager": "hand",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": "2026-01-02T03:04:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }
    for change in (
        {},
        {"operation": "Update"},
        {"operation": "Nope"},
        {"operation": ""},
        {"apiVersion": "v9"},
        {"apiVersion": ""},
        {"fieldsType": "FieldsV2"},
        {"fieldsType": ""},
        {"fieldsV1": {}},
        {"fieldsV1": None},
        {"fieldsV1": {"data": {}}},
        {"fieldsV1": {"f:data": 5}},
        {"fieldsV1": {"f:nope": {}}},
        {"fieldsV1": {"x:data": {}}},
        {"fieldsV1": {"k:{}": {}}},
        {"fieldsV1": {'v:"x"': {}, "i:0": {}}},
        {"fieldsV1": "x"},
        {"manager": ""},
        {"manager": "x" * 129},
        {"time": None},
        {"time": "never"},
        {"subresource": "status"},
    ):
        c.patch(path, {"metadata": {"managedFields": [{**entry, **change}]}}, MERGE)
    c.get(path)


@scenario
def managed_fields_survive_a_put(c: Client) -> None:
    """A PUT without managedFields keeps them; one with those it read too; one that drops an entry drops it."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"a": "1"}))
    put_on(c, path, config_map({"b": "1"}), "two")
    read = c.get(path).json
    c.put(path, {**read, "data": {"a": "1", "b": "2"}}, {"fieldManager": "putter"})
    c.put(path, config_map({"a": "1", "b": "2"}), {"fieldManager": "putter"})
    read = c.get(path).json
    read["metadata"]["managedFields"] = read["metadata"]["managedFields"][:1]
    c.put(path, read, {"fieldManager": "putter"})
    c.get(path)


@scenario
def migration_from_client_side_apply(c: Client) -> None:
    """kubectl's client-side manager hands its fields to the first server-side apply by kubectl."""
    path = core(c, "configmaps/m")
    applied = config_map({"a": "1", "b": "2"})
    annotated = config_map({"a": "1", "b": "2"}, annotations={LAST: json.dumps(applied) + "\n"})
    c.post(core(c, "configmaps"), annotated, {"fieldManager": "kubectl-client-side-apply"})
    put_on(c, path, config_map({"a": "1"}), "kubectl")
    put_on(c, path, config_map({"a": "7"}), "kubectl")
    put_on(c, path, config_map({"a": "7"}), "kubectl", force="true")
    c.get(path)


@scenario
def migration_keeps_last_applied_in_step(c: Client) -> None:
    """With manager kubectl the last-applied annotation follows each server-side apply; with others it does not."""
    path = core(c, "configmaps/m")
    c.post(
        core(c, "configmaps"),
        config_map(
            {"a": "1"}, annotations={LAST: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"1"}}\n'}
        ),
        {"fieldManager": "kubectl-client-side-apply"},
    )
    put_on(c, path, config_map({"a": "1", "c": "1"}), "someone")
    put_on(c, path, config_map({"a": "1", "b": "1"}), "kubectl")
    c.patch(
        path,
        {"data": {"a": "2"}, "metadata": {"annotations": {LAST: "{}"}}},
        STRATEGIC,
        {"fieldManager": "kubectl-client-side-apply"},
    )
    put_on(c, path, config_map({"a": "3"}), "kubectl", force="true")


@scenario
def old_objects_get_before_first_apply(c: Client) -> None:
    """An object whose managers were cleared gets a before-first-apply manager at its first apply."""
    path = core(c, "configmaps/m")
    c.post(core(c, "configmaps"), config_map({"a": "1"}))
    c.patch(path, {"metadata": {"managedFields": [{}]}}, MERGE)
    put_on(c, path, config_map({"a": "1"}))
    put_on(c, path, config_map({}), force="true")
    c.get(path)


# ---------------------------------------------------------------- other objects


@scenario
def apply_of_deleted_objects(c: Client) -> None:
    """An object that waits for finalizers can be applied to; a deleted one is made anew."""
    path = core(c, "configmaps/m")
    put_on(c, path, config_map({"a": "1"}, finalizers=["example.com/f"]))
    c.delete(path)
    put_on(c, path, config_map({"a": "2"}, finalizers=["example.com/f"]))
    put_on(c, path, config_map({"a": "2"}, finalizers=["example.com/f", "example.com/g"]))
    put_on(c, path, config_map({"a": "2"}))
    c.get(path)
    put_on(c, path, config_map({"a": "3"}))


@scenario
def finalizers_and_owners_are_keyed(c: Client) -> None:
    """finalizers are a set, ownerReferences keyed by uid."""
    path = core(c, "configmaps/m")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "11111111-2222-3333-4444-555555555555"}
    put_on(c, path, config_map(finalizers=["example.com/a"], ownerReferences=[owner]))
    put_on(
        c,
        path,
        config_map(
            finalizers=["example.com/b"], ownerReferences=[{**owner, "name": "q", "uid": "21111111-2222-3333-4444-555555555555"}]
        ),
        "two",
    )
    put_on(c, path, config_map(ownerReferences=[{**owner, "name": "r"}]), "two")
    put_on(c, path, config_map(ownerReferences=[{**owner, "name": None}]), "two")
    put_on(c, path, config_map())
    put_on(c, path, config_map(), "two")


@scenario
def deployment_status_and_scale(c: Client) -> None:
    """status and scale have entries with their subresource; scale's ownership shows in the object as spec.replicas."""
    path = apps(c, "deployments/d")
    put_on(c, path, deployment({"replicas": 2}))
    put_on(
        c,
        path + "/status",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "status": {"replicas": 2, "conditions": [{"type": "Available", "status": "True"}]},
        },
        "controller",
    )
    put_on(
        c,
        path + "/status",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "status": {"conditions": [{"type": "Progressing", "status": "True"}]},
        },
        "controller",
    )
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 4}}
    put_on(c, path + "/scale", scale, "scaler")
    put_on(c, path + "/scale", scale, "scaler", force="true")
    c.put(path + "/scale", {**scale, "spec": {"replicas": 6}}, {"fieldManager": "putter"})
    c.get(path)
    put_on(c, path, deployment({"replicas": 2}))


@scenario
def apply_changes_the_version(c: Client) -> None:
    """Applying in another version of the kind keeps one entry a version."""
    path = f"/apis/autoscaling/v2/namespaces/{c.ns}/horizontalpodautoscalers/h"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    body = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3},
    }
    put_on(c, path, body)
    put_on(
        c,
        path.replace("/v2/", "/v1/"),
        {
            **body,
            "apiVersion": "autoscaling/v1",
            "spec": {"scaleTargetRef": target, "maxReplicas": 4, "targetCPUUtilizationPercentage": 50},
        },
    )
    put_on(c, path, {**body, "apiVersion": "autoscaling/v1"})
    put_on(c, path, body, "two")
    c.get(path)


@scenario
def apply_answers_in_other_forms(c: Client) -> None:
    """Accept and charset with apply; a CBOR body with the YAML type."""
    path = core(c, "configmaps/m")
    for number, accept in enumerate(
        (
            "application/yaml",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "text/plain",
        )
    ):
        c.patch(path, config_map({"a": str(number)}), APPLY, {"fieldManager": "one"}, headers={"Accept": accept})
    c.patch(path, config_map({"a": "x"}), APPLY + "; charset=utf-8", {"fieldManager": "one"})
    c.patch(path, bytes.fromhex("a16161" + "6162"), APPLY, {"fieldManager": "one"})
    c.patch(path, config_map({"a": "x"}), "application/apply-patch+json", {"fieldManager": "one"})
