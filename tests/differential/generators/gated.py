"""Random stories about the fields that feature gates control: each is filled in dry runs, kept in an object, and changed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Any

from fakekube.apis.disabled_fields import FIELDS, POD_SPEC, POD_STATUS
from tests.differential.client import MERGE
from tests.differential.definitions import DRY
from tests.differential.generators.edits import Editor
from tests.differential.generators.objects import SHARED, Object, Story
from tests.differential.generators.schemas import Api, Schema

Path = tuple[str, ...]
"""Fields from the object on; `[]` stands for an item of a list, `{}` for a value of a map."""

_DEEPEST = 14
#: Fields that gates do not drop: their validation or their defaults depend on gates.
_BY_CODE = (
    "minReplicas",
    "stopSignal",
    "sizeLimit",
    "tolerations",
    "maxUnavailable",
    "dataSourceRef",
    "nodeAffinity",
    "hostUsers",
    "reclaimPolicy",
)


@functools.cache
def _gated_names() -> frozenset[str]:
    rows = [row for table in (*FIELDS.values(), POD_SPEC, POD_STATUS) for row in table]
    last = (path.replace("?", "").rpartition(".")[2] for row in rows for path in row.paths)
    return frozenset(name for names in last for name in names.strip("()[]{}").split("|")) | set(_BY_CODE)


def _paths(api: Api, schema: Schema, path: Path, above: tuple[int, ...]) -> Iterator[Path]:
    """The paths of such fields below `path`, whose schema this is."""
    schema = api.resolved(schema)
    if id(schema) in above or len(path) > _DEEPEST:
        return
    above = (*above, id(schema))
    for name, inner in sorted(schema.get("properties", {}).items()):
        if name in _gated_names() and path:
            yield (*path, name)
        if name != "metadata":
            yield from _paths(api, inner, (*path, name), above)
    for step, key in (("[]", "items"), ("{}", "additionalProperties")):
        if isinstance(schema.get(key), dict):
            yield from _paths(api, schema[key], (*path, step), above)


def filled(editor: Editor, obj: Any, schema: Schema, path: Path) -> Any:
    """A copy of an object with a value at the path, and with what the path needs."""
    schema, (step, *rest) = editor.api.resolved(schema), path
    out = copy.deepcopy(obj)
    if step == "[]":
        items = out if isinstance(out, list) and out else [_held(editor, schema.get("items", {}))]
        index = editor.rng.randrange(len(items))
        items[index] = filled(editor, items[index], schema["items"], tuple(rest)) if rest else editor.value(schema["items"], "")
        return items
    held = out if isinstance(out, dict) else {}
    inner = schema.get("additionalProperties", {}) if step == "{}" else schema.get("properties", {}).get(step, {})
    key = editor.rng.choice(sorted(held) or ["a"]) if step == "{}" else step
    held[key] = filled(editor, held.get(key), inner, tuple(rest)) if rest else editor.value(inner, key)
    return held


def _held(editor: Editor, schema: Schema) -> Any:
    """A new item of a list that is to hold the field."""
    value = editor.value(schema, "", 5)
    return value if isinstance(value, dict) else {}


def tell_gated(story: Story) -> None:
    """Creates, updates and writes of the status with values of fields that gates control, or of any in kinds without such."""
    client, rng, base = story.client, story.rng, story.sample()
    paths = list(_paths(story.editor.api, story.schema, (), ()))
    of_spec, of_status = ([path for path in paths if (path[0] == "status") is is_status] for is_status in (False, True))

    def changed(obj: Object, among: list[Path]) -> Object:
        for _ in range(story.times(1, 1, 2) if among else 0):
            obj = filled(story.editor, obj, story.schema, rng.choice(among))
        return obj if among else story.edited(obj)

    for _ in range(8):
        client.post(story.collection, story.named(changed(base, of_spec), "a"), DRY)
    if story.kind.name in SHARED:
        return
    kept = [story.named(changed(base, of_spec), f"k{number}") for number in range(4)]
    with story.made(*kept, story.named(base, "s")) as made:
        for path in made[-3:]:
            current = client.get(path).json
            for _ in range(3):
                client.put(path, changed(current, of_spec), DRY)
                part = {
                    key: value for key, value in changed(base, of_spec).items() if key not in ("apiVersion", "kind", "metadata")
                }
                client.patch(path, part, MERGE, DRY)
            for _ in range(4 if of_status and story.has_status else 0):
                client.put(f"{path}/status", changed(current, of_status), DRY)
            if of_status and story.has_status:
                client.put(f"{path}/status", changed(current, of_status))
                stored = client.get(path).json
                client.put(f"{path}/status", changed(stored, of_status), DRY)
                client.put(path, stored, DRY)
