"""Draws values along a schema, and changes objects at places that their schemas know."""

from __future__ import annotations

import copy
from typing import Any

from tests.differential.generators.samples import Samples
from tests.differential.generators.schemas import NEW, Api, Place, Schema
from tests.differential.random_stories import Steady

TEXTS = (
    "", "x", "Not Valid!", "a" * 64, "a" * 254, "a/b", "a.b/c", "A_b", "é", "1", "-1", "0", "100m", "1Gi", "10%", "101%", "-5%", "10.0.0.1", "fd00::1", "10.0.0.0/8", "010.0.0.1",
    "http", "https://a.b", "2020-01-01T00:00:00Z", "nope", "True", "a.b", "a..b", "/x", "../x", "a b", "x,y", "*", "*.a.b", "kubernetes.io/x", "k8s.io/y", "\t", "-", "a-", "{}",
    "None", "default", "http://[::1]:80", "1.5", "0.5", "1e3", "5s", "1h",
)  # fmt: skip
NUMBERS = (-(2**31), -1, 0, 1, 2, 3, 7, 80, 100, 101, 255, 256, 3600, 65535, 65536, 2**31 - 1, 2**32, 2**63 - 1)
TIMES = (
    "2020-01-01T00:00:00Z",
    "2020-01-01T00:00:00.000001Z",
    "2020-01-01T00:00:00+02:00",
    "2020-01-01",
    "2099-01-01T00:00:00Z",
    "x",
    "",
)
BYTES = ("", "eA==", "x", "eA", "aGVsbG8=")
KEYS = (
    "a",
    "b.c/d",
    "app",
    "x y",
    "cpu",
    "memory",
    "example.com/r",
    "",
    "A_b",
    "hugepages-2Mi",
    "requests.cpu",
    "a" * 64,
    "kubernetes.io/x",
)
OF_NO_TYPE = (None, "", 0, True, [], {}, "x", [None], {"x": 1}, -1, 1.5)
_DEEPEST = 7


class Editor:
    """Draws with one source of chance, for the kinds of one API."""

    def __init__(self, rng: Steady, api: Api, samples: Samples) -> None:
        self.rng, self.api, self.samples = rng, api, samples

    def value(self, schema: Schema, key: str, depth: int = 0) -> Any:
        """A value for a field: mostly of its type, often one that was sent before, and now and then of no type at all."""
        rng, schema = self.rng, self.api.resolved(schema)
        roll = rng.random()
        if roll < 0.03:
            return copy.deepcopy(rng.choice(OF_NO_TYPE))
        if "oneOf" in schema or schema.get("format") == "int-or-string":
            return rng.choice([*TEXTS, *NUMBERS, *self.samples.values.get(key, ())])
        of = schema.get("type")
        if of == "string":
            return self._text(schema, key, roll)
        if of == "integer":
            own = [one for one in self.samples.values.get(key, ()) if isinstance(one, int)]
            return rng.choice(own) if own and roll < 0.4 else rng.choice(NUMBERS)
        if of == "number":
            return rng.choice([0, 1.5, -1, 1e10])
        if of == "boolean":
            return roll < 0.6
        if of == "array":
            items = [self.value(schema.get("items", {}), key, depth + 1) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]))]
            if len(items) >= 2 and rng.random() < 0.3:
                items[1] = copy.deepcopy(items[0])
            return items
        if of == "object" or "properties" in schema:
            return self._object(schema, key, depth)
        return rng.choice([None, "x", 1, {}, {"a": "b"}, [1]])

    def _text(self, schema: Schema, key: str, roll: float) -> str:
        if schema.get("format") == "date-time" and roll < 0.8:
            return str(self.rng.choice(TIMES))
        if schema.get("format") == "byte" and roll < 0.8:
            return str(self.rng.choice(BYTES))
        if schema.get("enum") and roll < 0.7:
            return str(self.rng.choice(schema["enum"]))
        own = [one for one in self.samples.values.get(key, ()) if isinstance(one, str)]
        return str(self.rng.choice(own if own and roll < 0.6 else TEXTS))

    def _object(self, schema: Schema, key: str, depth: int) -> dict[str, Any]:
        rng = self.rng
        if properties := schema.get("properties"):
            names = [name for name in schema.get("required", ()) if rng.random() < 0.92]
            if depth < _DEEPEST:
                names += [rng.choice(sorted(properties)) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
            return {name: self.value(properties.get(name, {}), name, depth + 1) for name in names}
        if "additionalProperties" in schema:
            return {
                rng.choice(KEYS): self.value(schema["additionalProperties"], key, depth + 1)
                for _ in range(rng.choice([0, 1, 1, 2]))
            }
        return rng.choice([{}, {"x": "y"}])

    def edited(self, obj: Any, schema: Schema, times: int = 1, within: tuple[str, ...] = ()) -> Any:
        """A copy of an object, changed so many times: only in these of its fields, if any are named."""
        obj = copy.deepcopy(obj)
        for _ in range(times):
            places = list(self.api.places(obj, schema))
            if within:
                places = [place for place in places if (*place[3], place[1])[0] in within] or places
            if not places:
                break
            there = [place for place in places if _is_set(place)]
            absent = [place for place in places if not _is_set(place)]
            self._change(self.rng.choice(there if there and self.rng.random() < 0.45 else absent or places))
        return obj

    def _change(self, place: Place) -> None:
        container, key, schema, path = place
        name = str(key) if isinstance(container, dict) else str(path[-1]) if path else ""
        roll, value, new = self.rng.random(), self.value(schema, name), self.rng.choice(["new", "a.b/c", "x y", "", "cpu"])
        if isinstance(container, list) and key == len(container):
            container.append(copy.deepcopy(container[-1]) if container and roll < 0.3 else value)
        elif roll < 0.25 and _is_set(place):
            del container[key]
        else:
            container[new if key == NEW else key] = value


def _is_set(place: Place) -> bool:
    container, key = place[:2]
    return key in container if isinstance(container, dict) else key < len(container)
