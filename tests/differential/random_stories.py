"""Random scenarios: a seed gives a short life of a few objects, with valid, odd and wrong requests.

Names come from small pools so that requests meet each other's objects. Whatever a request needs from an earlier
answer (a revision, a uid, a continue token) is taken from that answer, so the same seed gives each server the
same story.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from tests.differential import block_yaml, pacing, sample_objects
from tests.differential.client import APPLY, JSON, JSON_PATCH, MERGE, PARTIAL, PARTIAL_LIST, STRATEGIC, TABLE, Client

ODD_VALUES: list[Any] = [
    None,
    "",
    "x",
    "Not Valid!",
    "a" * 70,
    0,
    -1,
    7,
    1.5,
    2**31,
    2**40,
    True,
    False,
    [],
    {},
    ["x"],
    {"x": "y"},
    "1",
    "10",
    "100m",
    "1Gi",
    "-5",
    "0",
    [None],
    {"x": None},
    "é",
    "a/b",
    "a.b",
    "A_b",
    "http",
    65536,
]
ODD_NAMES = ["", "UPPER", "under_score", "a/b", "a" * 254, "dotted.name", "-dash", "x.", "%zz", "ok-name"]
SELECTORS = [
    "app=a",
    "app!=a",
    "app in (a,b)",
    "app notin (a)",
    "app",
    "!app",
    "tier=front,app=a",
    "app==a",
    "app=",
    "x y",
    "app in a",
    "app=a,",
    "a>1",
    "app>x",
    "=a",
    "!app=a",
    "app in ()",
    " app = a ",
    "k8s.io/x=1",
    "app=a b",
    "app=-a",
]
FIELD_SELECTORS = [
    "metadata.name={name}",
    "metadata.name!={name}",
    "metadata.namespace={ns}",
    "metadata.name=={name}",
    "spec.nodeName=",
    "status.phase=Running",
    "status.phase!=Running",
    "metadata.labels=x",
    "metadata.name",
    "metadata.name=a,metadata.name=b",
    "type=Opaque",
    "spec.x=1",
    "metadata.name=a\\,b",
    "reason=Started",
    "involvedObject.name=p",
    "spec.color=blue",
    "spec.unschedulable=false",
    "spec.type=ClusterIP",
    "spec.clusterIP=None",
]
MANAGERS = ["m1", "m2", "kubectl"]
POLICIES = ["Foreground", "Background", "Orphan", "Nope", ""]


class Steady(random.Random):
    """Draws one number a choice whatever it chooses from, so that a story stays the same story when one answer differs."""

    def choice(self, seq: Any) -> Any:
        return seq[int(self.random() * len(seq))]

    def randrange(self, stop: int) -> int:  # type: ignore[override]
        return int(self.random() * stop)


class Kind:
    def __init__(self, name: str, entry: tuple[str, str, bool, dict[str, Any], tuple[str, ...]]) -> None:
        self.name = name
        self.version, self.plural, self.namespaced, self.sample, self.subresources = entry

    def collection(self, client: Client, all_namespaces: bool = False) -> str:
        root = f"/api/{self.version}" if self.version == "v1" else f"/apis/{self.version}"
        scope = f"/namespaces/{client.ns}" if self.namespaced and not all_namespaces else ""
        return f"{root}{scope}/{self.plural}"


class Story:
    def __init__(self, client: Client, rng: random.Random, kinds: dict[str, Any], steps: int) -> None:
        self.client, self.rng, self.steps = client, rng, steps
        names = sorted(kinds) + ["Widget"] * 3
        self.kinds = [self._kind(n, kinds) for n in dict.fromkeys(rng.choice(names) for _ in range(rng.choice([1, 1, 2])))]
        self.rvs: list[str] = ["0", "1"]
        self.tokens: list[str] = ["junk", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"]
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.crd = ""

    def _kind(self, name: str, kinds: dict[str, Any]) -> Kind:
        if name != "Widget":
            return Kind(name, kinds[name])
        group = f"g{self.client.id}.example.com"
        return Kind("Widget", (f"{group}/v1", "widgets", True, sample_objects.WIDGET, ("status", "scale")))

    def tell(self) -> None:
        for kind in self.kinds:
            if kind.name == "Widget":
                self._define(kind)
        actions: list[tuple[int, Callable[[Kind], None]]] = [
            (24, self.create),
            (9, self.get),
            (12, self.list),
            (10, self.update),
            (20, self.patch),
            (8, self.apply),
            (5, self.subresource),
            (7, self.delete),
            (2, self.delete_collection),
            (3, self.watch),
            (3, self.odd),
        ]
        weights = [w for w, _ in actions]
        try:
            for kind in self.kinds:
                for base in ("one", "two"):
                    self.create(kind, plain=True, name=self.client.name(base))
            for _ in range(self.steps):
                kind = self.rng.choice(self.kinds)
                self.rng.choices([a for _, a in actions], weights)[0](kind)
        finally:
            if self.crd:
                self.client.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.crd}", silent=True)

    def _define(self, kind: Kind) -> None:
        group = kind.version.split("/")[0]
        self.crd = f"widgets.{group}"
        self.client.post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            sample_objects.widget_definition("widgets", "Widget", group),
            silent=True,
        )
        for _ in range(200):
            reply = self.client.get(kind.collection(self.client), silent=True)
            probe = self.client.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.crd}", silent=True)
            conditions = probe.get("status", "conditions") or []
            if reply.status == 200 and any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                return
            pacing.sleep(0.05)
        raise RuntimeError(f"{self.crd} was not established")

    # ---- pieces

    def name(self) -> str:
        if self.rng.random() < 0.04:
            return self.rng.choice(ODD_NAMES)
        base = self.rng.choice(["one", "two", "three"])
        return self.client.name(base)

    def path(self, kind: Kind, name: str) -> str:
        return f"{kind.collection(self.client)}/{name}"

    def body(self, kind: Kind, name: str) -> dict[str, Any]:
        text = json.dumps(kind.sample).replace("{ns}", self.client.ns).replace("{n}", name)
        body = json.loads(text)
        version = kind.version
        return {"apiVersion": version, "kind": kind.name, **body, "metadata": {**body.get("metadata", {}), "name": name}}

    def mutate(self, body: Any, times: int, guide: Any = None) -> Any:
        """Change `body` at places that `guide` (what we once sent; `body` itself if not given) has."""
        body = copy.deepcopy(body)
        pointers = sorted(_pointers(body if guide is None else guide))
        for _ in range(times):
            if not pointers:
                break
            pointer, choice, value = self.rng.choice(pointers), self.rng.random(), self.rng.choice(ODD_VALUES)
            extra = self.rng.choice(["unknown", "spec", "labels", "Name", "metadata", "annotations"])
            try:
                parent, key = _resolve(body, pointer)
            except (KeyError, IndexError, TypeError, ValueError):
                continue
            if choice < 0.3:
                del parent[key]
            elif choice < 0.75:
                parent[key] = copy.deepcopy(value)
            elif isinstance(parent, dict):
                parent[extra] = copy.deepcopy(value)
            else:
                parent.append(copy.deepcopy(parent[key] if extra == "spec" else value))
        return body

    def options(self, manager: bool = True) -> dict[str, Any]:
        query: dict[str, Any] = {}
        if self.rng.random() < 0.12:
            query["dryRun"] = self.rng.choice(["All", "All", "All", "nope", ""])
        if self.rng.random() < 0.3:
            query["fieldValidation"] = self.rng.choice(["Strict", "Strict", "Warn", "Ignore", "nope"])
        if manager and self.rng.random() < 0.3:
            query["fieldManager"] = self.rng.choice([*MANAGERS, "x" * 129, "bad\u0001"])
        return query

    def accept(self) -> dict[str, str] | None:
        roll = self.rng.random()
        if roll < 0.75:
            return None
        return {
            "Accept": self.rng.choice(
                [
                    TABLE,
                    TABLE,
                    PARTIAL,
                    PARTIAL_LIST,
                    "*/*",
                    "application/*",
                    "text/plain",
                    "application/yaml",
                    "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
                    "application/json;as=Nope;v=v1;g=meta.k8s.io",
                    "application/json;q=0.5",
                    "application/json, */*",
                ]
            )
        }

    def remember(self, reply: Any, kind: Kind) -> None:
        if reply.rv:
            self.rvs.append(reply.rv)
            name = reply.get("metadata", "name", default="")
            if reply.get("kind") == kind.name and name:
                self.objects[kind.name, name] = reply.json
        token = reply.get("metadata", "continue")
        if token:
            self.tokens.append(token)

    def rv(self) -> str:
        return self.rng.choice([*self.rvs[-6:], "0", "x", "-1", "999999999"] if self.rng.random() < 0.3 else self.rvs[-6:])

    def dump(self, body: Any) -> Any:
        """Usually the object; now and then text that is not quite it."""
        roll = self.rng.random()
        text = json.dumps(body)
        if roll < 0.02 and "{" in text[1:]:
            return text.replace('"metadata": {', '"metadata": {"name": "dup", ', 1)
        if roll < 0.03:
            return text[:-1]
        if roll < 0.035:
            return text + "x"
        return body

    # ---- actions

    def create(self, kind: Kind, plain: bool = False, name: str = "") -> None:
        name = name or self.name()
        body = self.body(kind, name)
        if not plain:
            roll = self.rng.random()
            if roll < 0.45:
                body = self.mutate(body, self.rng.choice([1, 1, 2, 3]))
            elif roll < 0.52:
                body["metadata"].pop("name")
                body["metadata"]["generateName"] = self.rng.choice(["gen-", "gen-", "Gen-", "a" * 240])
            elif roll < 0.57:
                body["metadata"]["finalizers"] = self.rng.choice([["example.com/f"], ["foregroundDeletion"], ["nope"], ["a/b/c"]])
            elif roll < 0.6:
                body["kind"] = "Other"
            elif roll < 0.63:
                body["apiVersion"] = "v9"
            elif roll < 0.65:
                body["metadata"]["resourceVersion"] = "5"
            elif roll < 0.67:
                body["metadata"]["namespace"] = "elsewhere"
        reply = self.client.post(
            kind.collection(self.client),
            self.dump(body),
            {} if plain else self.options(),
            headers=None if plain else self.accept(),
        )
        self.remember(reply, kind)

    def get(self, kind: Kind) -> None:
        query: dict[str, Any] = {}
        if self.rng.random() < 0.3:
            query["resourceVersion"] = self.rng.choice([*self.rvs[-3:], "0", "x"])
        if self.rng.random() < 0.06:
            query["resourceVersionMatch"] = "Exact"
        if self.rng.random() < 0.05:
            query["pretty"] = "true"
        self.remember(self.client.get(self.path(kind, self.name()), query, headers=self.accept()), kind)

    def list(self, kind: Kind) -> None:
        query: dict[str, Any] = {}
        if self.rng.random() < 0.35:
            query["labelSelector"] = self.rng.choice(SELECTORS)
        if self.rng.random() < 0.3:
            query["fieldSelector"] = self.rng.choice(FIELD_SELECTORS).format(name=self.client.name("one"), ns=self.client.ns)
        if not kind.namespaced:  # others' objects are there too
            query["fieldSelector"] = f"metadata.name={self.name()}"
        if self.rng.random() < 0.35:
            query["limit"] = self.rng.choice(["1", "2", "1", "0", "-1", "x", "500"])
        if self.rng.random() < 0.12:
            query["continue"] = self.rng.choice(self.tokens[-3:])
        if self.rng.random() < 0.35:
            query["resourceVersion"] = self.rv()
        if self.rng.random() < 0.25:
            query["resourceVersionMatch"] = self.rng.choice(["Exact", "NotOlderThan", "Exact", "NotOlderThan", "Nope", ""])
        if self.rng.random() < 0.04:
            query["sendInitialEvents"] = self.rng.choice(["true", "false", "x"])
        if self.rng.random() < 0.04:
            query["timeoutSeconds"] = self.rng.choice(["5", "x", "-1"])
        everywhere = self.rng.random() < 0.1 and "fieldSelector" in query and "metadata.name=" in query["fieldSelector"]
        self.remember(self.client.get(kind.collection(self.client, everywhere), query, headers=self.accept()), kind)

    def known(self, kind: Kind) -> tuple[str, dict[str, Any]]:
        name = self.name()
        return name, copy.deepcopy(self.objects.get((kind.name, name)) or self.body(kind, name))

    def update(self, kind: Kind) -> None:
        name, body = self.known(kind)
        roll = self.rng.random()
        if roll < 0.35:
            body["metadata"].pop("resourceVersion", None)
        elif roll < 0.42:
            body["metadata"]["resourceVersion"] = self.rng.choice(["1", "999999", "x"])
        elif roll < 0.46:
            body["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
        elif roll < 0.49:
            body["metadata"]["name"] = "other"
        body["metadata"].setdefault("labels", {})
        if isinstance(body["metadata"]["labels"], dict):
            body["metadata"]["labels"]["step"] = str(self.rng.randrange(3))
        if self.rng.random() < 0.4:
            body = self.mutate(body, self.rng.choice([1, 2]), self.body(kind, name))
        if self.rng.random() < 0.1 and isinstance(body.get("metadata"), dict):
            body["metadata"]["finalizers"] = self.rng.choice([[], ["example.com/f"], ["example.com/g"]])
        self.remember(self.client.put(self.path(kind, name), self.dump(body), self.options(), headers=self.accept()), kind)

    def patch(self, kind: Kind, subresource: str = "") -> None:
        name = self.name()
        body = self.body(kind, name)
        ctype = self.rng.choice([MERGE, MERGE, JSON_PATCH, JSON_PATCH, STRATEGIC, STRATEGIC, "application/json", ""])
        if ctype == JSON_PATCH:
            document: Any = self.json_patch(body)
        else:
            document = self.partial(body)
            if ctype == STRATEGIC and self.rng.random() < 0.25:
                document = self.directive(document)
        query = self.options()
        if self.rng.random() < 0.06:
            query["force"] = "true"
        self.remember(
            self.client.patch(self.path(kind, name) + subresource, self.dump(document), ctype, query, headers=self.accept()), kind
        )

    def partial(self, body: dict[str, Any]) -> Any:
        """A merge document: some of the object's own fields, changed."""
        roll = self.rng.random()
        if roll < 0.04:
            return self.rng.choice(["text", [], 5, None, {}])
        if roll < 0.35:
            return {
                "metadata": {
                    self.rng.choice(["labels", "annotations"]): {
                        self.rng.choice(["app", "new", "tier"]): self.rng.choice(["z", None, "b", 5])
                    }
                }
            }
        if roll < 0.42:
            return {"metadata": {"resourceVersion": self.rng.choice([self.rv(), ""])}, "x": 1}
        if roll < 0.47:
            return {"metadata": {"finalizers": self.rng.choice([None, ["example.com/f"], []])}}
        chosen = {
            k: copy.deepcopy(v)
            for k, v in body.items()
            if k in ("spec", "data", "rules", "status", "subjects", "value", "roleRef", "type")
        }
        return self.mutate(chosen or {"spec": {}}, self.rng.choice([1, 2, 3]))

    def directive(self, document: Any) -> Any:
        places = [(p, k) for p, k in _places(document) if isinstance(p[k], dict)]
        if places:
            parent, key = self.rng.choice(places)
            parent[key]["$patch"] = self.rng.choice(["replace", "delete", "merge", "nope"])
        elif isinstance(document, dict):
            document["$retainKeys"] = ["spec"]
        return document

    def json_patch(self, body: dict[str, Any]) -> Any:
        if self.rng.random() < 0.04:
            return self.rng.choice([{}, [{}], [{"op": "nope", "path": "/a"}], [{"op": "add"}], "x", [5]])
        pointers = [
            "/metadata/labels/app",
            "/metadata/labels/new",
            "/metadata/annotations",
            "/metadata/annotations/a",
            "/nope/deep",
            "/spec",
            "",
        ]
        own = sorted(_pointers(body))
        pointers += [self.rng.choice(own) for _ in range(6)]
        operations = []
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            operation = self.rng.choice(["add", "replace", "remove", "test", "copy", "move"])
            entry: dict[str, Any] = {"op": operation, "path": self.rng.choice(pointers)}
            if self.rng.random() < 0.1:
                entry["path"] += self.rng.choice(["/-", "/0", "/-1", "/99", "/01"])
            if operation in ("add", "replace", "test") and self.rng.random() < 0.95:
                entry["value"] = self.rng.choice(["b", {"a": "b"}, {}, None, 3, "z", ["x"]])
            if operation in ("copy", "move"):
                entry["from"] = self.rng.choice(pointers)
            operations.append(entry)
        return operations

    def apply(self, kind: Kind, subresource: str = "") -> None:
        name = self.name()
        body = self.body(kind, name)
        roll = self.rng.random()
        if roll < 0.55:
            body = self.mutate(body, self.rng.choice([1, 1, 2]))
        query = self.options(manager=False)
        if self.rng.random() < 0.95:
            query["fieldManager"] = self.rng.choice(MANAGERS)
        if self.rng.random() < 0.35:
            query["force"] = self.rng.choice(["true", "true", "false", "x"])
        self.remember(
            self.client.patch(self.path(kind, name) + subresource, self.dump(body), APPLY, query, headers=self.accept()), kind
        )

    def subresource(self, kind: Kind) -> None:
        name, body = self.known(kind)
        sub = self.rng.choice([*kind.subresources, *kind.subresources, *kind.subresources, "nope", "scale", "status"])
        path = f"{self.path(kind, name)}/{sub}"
        roll = self.rng.random()
        if roll < 0.3:
            self.client.get(path, headers=self.accept())
        elif sub == "scale":
            scale = {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": name, "namespace": self.client.ns},
                "spec": {"replicas": self.rng.choice([0, 1, 5, -1, 3])},
            }
            if roll < 0.6:
                self.remember(self.client.put(path, scale, self.options()), kind)
            else:
                self.client.patch(
                    path,
                    {"spec": {"replicas": self.rng.choice([2, 7, "x", -2])}},
                    self.rng.choice([MERGE, STRATEGIC]),
                    self.options(),
                )
        elif roll < 0.6:
            body["status"] = self.rng.choice(
                [{}, {"replicas": 3}, {"phase": "Running"}, {"conditions": [{"type": "Ready", "status": "True"}]}, "x"]
            )
            body.setdefault("spec", {})
            self.remember(self.client.put(path, body, self.options()), kind)
        else:
            self.client.patch(
                path,
                {"status": self.rng.choice([{"replicas": 2, "phase": "Failed"}, {"phase": "Pending"}, {"conditions": []}, None])},
                self.rng.choice([MERGE, STRATEGIC, MERGE]),
                self.options(),
            )

    def delete(self, kind: Kind) -> None:
        name, body = self.known(kind)
        if not name and not kind.namespaced:
            return  # that would be everybody's
        options: dict[str, Any] = {}
        if self.rng.random() < 0.3:
            options["propagationPolicy"] = self.rng.choice(POLICIES)
        if self.rng.random() < 0.25:
            options["gracePeriodSeconds"] = self.rng.choice([0, 5, -1, "x"])
        if self.rng.random() < 0.2:
            options["preconditions"] = {
                self.rng.choice(["uid", "resourceVersion"]): self.rng.choice(
                    [body["metadata"].get("uid", "x"), body["metadata"].get("resourceVersion", "1"), "wrong"]
                )
            }
        if self.rng.random() < 0.06:
            options["orphanDependents"] = self.rng.choice([True, False])
        if self.rng.random() < 0.1:
            options["dryRun"] = ["All"]
        if self.rng.random() < 0.05:
            options["unknown"] = 1
        as_query = self.rng.random() < 0.4
        flat = {k: v for k, v in options.items() if k not in ("preconditions", "unknown")}
        sent = None if as_query or not options else {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        reply = self.client.delete(self.path(kind, name), sent, _flatten(flat) if as_query else None, headers=self.accept())
        self.remember(reply, kind)
        if self.rng.random() < 0.4:
            self.client.get(self.path(kind, name))

    def delete_collection(self, kind: Kind) -> None:
        if not kind.namespaced:
            return
        query = {"labelSelector": self.rng.choice(SELECTORS)} if self.rng.random() < 0.6 else {}
        if self.rng.random() < 0.2:
            query["dryRun"] = "All"
        if self.rng.random() < 0.2:
            query["limit"] = "1"
        self.client.delete(kind.collection(self.client), None, query)
        self.client.get(kind.collection(self.client))

    def watch(self, kind: Kind) -> None:
        if not kind.namespaced:
            return
        query: dict[str, Any] = {"resourceVersion": self.rng.choice(self.rvs[2:4] or ["x"])}
        if self.rng.random() < 0.3:
            query["labelSelector"] = self.rng.choice(SELECTORS)
        if self.rng.random() < 0.15:
            query["fieldSelector"] = f"metadata.name={self.client.name('one')}"
        if self.rng.random() < 0.15:
            query |= {
                "sendInitialEvents": "true",
                "allowWatchBookmarks": "true",
                "resourceVersionMatch": "NotOlderThan",
                "resourceVersion": self.rng.choice(["0", ""]),
            }
        elif self.rng.random() < 0.1:
            query |= self.rng.choice(
                [
                    {"sendInitialEvents": "true"},
                    {"resourceVersionMatch": "Exact"},
                    {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"},
                    {"limit": "1"},
                    {"continue": "x"},
                ]
            )
        accept = (
            {"Accept": self.rng.choice([TABLE, PARTIAL, "application/json;stream=watch"])} if self.rng.random() < 0.25 else None
        )
        self.client.watch(kind.collection(self.client), query, headers=accept)

    def odd(self, kind: Kind) -> None:
        collection = kind.collection(self.client)
        choice = self.rng.randrange(12)
        if choice == 0:
            self.client.request(self.rng.choice(["PUT", "PATCH", "FOO", "OPTIONS", "HEAD", "TRACE"]), collection, {})
        elif choice == 1:
            self.client.request(self.rng.choice(["POST", "FOO", "HEAD", "OPTIONS"]), self.path(kind, self.name()), {})
        elif choice == 2:
            self.client.post(
                collection,
                self.rng.choice([b"", b"\xff\xfe", b"k8s\x00\x01", "not json", "[]", "null", "5", '""']),
                ctype=self.rng.choice(
                    [JSON, JSON, "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", "application/cbor", ""]
                ),
            )
        elif choice == 3:
            self.client.get(
                self.rng.choice(
                    [
                        collection + "s",
                        "/api/v2",
                        "/apis/nope.io/v1/things",
                        "/api/v1/nope",
                        "/nope",
                        "/apis/apps/v9/deployments",
                        f"/api/v1/namespaces/{self.client.ns}/nope/x",
                        "/api/v1/namespaces//pods",
                        collection + "/a/b/c",
                        "/api",
                        "/apis/apps",
                    ]
                )
            )
        elif choice == 4:
            body = self.body(kind, self.name())
            self.remember(self.client.post(collection, block_yaml.dump(body), self.options(), ctype="application/yaml"), kind)
        elif choice == 5:
            self.client.get(
                collection,
                {
                    "fieldSelector": f"metadata.name={self.client.name('one')}",
                    "watch": self.rng.choice(["x", "0", "false", "maybe"]),
                    "limit": "1",
                    "timeoutSeconds": "1",
                },
            )
        elif choice == 6:
            self.client.get(f"/api/v1/namespaces/{self.client.ns}", headers=self.accept())
        elif choice == 7:
            self.client.post("/api/v1/namespaces/absent-ns/configmaps", {"metadata": {"name": "x"}})
        elif choice == 8:
            self.client.get(collection, "labelSelector=app%3Da&labelSelector=app%3Db&limit=1&limit=2&unknownParameter=1")
        elif choice == 9:
            self.client.delete(
                self.path(kind, self.name()),
                self.rng.choice(
                    [
                        "{",
                        {"kind": "Other", "apiVersion": "v1"},
                        {"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"},
                        {"gracePeriodSeconds": 0, "preconditions": "x"},
                    ]
                ),
            )
        elif choice == 10:
            self.client.post(self.path(kind, "x") + "/status", {})
        else:
            self.client.get(
                self.path(kind, self.name()),
                headers={
                    "Accept": self.rng.choice(["", "a/b;q=x", "application/json;charset=utf-8", "*", ";", "application/vnd.nope"])
                },
            )


def _flatten(options: dict[str, Any]) -> dict[str, Any]:
    return {k: ("true" if v is True else "false" if v is False else v) for k, v in options.items()}


def _places(value: Any) -> Any:
    """Every (container, key) below a value."""
    if isinstance(value, dict):
        for key in list(value):
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value, index
            yield from _places(value[index])


def _resolve(value: Any, pointer: str) -> tuple[Any, Any]:
    """The container and the key that a pointer of `_pointers` names; KeyError, IndexError, TypeError or ValueError if gone."""
    *path, last = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in path:
        value = value[int(step) if isinstance(value, list) else step]
    key: Any = int(last) if isinstance(value, list) else last
    value[key]
    return value, key


def _pointers(value: Any, at: str = "") -> set[str]:
    found = {at} if at else set()
    if isinstance(value, dict):
        for key, item in value.items():
            found |= _pointers(item, f"{at}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found |= _pointers(item, f"{at}/{index}")
    return found


def scenario_of(seed: str, kinds: dict[str, Any] | None = None, steps: int = 18) -> Callable[[Client], None]:
    def random_story(client: Client) -> None:
        Story(client, Steady(seed), kinds or sample_objects.KINDS, steps).tell()

    return random_story
