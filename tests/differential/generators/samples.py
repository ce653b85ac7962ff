"""What random edits start from: the valid objects and the values of all requests that were recorded."""

from __future__ import annotations

import copy
import functools
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.differential.generators.schemas import Kind, api_of

FIXTURES = Path(__file__).parents[3] / "fixtures"
_LONGEST_OBJECT, _LONGEST_VALUE = 6000, 80
NAMESPACE = "{ns}"
"""Stands for the namespace of a story in an object."""
_OWN_NAMES = ("CustomResourceDefinition", "APIService", "IPAddress")
"""Kinds whose names say something of the rest of the object."""


@dataclass(slots=True)
class Samples:
    """Valid objects by kind, no two of the same shape, and the values that each field was sent with."""

    objects: dict[Kind, list[Any]] = field(default_factory=lambda: defaultdict(list))
    values: dict[str, list[Any]] = field(default_factory=dict)


@functools.cache
def samples_of(minor: str, everything: bool = False) -> Samples:
    """The samples for the kinds of a minor (`schemas.api_of`)."""
    api, found = api_of(minor, everything), Samples()
    places = {kind.collection: kind for kind in api.kinds}
    shapes: set[str] = set()
    values: dict[str, set[Any]] = defaultdict(set)
    for path, body, created in _requests():
        _learn(body, values)
        kind = places.get(re.sub(r"/namespaces/[^/]+/", "/namespaces/{namespace}/", path))
        if not created or not kind or not isinstance(body.get("metadata"), dict):
            continue
        shape = f"{kind} {json.dumps(_shape(body))}"
        if len(json.dumps(body)) <= _LONGEST_OBJECT and shape not in shapes:
            shapes.add(shape)
            found.objects[kind].append(
                {**body, "metadata": {k: v for k, v in body["metadata"].items() if k != "resourceVersion"}}
            )
    found.values = {key: sorted(them, key=lambda one: (str(type(one)), str(one))) for key, them in values.items()}
    return found


def _requests() -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yields path and body of every recorded POST and PUT of an object, and whether it made one."""
    for path in sorted(FIXTURES.glob("kinds/*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            method, place, body = (*row.get("do", ()), None, None, None)[:3]
            if isinstance(body, dict):
                made = method == "POST" and row.get("code") == 201
                yield place.replace("$NS", "ns"), json.loads(json.dumps(body).replace("$NS", NAMESPACE)), made
    for path in sorted(FIXTURES.glob("recorded/**/*.json.gz")):
        if "life" in path.parts or path.name.startswith("random"):
            continue
        with gzip.open(path) as file:
            transcripts = json.load(file)
        for exchange in (one for exchanges in transcripts.values() for one in exchanges):
            request = exchange["request"]
            if isinstance(request.get("body"), dict) and request["method"] in ("POST", "PUT"):
                body = json.loads(json.dumps(request["body"]).replace("d-00000000", NAMESPACE))
                yield request["path"], body, request["method"] == "POST" and exchange["status"] == 201


def _learn(value: Any, values: dict[str, set[Any]], key: str = "") -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            _learn(item, values, name)
    elif isinstance(value, list):
        for item in value[:4]:
            _learn(item, values, key)
    elif isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) < _LONGEST_VALUE:
        values[key].add(value)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in sorted(value.items()) if key not in ("labels", "annotations")}
    return [_shape(item) for item in value[:2]] if isinstance(value, list) else 0


def named(body: dict[str, Any], kind: Kind, name: str, client: Any) -> dict[str, Any]:
    """A copy of an object for one story: with its name, namespace, version and kind."""
    body = copy.deepcopy(body)
    metadata = body.setdefault("metadata", {})
    if isinstance(metadata, dict):
        metadata.pop("namespace", None)
        if kind.name not in _OWN_NAMES:
            metadata.pop("generateName", None)
            metadata["name"] = name if kind.namespaced else client.name(name)
    body |= {"apiVersion": kind.api_version, "kind": kind.name}
    text = json.dumps(body).replace(NAMESPACE, client.ns).replace("g00000000", f"g{client.id}")
    filled: dict[str, Any] = json.loads(text)
    return filled
