"""Draws patches: strategic merge documents with their directives, and JSON patches with odd paths."""

from __future__ import annotations

import copy
from typing import Any

from tests.differential.generators.edits import Editor
from tests.differential.generators.schemas import Schema

_OF_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_DEEP = 4


def strategic_merge(editor: Editor, obj: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """A document that changes parts of the object, with directives of all kinds, some of them wrong."""
    parts = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "status")}
    parts["metadata"] = {key: value for key, value in obj.get("metadata", {}).items() if key in _OF_METADATA}
    return _Merge(editor).mapping(parts, schema, 0)


class _Merge:
    def __init__(self, editor: Editor) -> None:
        self.editor, self.rng = editor, editor.rng

    def part(self, value: Any, schema: Schema, depth: int) -> Any:
        if isinstance(value, dict):
            return self.mapping(value, schema, depth)
        return self.rng.choice([None, "x", 1, True, [], {}, "80", ""]) if self.rng.random() < 0.25 else value

    def mapping(self, value: dict[str, Any], schema: Schema, depth: int) -> dict[str, Any]:
        schema = self.editor.api.resolved(schema)
        out: dict[str, Any] = {}
        for key in sorted(value):
            if self.rng.random() < (0.6 if depth < _DEEP else 0.4):
                inner = schema.get("properties", {}).get(key) or schema.get("additionalProperties") or {}
                out |= (
                    self.items(value[key], inner, key, depth)
                    if isinstance(value[key], list)
                    else {key: self.part(value[key], inner, depth + 1)}
                )
        roll = self.rng.random()
        if roll < 0.05:
            out["$patch"] = self.rng.choice(["replace", "delete", "merge", "nope"])
        elif roll < 0.10:
            out["$retainKeys"] = self.rng.choice([sorted(out), sorted(out)[:1], ["x"], [], "x", [1]])
        elif roll < 0.16 and value:
            out[self.rng.choice(sorted(value))] = None
        elif roll < 0.2 and (names := sorted(schema.get("properties", ()))):
            name = self.rng.choice(names)
            out[name] = self.editor.value(schema["properties"][name], name, 5)
        return out

    def items(self, value: list[Any], schema: Schema, key: str, depth: int) -> dict[str, Any]:
        """A list, and the directives beside it."""
        merge_key = schema.get("x-kubernetes-patch-merge-key")
        inner = self.editor.api.resolved(schema).get("items", {})
        new = [changed for item in value for changed in self.item(item, inner, merge_key, depth)]
        if self.rng.random() < 0.3:
            new.append(self.editor.value(inner, key, 5))
        if self.rng.random() < 0.08:
            new.append({"$patch": self.rng.choice(["replace", "delete"])})
        if self.rng.random() < 0.06 and new:
            new.append(copy.deepcopy(new[0]))
        out: dict[str, Any] = {key: new}
        roll = self.rng.random()
        if merge_key and roll < 0.35:
            order = [
                {merge_key: one.get(merge_key)}
                for one in new
                if isinstance(one, dict) and merge_key in one and "$patch" not in one
            ]
            order += [{merge_key: one.get(merge_key)} for one in value if isinstance(one, dict) and self.rng.random() < 0.5]
            self.rng.shuffle(order)
            out[f"$setElementOrder/{key}"] = order
        elif not merge_key and value and isinstance(value[0], str):
            if roll < 0.3:
                out[f"$deleteFromPrimitiveList/{key}"] = self.rng.choice([value[:1], value, ["nope"], "x", [1]])
            elif roll < 0.5:
                out[f"$setElementOrder/{key}"] = sorted({*value, *(one for one in new if isinstance(one, str))}, reverse=True)
        if self.rng.random() < 0.05:
            out[key] = self.rng.choice([None, "x", {}, [], [None], [[]]])
        return out

    def item(self, item: Any, schema: Schema, merge_key: str | None, depth: int) -> list[Any]:
        roll = self.rng.random()
        if not isinstance(item, dict):
            return [item] if roll < 0.6 else []
        if roll < 0.3:
            return []
        changed = self.mapping(item, schema, depth + 1) if roll < 0.9 else copy.deepcopy(item)
        if merge_key in item and self.rng.random() < 0.9:
            changed[merge_key] = item[merge_key]
        if self.rng.random() < 0.2:
            kept = {merge_key: item.get(merge_key)} if merge_key else {}
            changed = {**kept, "$patch": self.rng.choice(["delete", "delete", "replace", "merge", "nope"])}
        return [changed]


def pointers(value: Any, at: str = "") -> list[str]:
    """The JSON pointers of all that is in a value, in order."""
    found = [at] if at else []
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        found += pointers(item, f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return found


def json_patch(editor: Editor, obj: dict[str, Any]) -> Any:
    """Operations on places that the object has, beside it, and in the margins of the syntax of pointers."""
    rng = editor.rng
    if rng.random() < 0.06:
        return rng.choice(
            [
                {},
                [],
                [{}],
                [{"op": "nope", "path": "/a"}],
                [{"op": "add"}],
                "x",
                [5],
                None,
                [{"path": "/metadata"}],
                [{"op": "add", "path": 5, "value": 1}],
                [{"op": 1, "path": "/a"}],
                [[]],
            ]
        )
    known = pointers({key: value for key, value in obj.items() if key not in ("status",)})
    return [_operation(editor, obj, known) for _ in range(rng.choice([1, 1, 2, 3, 4]))]


_TAILS = ("/-", "/0", "/-1", "/99", "/01", "/~1", "/~0", "/~2", "/", "/a~1b", "/1.5", "/+1", "//", "/x/y", "/ ", "/-2")
_VALUES = ("b", "", {"a": "b"}, {}, None, 3, True, ["x"], [], 1.5, [{"name": "x"}])


def _operation(editor: Editor, obj: dict[str, Any], known: list[str]) -> dict[str, Any]:
    rng = editor.rng
    out: dict[str, Any] = {
        "op": rng.choice(["add", "add", "replace", "replace", "remove", "remove", "test", "test", "copy", "move", "Add", ""])
    }
    if rng.random() < 0.8:
        out["op"] = rng.choice(["add", "replace", "remove", "test", "copy", "move"])
    out["path"] = _pointer(editor, known)
    if out["op"] in ("copy", "move"):
        out["from"] = _pointer(editor, known)
    if out["op"] in ("add", "replace", "test") or rng.random() < 0.1:
        roll = rng.random()
        if roll < 0.45:
            out["value"] = _at(obj, out["path"])
        elif roll < 0.95:
            out["value"] = copy.deepcopy(rng.choice(_VALUES))
    if rng.random() < 0.03:
        out.pop(rng.choice(sorted(out)))
    return out


def _pointer(editor: Editor, known: list[str]) -> str:
    rng = editor.rng
    roll, own, tail = rng.random(), rng.choice(known), rng.choice(_TAILS)
    if roll < 0.6:
        return str(own)
    if roll < 0.8:
        return f"{own}{tail}"
    return str(
        rng.choice(
            [
                "",
                "/",
                "/nope",
                "/metadata/labels/new",
                "/metadata/annotations/a.b~1c",
                "/metadata/annotations",
                "/spec/-",
                "nope",
                "/metadata/labels/a~1b",
                "/spec/nope/deep",
                "/metadata/finalizers/-",
            ]
        )
    )


def _at(obj: Any, pointer: str) -> Any:
    """What stands at a pointer; "z" if nothing does."""
    try:
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            obj = obj[int(name)] if isinstance(obj, list) else obj[name]
    except (KeyError, IndexError, TypeError, ValueError):
        return "z"
    return copy.deepcopy(obj)
