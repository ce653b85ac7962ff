"""One scenario's view of a living cluster: it makes objects, lets the controllers come to rest, and takes the state down.

A dump is one kind at one moment. What stands there is compared, not how it came about; events are taken down at the end.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.comparison import shorten
from tests.differential.life.cluster import LivingCluster
from tests.differential.life.manifests import KIND_OF, KINDS, SILENT, condition, node_named, root
from tests.differential.transports import Reply


class World(Client):
    """One scenario's view of a server: `ns` is its namespace, `name(x)` a cluster-wide name of its own."""

    def __init__(self, cluster: LivingCluster) -> None:
        self.cluster = cluster
        self.dumps: list[dict[str, Any]] = []
        self.trouble: list[str] = []
        self.sent: list[str] = []
        self.nodes: list[str] = []
        self.spaces: list[str] = []
        super().__init__(cluster.connect())

    def set_up(self) -> None:
        self.spaces.append(self.ns)
        super().set_up()

    def request(self, method: str, path: str, body: Any = None, *args: Any, **kw: Any) -> Reply:
        if method != "GET":
            self.sent.append(json.dumps(body) + path)
        return super().request(method, path, body, *args, **{**kw, "silent": True})

    # -- calls

    def at(self, kind: str, name: str = "", ns: str | None = None) -> str:
        """The path of a kind (or plural), or of the object so named."""
        version, plural, namespaced = KINDS[KIND_OF.get(kind, kind)]
        return root(version, plural, (ns or self.ns) if namespaced else None) + (f"/{name}" if name else "")

    def must(self, reply: Reply) -> Any:
        if not 200 <= reply.status < 300:
            self.trouble.append(f"{reply.status} {shorten(reply.get('message', default=''))}")
        return reply.json or {}

    def make(self, obj: dict[str, Any], ns: str | None = None) -> dict[str, Any]:
        """Create; apiVersion is filled in."""
        obj = {"apiVersion": KINDS[obj["kind"]][0], **obj}
        return self.must(self.post(self.at(obj["kind"], ns=ns), obj))

    def edit(self, kind: str, name: str, patch: Any, sub: str = "", ns: str | None = None) -> dict[str, Any]:
        """Merge patch."""
        return self.must(self.patch(self.at(kind, name, ns) + (f"/{sub}" if sub else ""), patch, MERGE))

    def remove(
        self, kind: str, name: str, policy: str | None = None, grace: int | None = None, ns: str | None = None
    ) -> dict[str, Any]:
        body: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if policy:
            body["propagationPolicy"] = policy
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        return self.must(self.delete(self.at(kind, name, ns), body))

    def read(self, kind: str, name: str, ns: str | None = None) -> dict[str, Any] | None:
        reply = self.get(self.at(kind, name, ns))
        return reply.json if reply.status == 200 else None

    def all(self, kind: str, selector: str = "", ns: str | None = None) -> list[dict[str, Any]]:
        """The items of a kind, sorted by name."""
        return self.get(self.at(kind, ns=ns), {"labelSelector": selector} if selector else None).get("items", default=[]) or []

    def run(self, pod: str | dict[str, Any], **status: Any) -> None:
        """Play the kubelet of a pod that nobody else runs: Running and ready, or the `status` given."""
        name = pod if isinstance(pod, str) else pod["metadata"]["name"]
        ready = {
            "phase": "Running",
            "conditions": [{"type": t, "status": "True"} for t in ("Initialized", "Ready", "ContainersReady")],
        }
        self.edit("pods", name, {"status": status or ready}, "status")

    def node(
        self,
        name: str,
        cpu: str = "4",
        memory: str = "8Gi",
        pods: str = "110",
        labels: dict[str, str] | None = None,
        taints: Any = None,
        silent: bool = False,
        room: dict[str, str] | None = None,
        **spec: Any,
    ) -> str:
        """Make a node of this scenario's own (only where it runs alone); `silent`: no kubelet runs it."""
        full = self.name(name)
        labels = {**(labels or {}), **({SILENT: "silent"} if silent else {})}
        self.nodes.append(full)
        self.must(
            self.post(
                "/api/v1/nodes",
                node_named(full, {"cpu": cpu, "memory": memory, "pods": pods, **(room or {})}, labels, taints, **spec),
            )
        )
        if not silent:
            self.until(
                lambda: (
                    condition(self.read("nodes", full), "Ready") == "True"
                    and not any(
                        t["key"].startswith("node.kubernetes.io/not-ready")
                        for t in self.read("nodes", full)["spec"].get("taints", [])
                    )
                ),
                20,
            )
        return full

    def space(self, suffix: str, labels: dict[str, str] | None = None) -> str:
        """Make one more namespace."""
        name = self.name(suffix)
        self.spaces.append(name)
        self.must(self.post("/api/v1/namespaces", {"metadata": {"name": name, **({"labels": labels} if labels else {})}}))
        return name

    # -- time

    @property
    def places(self) -> list[str]:
        return [*self.spaces, f"d-{self.id}", *(["nodes"] if self.nodes else [])]

    def settle(self, timeout: float = 60) -> bool:
        """Wait until the controllers have nothing to do now or within about three seconds."""
        done = self.cluster.settle(self.places, timeout)
        if not done:
            self.trouble.append("never settled")
        return done

    def advance(self, seconds: float) -> None:
        self.cluster.advance(seconds)

    def until(self, true: Callable[[], Any], within: float = 30) -> bool:
        """Wait until something is true that takes up to `within` seconds of the cluster's time."""
        end, clock = time.monotonic() + within, 0.0
        while True:
            try:
                if true():
                    return True
            except (KeyError, IndexError, TypeError, AttributeError):
                pass
            if self.cluster.moves_clock:
                self.cluster.settle(self.places, 10)
                try:
                    if true():
                        return True
                except (KeyError, IndexError, TypeError, AttributeError):
                    pass
                if clock >= within:
                    break
                self.cluster.advance(1)
                clock += 1
            else:
                if time.monotonic() > end:
                    break
                time.sleep(0.15)
        self.trouble.append(f"did not come true: line {sys._getframe(1).f_lineno}")
        return False

    # -- taking down

    def dump(
        self,
        *kinds: str,
        label: str = "",
        ns: str | None = None,
        names: list[str] | None = None,
        managers: bool = False,
        mask: tuple[str, ...] = (),
    ) -> None:
        """Take the state of some kinds (plurals) down: of the namespace, or the cluster-wide objects named with `name()`.

        `managers` keeps managedFields as (manager, operation, subresource, fields); `mask` names fields left out.
        """
        where, found = ns or self.ns, {}
        for kind in kinds:
            namespaced = KINDS[KIND_OF[kind]][2] if "/" not in kind else True
            path = (
                self.at(kind, ns=where)
                if "/" not in kind
                else f"/apis/{kind.rsplit('/', 1)[0]}/namespaces/{where}/{kind.rsplit('/', 1)[1]}"
            )
            items = self.get(path).get("items", default=[]) or []
            if not namespaced:
                items = [i for i in items if f"d-{self.id}" in i["metadata"]["name"]]
            if names is not None:
                items = [i for i in items if i["metadata"]["name"] in names]
            found[kind] = items
        known = self.known()
        for kind, items in found.items():
            self.dumps.append(
                {
                    "label": f"{label + ' ' if label else ''}{kind}",
                    "kind": KIND_OF.get(kind, kind),
                    "objects": items,
                    "group": len(self.dumps),
                    "managers": managers,
                    "mask": mask,
                    "known": known,
                }
            )
        for d in self.dumps[len(self.dumps) - len(found) :]:
            d["group"] = len(self.dumps)

    def answer(self, label: str, reply: Reply) -> None:
        """Take down what a call was answered: status, and reason, message and details if it is a Status."""
        body = reply.json if isinstance(reply.json, dict) else {}
        value = {
            "status": reply.status,
            **(
                {k: body[k] for k in ("reason", "message", "details", "code") if k in body}
                if body.get("kind") == "Status"
                else {}
            ),
        }
        self.fact(label, value)

    def fact(self, label: str, value: Any) -> None:
        """Take down something the scenario found out itself."""
        self.dumps.append({"label": label, "fact": value, "known": self.known()})

    def order(self, label: str, kind: str = "Pod", types: tuple[str, ...] = ("ADDED", "DELETED")) -> None:
        """Take down in which order objects of a kind came and went."""
        self.fact(label, [f"{t} {o['metadata']['name']}" for k, t, o in self.past() if k == kind and t in types])

    def past(self) -> list[tuple[str, str, Any]]:
        """What was seen of the scenario's namespace: (kind, ADDED|MODIFIED|DELETED, object); order counts within a kind only."""
        return self.cluster.happened(self.ns)

    def known(self) -> dict[str, list[str]]:
        seen = [change for place in self.places for change in self.cluster.happened(place)]
        return {o["metadata"]["uid"]: [k, o["metadata"]["name"], o["metadata"].get("generateName", "")] for k, _, o in seen}

    def events(self) -> list[dict[str, Any]]:
        found = []
        for space in self.spaces:
            found += self.get(f"/api/v1/namespaces/{space}/events").get("items", default=[]) or []
        found += [
            e
            for e in self.get("/api/v1/namespaces/default/events").get("items", default=[]) or []
            if f"d-{self.id}" in e.get("involvedObject", {}).get("name", "")
        ]
        return found

    def leave(self) -> None:
        """Take everything away, without waiting for controllers to do it."""
        for space in self.spaces:
            self.delete(f"/api/v1/namespaces/{space}")
            for item in self.all("pods", ns=space):
                if item["metadata"].get("finalizers"):
                    self.patch(self.at("pods", item["metadata"]["name"], space), {"metadata": {"finalizers": None}}, MERGE)
            self.delete(
                f"/api/v1/namespaces/{space}/pods", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            )
        for node in self.nodes:
            self.delete(f"/api/v1/nodes/{node}")
        for kind in (
            "persistentvolumes",
            "clusterroles",
            "certificatesigningrequests",
            "priorityclasses",
            "storageclasses",
            "customresourcedefinitions",
            "clusterrolebindings",
            "storageversionmigrations",
            "deviceclasses",
            "devicetaintrules",
            "resourceslices",
        ):
            for item in self.get(self.at(kind)).get("items", default=[]) or []:
                if self.id in item["metadata"]["name"]:
                    if item["metadata"].get("finalizers") and kind != "customresourcedefinitions":
                        self.patch(self.at(kind, item["metadata"]["name"]), {"metadata": {"finalizers": None}}, MERGE)
                    self.delete(self.at(kind, item["metadata"]["name"]))
