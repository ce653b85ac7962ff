"""Random stories of one resource that is served in several versions, or of one object by several ways: each request takes another."""

from __future__ import annotations

from typing import Any

from tests.differential.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, TABLE
from tests.differential.definitions import DRY
from tests.differential.generators import documents
from tests.differential.generators.objects import Object, Story
from tests.differential.generators.schemas import Api, Kind

#: Resources of which two groups serve the same objects.
_COHABITATING = ("events",)


def versions_of(api: Api, kind: Kind) -> list[Kind]:
    """The versions in which objects of a kind are served, itself first."""
    plural = kind.collection.rpartition("/")[2]
    same = [
        one
        for one in api.kinds
        if one != kind
        and one.name == kind.name
        and one.collection.endswith("/" + plural)
        and (one.group == kind.group or plural in _COHABITATING)
    ]
    return [kind, *same]


def tell_crossings(story: Story) -> None:
    """Reads, updates, patches, applies and watches an object, each time in a version that is drawn, and removes it in one."""
    client, rng = story.client, story.rng
    ways = versions_of(story.editor.api, story.kind)

    def at(kind: Kind) -> str:
        return kind.collection.replace("{namespace}", client.ns)

    def turned(body: Any, kind: Kind) -> Object:
        return {**body, "apiVersion": kind.api_version, "kind": kind.name}

    body = story.named(story.edited(story.sample(), story.times(0, 1, 2)), "s")
    removed_in = rng.choice(ways)
    reply = client.post(at(story.kind), body)
    if reply.status != 201:
        reply = client.post(at(story.kind), story.named(story.sample(), "s"))
        if reply.status != 201:
            return
    name = reply.get("metadata", "name")
    try:
        for _ in range(12):
            kind = rng.choice(ways)
            path, schema = f"{at(kind)}/{name}", story.editor.api.of(kind)
            current = client.get(path).json
            if current.get("kind") != kind.name:
                break
            roll = rng.random()
            query: Object = {"fieldManager": rng.choice(["m1", "m2"]), **(DRY if rng.random() < 0.2 else {})}
            if rng.random() < 0.15:
                query["fieldValidation"] = "Strict"
            edited = story.editor.edited(
                current, schema, story.times(1, 1, 2), ("spec", "metadata", "status") if rng.random() < 0.4 else ()
            )
            if roll < 0.25:
                client.put(path, edited, query)
            elif roll < 0.35 and "status" in kind.subresources:
                client.put(f"{path}/status", story.editor.edited(current, schema, 3, ("status",)), query)
            elif roll < 0.5:
                client.patch(
                    path, documents.strategic_merge(story.editor, current, schema), rng.choice([STRATEGIC, MERGE]), query
                )
            elif roll < 0.6:
                client.patch(path, documents.json_patch(story.editor, current), JSON_PATCH, query)
            elif roll < 0.85:
                applied = turned({k: v for k, v in edited.items() if k != "status"}, kind)
                if isinstance(applied.get("metadata"), dict):
                    applied["metadata"] = {k: v for k, v in applied["metadata"].items() if k in ("name", "labels", "annotations")}
                client.patch(path, applied, APPLY, {**query, **({"force": "true"} if rng.random() < 0.5 else {})})
            elif roll < 0.9:
                other = rng.choice(ways)
                client.put(path, turned(edited, other), query)
            elif roll < 0.95:
                client.get(path, headers={"Accept": TABLE})
            else:
                client.watch(
                    at(kind),
                    {"fieldSelector": f"metadata.name={name}", "resourceVersion": rng.choice(["0", ""]), "timeoutSeconds": "2"},
                    quiet=0.3,
                )
    finally:
        story.remove(f"{at(removed_in)}/{name}")
