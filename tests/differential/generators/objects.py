"""Random stories of one kind: its objects are edited, patched, applied, listed, watched, shown and deleted."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.differential import block_yaml
from tests.differential.client import APPLY, JSON_PATCH, MERGE, PARTIAL, PARTIAL_LIST, STRATEGIC, TABLE, Client
from tests.differential.definitions import DRY
from tests.differential.generators import documents
from tests.differential.generators.edits import Editor
from tests.differential.generators.samples import named
from tests.differential.generators.schemas import Kind, Schema
from tests.differential.random_stories import SELECTORS

#: Kinds that would change what other stories see: objects of them are only made in dry runs.
SHARED = frozenset(
    ("APIService", "CustomResourceDefinition", "FlowSchema", "IPAddress", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace",
     "PriorityLevelConfiguration", "ServiceCIDR", "StorageVersionMigration", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration")
)  # fmt: skip
Object = dict[str, Any]


@dataclass(slots=True)
class Story:
    """One kind, and one client."""

    client: Client
    editor: Editor
    kind: Kind

    @property
    def rng(self) -> Any:
        return self.editor.rng

    @property
    def schema(self) -> Schema:
        return self.editor.api.of(self.kind)

    @property
    def collection(self) -> str:
        return self.kind.collection.replace("{namespace}", self.client.ns)

    @property
    def has_status(self) -> bool:
        return "status" in self.kind.subresources and "status" in self.schema.get("properties", {})

    def sample(self) -> Object:
        found: Object = self.rng.choice(self.editor.samples.objects[self.kind])
        return found

    def named(self, body: Object, name: str) -> Object:
        return named(body, self.kind, name, self.client)

    def edited(self, obj: Object, times: int = 1, *within: str) -> Object:
        changed: Object = self.editor.edited(obj, self.schema, times, within)
        return changed

    def times(self, *of: int) -> int:
        return int(self.rng.choice(of))

    def remove(self, path: str) -> None:
        self.client.patch(path, {"metadata": {"finalizers": None}}, MERGE, silent=True)
        self.client.delete(path, {"gracePeriodSeconds": 0}, silent=True)

    @contextlib.contextmanager
    def made(self, *bodies: Object) -> Iterator[list[str]]:
        """Makes what is valid of these objects, silently; yields the paths, and removes all in the end."""
        paths: list[str] = []
        try:
            for body in bodies:
                reply = self.client.post(self.collection, body, silent=True)
                if reply.status == 201:
                    paths.append(f"{self.collection}/{reply.get('metadata', 'name')}")
            yield paths
        finally:
            for path in paths:
                self.remove(path)

    def some(self, count: int, of_edits: float = 0.4) -> list[Object]:
        """Objects with names of their own; some of them edited, and with the labels that selectors ask for."""
        out = []
        for number in range(count):
            body = self.sample()
            if self.rng.random() < of_edits:
                body = self.edited(body)
            body = self.named(body, f"o{number}")
            if (
                self.rng.random() < 0.6
                and isinstance(body["metadata"], dict)
                and isinstance(body["metadata"].get("labels") or {}, dict)
            ):
                body["metadata"]["labels"] = {**(body["metadata"].get("labels") or {}), "app": self.rng.choice("abz")}
            out.append(body)
        return out

    def write_status(self, path: str, *times: int) -> None:
        current = self.client.get(path, silent=True).json
        self.client.put(f"{path}/status", self.edited(current, self.times(*times), "status"))


def tell_edits(story: Story) -> None:
    """Dry runs of creates, updates, writes of the status, applies and merges; each edits one or two places."""
    client, rng = story.client, story.rng
    base = story.sample()
    for _ in range(9):
        client.post(story.collection, story.named(story.edited(base, story.times(1, 1, 1, 2)), "a"), DRY)
    if story.kind.name in SHARED:
        return
    with story.made(story.named(base, "s")) as paths:
        for path in paths:
            if story.has_status and rng.random() < 0.5:
                story.write_status(path, 1, 2, 3)
            current = client.get(path).json
            within = ("spec", "metadata", "data", "rules") if "spec" in current else ()
            for _ in range(5):
                client.put(path, story.edited(current, story.times(1, 1, 2), *within), DRY)
            for _ in range(4 if story.has_status else 0):
                client.put(f"{path}/status", story.edited(current, story.times(1, 1, 2, 3), "status"), DRY)
            for _ in range(2):
                applied = story.named(story.edited(base, story.times(1, 2)), "s")
                client.patch(path, applied, APPLY, {**DRY, "fieldManager": "fz", "force": "true"})
            merged = story.named(story.edited(base, story.times(1, 2)), "s")
            rest = {key: value for key, value in merged.items() if key not in ("apiVersion", "kind", "metadata")}
            client.patch(path, rest, rng.choice([MERGE, STRATEGIC]), DRY)
            client.get(path, headers={"Accept": TABLE})


def tell_tables(story: Story) -> None:
    """Objects with edited statuses, and their Tables and metadata: one by one, as lists, and as watches."""
    client, rng = story.client, story.rng
    with story.made(*story.some(6)) as paths:
        for path in paths:
            for _ in range(2 if story.has_status else 0):
                story.write_status(path, 2, 4, 8)
            client.get(path, headers={"Accept": TABLE})
            if rng.random() < 0.3:
                client.get(
                    path, {"includeObject": rng.choice(["None", "Object", "Metadata", "x", ""])}, headers={"Accept": TABLE}
                )
            if rng.random() < 0.3:
                client.get(path, headers={"Accept": rng.choice([PARTIAL, PARTIAL_LIST])})
        if story.kind.namespaced:
            client.get(story.collection, {"includeObject": rng.choice(["None", "Object", "Metadata"])}, headers={"Accept": TABLE})
            client.get(story.collection, headers={"Accept": PARTIAL_LIST})


def tell_merges(story: Story) -> None:
    """Strategic merge documents with directives, and merge patches."""
    client, rng = story.client, story.rng
    samples = sorted(story.editor.samples.objects[story.kind], key=lambda one: -len(json.dumps(one)))[:25]
    with story.made(story.named(rng.choice(samples), "s")) as paths:
        for path in paths:
            current = client.get(path, silent=True).json
            for _ in range(10):
                document = documents.strategic_merge(story.editor, current, story.schema)
                client.patch(path, document, STRATEGIC if rng.random() < 0.85 else MERGE, DRY)


def tell_jsonpatches(story: Story) -> None:
    """JSON patches in the margins of the syntax."""
    client, rng = story.client, story.rng
    with story.made(*(story.named(story.sample(), f"s{number}") for number in range(2))) as paths:
        for path in paths:
            current = client.get(path, silent=True).json
            for _ in range(9):
                query = {**DRY, "fieldValidation": rng.choice(["Strict", "Warn", "Ignore"])} if rng.random() < 0.3 else DRY
                client.patch(path, documents.json_patch(story.editor, current), JSON_PATCH, query)


def tell_applies(story: Story) -> None:
    """Applies of several managers, among updates, patches and edits of managedFields."""
    rng = story.rng
    base = story.sample()
    made: set[str] = set()
    try:
        for _ in range(9):
            body = story.named(base if rng.random() < 0.3 else story.edited(base, story.times(1, 2)), "s")
            if rng.random() < 0.4:
                body = {
                    key: value for key, value in body.items() if key in ("apiVersion", "kind", "metadata") or rng.random() < 0.6
                }
            name = body["metadata"].get("name", "s") if isinstance(body["metadata"], dict) else "s"
            path = f"{story.collection}/{name}"
            made.add(path)
            _apply_or_write(story, path, body)
    finally:
        for path in sorted(made):
            story.remove(path)


def _apply_or_write(story: Story, path: str, body: Object) -> None:
    client, rng = story.client, story.rng
    query: Object = {"fieldManager": rng.choice(["m1", "m1", "m2", "m3"])}
    if rng.random() < 0.2:
        query |= DRY
    roll = rng.random()
    if roll < 0.65:
        client.patch(path, body, APPLY, {**query, "force": "true"} if rng.random() < 0.4 else query)
    elif roll < 0.8:
        client.put(path, body, query)
    elif roll < 0.9:
        rest = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")}
        client.patch(path, rest, rng.choice([MERGE, STRATEGIC]), query)
    else:
        _edit_managers(story, path, query)
    current = client.get(path, silent=True).json if roll < 0.2 and story.has_status else {}
    if current.get("kind") == story.kind.name:
        status = story.edited(current, 3, "status").get("status")
        applied = {
            "apiVersion": body["apiVersion"],
            "kind": story.kind.name,
            "metadata": {"name": current["metadata"]["name"]},
            "status": status,
        }
        client.patch(f"{path}/status", applied, APPLY, {"fieldManager": "st", "force": "true"})


def _edit_managers(story: Story, path: str, query: Object) -> None:
    """Changes what is recorded of who owns what, as clients that migrate from Update to Apply do."""
    client, rng = story.client, story.rng
    current = client.get(path, silent=True).json
    entries = copy.deepcopy(current.get("metadata", {}).get("managedFields") or [{}])
    entry = rng.choice(entries)
    roll = rng.random()
    if roll < 0.3:
        entry["operation"] = rng.choice(["Apply", "Update", "Nope", ""])
    elif roll < 0.45:
        entry["manager"] = rng.choice(["m1", "", "other", "x" * 129])
    elif roll < 0.6:
        entry["fieldsV1"] = rng.choice(
            [{}, {"f:metadata": {"f:labels": {}}}, {"f:spec": {}}, None, {"x": {}}, {"f:metadata": "x"}, {"k:{": {}}]
        )
    elif roll < 0.7:
        entry["apiVersion"] = rng.choice(["v1", "nope/v9", "", "a/b/c"])
    elif roll < 0.8:
        entry[rng.choice(["fieldsType", "subresource", "time"])] = rng.choice(
            ["FieldsV2", "status", "", None, "2020-01-01T00:00:00Z"]
        )
    elif roll < 0.9:
        entries = rng.choice([[], [{}], entries[:1], [*entries, *entries]])
    client.patch(path, {"metadata": {"managedFields": entries}}, MERGE, query)


_MATCHES = ("Exact", "NotOlderThan", "", "Nope")


def tell_reads(story: Story) -> None:
    """Lists and watches with selectors, revisions, pages and matches, in all forms; continue tokens that are kept, mixed up and broken."""
    client, rng = story.client, story.rng
    with story.made(*story.some(5, 0.1)) as paths:
        listed = client.get(story.collection, silent=True)
        revisions = [str(item["metadata"].get("resourceVersion", "0")) for item in listed.get("items", default=[])[:6]] or ["0"]
        tokens = [""]
        wide = {} if story.kind.namespaced else {"labelSelector": f"own={client.id}"}
        for path in paths if wide else ():
            client.patch(path, {"metadata": {"labels": {"own": client.id}}}, MERGE, silent=True)
        for _ in range(14):
            query = dict(wide)
            if rng.random() < 0.35:
                query["labelSelector"] = ",".join([*wide.values(), rng.choice(SELECTORS)])
            if rng.random() < 0.3:
                query["fieldSelector"] = rng.choice(_FIELD_SELECTORS).format(
                    name=rng.choice(paths or ["x"]).rpartition("/")[2], ns=client.ns
                )
            if rng.random() < 0.45:
                query["limit"] = rng.choice(["1", "2", "3", "0", "-1", "x", "500"])
            if rng.random() < 0.2:
                query["continue"] = rng.choice(tokens[-2:])
            if rng.random() < 0.4:
                query["resourceVersion"] = rng.choice([*revisions[-3:], "0", "", "x", "-1"])
            if rng.random() < 0.3:
                query["resourceVersionMatch"] = rng.choice(_MATCHES)
            if rng.random() < 0.1:
                query[rng.choice(["timeoutSeconds", "sendInitialEvents", "allowWatchBookmarks", "pretty", "unknown"])] = (
                    rng.choice(["1", "true", "x", "0"])
                )
            accept = {"Accept": rng.choice([TABLE, PARTIAL_LIST, PARTIAL])} if rng.random() < 0.25 else None
            reply = client.get(story.collection, query, headers=accept)
            if token := reply.get("metadata", "continue"):
                tokens += [token, token[:-2] if rng.random() < 0.2 else token]
        if story.kind.namespaced:
            _watch(story, paths, revisions)


_FIELD_SELECTORS = (
    "metadata.name={name}", "metadata.name!={name}", "metadata.namespace={ns}", "metadata.name=={name}", "metadata.name", "metadata.name=a,metadata.name=b", "metadata.name=a\\,b", "spec.x=1",
    "metadata.namespace!={ns}", "metadata.name={name},metadata.namespace={ns}", "=x", "metadata.name=", ",", "metadata.uid=x", "status.phase!=x", "metadata.name=a\\", "metadata.name={name},",
)  # fmt: skip


def _watch(story: Story, paths: list[str], revisions: list[str]) -> None:
    client, rng = story.client, story.rng
    for _ in range(2):
        query: Object = {"resourceVersion": rng.choice([*revisions, "0", ""]), "timeoutSeconds": "20"}
        if rng.random() < 0.4:
            query["labelSelector"] = rng.choice(SELECTORS)
        if rng.random() < 0.2:
            query["fieldSelector"] = f"metadata.name={rng.choice(paths or ['x']).rpartition('/')[2]}"
        if rng.random() < 0.4:
            query |= {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
        elif rng.random() < 0.3:
            query |= rng.choice(
                [
                    {"sendInitialEvents": "true"},
                    {"resourceVersionMatch": "Exact"},
                    {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"},
                    {"limit": "1"},
                    {"allowWatchBookmarks": "x"},
                    {"timeoutSeconds": "x"},
                    {"resourceVersionMatch": "NotOlderThan"},
                ]
            )

        def change() -> None:
            for path in paths[:3]:
                client.patch(path, {"metadata": {"labels": {"app": rng.choice("abz")}}}, MERGE, silent=True)

        accept = {"Accept": rng.choice([TABLE, PARTIAL])} if rng.random() < 0.3 else None
        client.watch(story.collection, query, headers=accept, then=change)


def tell_deletes(story: Story) -> None:
    """Deletions of objects and collections with options in bodies and queries, finalizers, and what is left."""
    client, rng = story.client, story.rng
    bodies = story.some(5, 0)
    for body in bodies:
        if rng.random() < 0.4:
            body["metadata"]["finalizers"] = rng.choice(
                [["example.com/f"], ["foregroundDeletion"], ["orphan"], ["orphan", "example.com/f"]]
            )
    with story.made(*bodies) as paths:
        for _ in range(7):
            options = _deletion(story, paths)
            as_query = rng.random() < 0.4
            flat = {
                key: str(value).lower() if isinstance(value, bool) else value
                for key, value in options.items()
                if key != "preconditions"
            }
            query: Object = flat if as_query else {}
            sent = (
                None
                if as_query or not options
                else {
                    "apiVersion": rng.choice(["v1", "v1", "meta.k8s.io/v1", story.kind.api_version]),
                    "kind": "DeleteOptions",
                    **options,
                }
            )
            accept = {"Accept": rng.choice([TABLE, PARTIAL, PARTIAL_LIST])} if rng.random() < 0.2 else None
            if rng.random() < 0.5:
                client.delete(rng.choice(paths or [f"{story.collection}/x"]), sent, query, headers=accept)
            else:
                if rng.random() < 0.4:
                    query["labelSelector"] = rng.choice(SELECTORS)
                if rng.random() < 0.3:
                    query["fieldSelector"] = (
                        f"metadata.name{rng.choice(['=', '!='])}{rng.choice(paths or ['x']).rpartition('/')[2]}"
                    )
                if rng.random() < 0.3:
                    query["limit"] = rng.choice(["1", "2", "x", "0"])
                if rng.random() < 0.2:
                    query["resourceVersion"] = rng.choice(["0", "1", "x", ""])
                if rng.random() < 0.15:
                    query["resourceVersionMatch"] = rng.choice(_MATCHES)
                client.delete(story.collection, sent, query, headers=accept)
            if rng.random() < 0.5:
                client.get(story.collection)
            if rng.random() < 0.3:
                client.patch(
                    rng.choice(paths or ["/x"]),
                    {
                        "metadata": {
                            "finalizers": rng.choice([None, ["example.com/f"], ["example.com/g"], ["foregroundDeletion"]])
                        }
                    },
                    MERGE,
                )


def _deletion(story: Story, paths: list[str]) -> Object:
    rng = story.rng
    options: Object = {}
    if rng.random() < 0.35:
        options["propagationPolicy"] = rng.choice(["Foreground", "Background", "Orphan", "Nope", ""])
    if rng.random() < 0.3:
        options["gracePeriodSeconds"] = rng.choice([0, 1, 5, -1, "x", 2**40])
    if rng.random() < 0.25:
        current = story.client.get(rng.choice(paths or ["/x"]), silent=True)
        options["preconditions"] = rng.choice(
            [
                {"uid": current.uid or "x"},
                {"resourceVersion": current.rv or "1"},
                {"uid": "wrong"},
                {"resourceVersion": "1"},
                {"uid": ""},
                {},
                {"uid": current.uid or "x", "resourceVersion": "1"},
            ]
        )
    if rng.random() < 0.08:
        options["orphanDependents"] = rng.choice([True, False])
    if rng.random() < 0.3:
        options["dryRun"] = rng.choice([["All"], ["All"], [], ["x"], ["All", "All"]])
    if rng.random() < 0.08:
        options["ignoreStoreReadErrorWithClusterBreakingPotential"] = rng.choice([True, False])
    return options


_STRICT = ("Strict", "Strict", "Warn", "Ignore", None, "nope")


def tell_fields(story: Story) -> None:
    """Fields that are unknown, doubled or in another case, in JSON, YAML, merges, patches and applies, by each way to validate them."""
    client, rng = story.client, story.rng
    base = story.named(story.sample(), "a")
    for _ in range(8):
        client.post(
            story.collection, *_with_odd_fields(story, base), headers={"Accept": "application/json"}, ctype=None
        ) if rng.random() < 0.6 else _yaml(story, base)
    if story.kind.name in SHARED:
        return
    with story.made(story.named(story.sample(), "s")) as paths:
        for path in paths:
            current = client.get(path, silent=True).json
            for _ in range(3):
                body, query = _with_odd_fields(story, current)
                client.put(path, body, query)
            for _ in range(5):
                document, query = _with_odd_fields(
                    story, {"metadata": {"labels": {"a": "b"}}, **{k: v for k, v in current.items() if k == "spec"}}
                )
                client.patch(path, document, rng.choice([MERGE, STRATEGIC]), query)
            for _ in range(3):
                applied, query = _with_odd_fields(story, story.named({k: v for k, v in base.items() if k != "status"}, "s"))
                client.patch(path, applied, APPLY, {**query, "fieldManager": "m", "force": "true"})


def _yaml(story: Story, base: Object) -> None:
    body, query = _with_odd_fields(story, base, doubled=False)
    text = block_yaml.dump(body)
    if story.rng.random() < 0.5:
        lines = text.splitlines()
        line = story.rng.choice(lines)
        text = (
            "\n".join(two for one in lines for two in ([one, one] if one is line and not one.lstrip().startswith("-") else [one]))
            + "\n"
        )
    story.client.post(story.collection, text, query, ctype="application/yaml")


def _with_odd_fields(story: Story, base: Object, doubled: bool = True) -> tuple[Any, Object]:
    """A body with odd fields in it, and a query that says how fields are validated."""
    rng = story.rng
    body = copy.deepcopy(base)
    query: Object = dict(DRY)
    if validation := rng.choice(_STRICT):
        query["fieldValidation"] = validation
    for _ in range(story.times(1, 1, 2, 3)):
        places = [container for container, *_ in story.editor.api.places(body, story.schema) if isinstance(container, dict)]
        inside = rng.choice(places)
        name = rng.choice(sorted(inside) or ["x"])
        odd = rng.choice(["unknown", "Spec", name.upper(), name.capitalize(), f"{name}s", "metadata", "$x", "a.b/c", ""])
        if odd not in inside:
            inside[odd] = rng.choice([1, "x", None, {}, {"a": 1}, [], [{"x": 1}], copy.deepcopy(inside.get(name))])
    text = json.dumps(body)
    if not doubled or rng.random() < 0.6:
        return body, query
    double = rng.choice(['"metadata": {', '"spec": {', '"labels": {', '"name": '])
    extra = {'"name": ': '"name": "other", '}.get(
        double, double + rng.choice(['"name": "dup", "name": "dup2"', '"x": 1', '"a": "b"']) + "}, "
    )
    return text.replace(double, extra + double, story.times(1, 2)), query


def tell_selectors(story: Story) -> None:
    """Which fields of the kind selectors may name, in lists, deletions and watches."""
    client, rng = story.client, story.rng
    for name in FIELDS:
        client.get(story.collection, {"fieldSelector": f"{name}={rng.choice(['x', '', 'true', 'True', '1'])}", "limit": "3"})
    client.get(story.collection, {"fieldSelector": "metadata.name=x"})
    if story.kind.namespaced:
        everywhere = story.kind.collection.replace("/namespaces/{namespace}", "")
        for selector in (
            "metadata.namespace={ns}",
            "metadata.namespace!={ns},metadata.name=x",
            "metadata.namespace={ns},metadata.namespace=x",
        ):
            client.get(everywhere, {"fieldSelector": selector.format(ns=client.ns)})
    for selector in (
        "metadata.name",
        "metadata.name=x,",
        "metadata.name=a\\,b",
        "metadata.name=a\\",
        "=x",
        "metadata.name=x=y",
        "metadata.name==x",
        " metadata.name=x",
        "metadata.name in (x)",
    ):
        client.get(story.collection, {"fieldSelector": selector})
    for selector in ("metadata.name!=x,metadata.name!=y,metadata.name=z", "spec.nope!=x"):
        client.get(story.collection, {"fieldSelector": selector, "limit": "1"})
    client.delete(story.collection, None, {"fieldSelector": "metadata.name=nope", "dryRun": "All"})
    client.delete(story.collection, None, {"fieldSelector": "spec.nope=nope", "dryRun": "All"})
    client.watch(story.collection, {"fieldSelector": "spec.nope=1", "timeoutSeconds": "1"})


FIELDS = (
    "metadata.namespace", "metadata.uid", "metadata.labels", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName", "type", "spec.signerName", "spec.unschedulable", "spec.clusterIP", "spec.type", "status.replicas", "status.successful", "status.conditions", "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "regarding.name", "regarding.kind", "reportingController", "note", "spec.nodeSelector", "spec.driver", "spec.pool.name", "spec.attacher", "name", "spec", "spec.backoffLimit", "spec.storageClassName", "spec.volumeName", "provisioner", "spec.signer", "spec.resource.group", "spec.allNodes",
)  # fmt: skip


def tell_subresources(story: Story) -> None:
    """Every subresource of the kind by every verb, with bodies of its own kind, of the object's, and of neither."""
    client, rng = story.client, story.rng
    with story.made(story.named(story.sample(), "s")) as paths:
        for path in paths:
            for subresource in [
                *story.kind.subresources,
                "nope",
                *(rng.choice(story.kind.subresources or ("status",)) for _ in range(3)),
            ]:
                if subresource.partition("/")[0] in ("attach", "exec", "portforward", "proxy", "log") or "/" in subresource:
                    continue
                own = client.get(f"{path}/{subresource}").json
                current = client.get(path, silent=True).json
                for body in (own, current, *(story.edited(one, story.times(1, 2)) for one in (current, current))):
                    if not isinstance(body, dict):
                        continue
                    client.put(f"{path}/{subresource}", body, DRY)
                    client.post(f"{path}/{subresource}", body, DRY)
                parts = {
                    key: value
                    for key, value in story.edited(current, 2, "status", "spec", "metadata").items()
                    if key in ("spec", "status")
                }
                client.patch(f"{path}/{subresource}", parts, rng.choice([MERGE, STRATEGIC]), DRY)
                client.patch(f"{path}/{subresource}", documents.json_patch(story.editor, current), JSON_PATCH, DRY)
                applied = {
                    "apiVersion": story.kind.api_version,
                    "kind": story.kind.name,
                    "metadata": {"name": current["metadata"]["name"]},
                    **parts,
                }
                client.patch(
                    f"{path}/{subresource}", applied, APPLY, {**DRY, "fieldManager": "m", "force": rng.choice(["true", "false"])}
                )
                client.delete(f"{path}/{subresource}", None, DRY)
