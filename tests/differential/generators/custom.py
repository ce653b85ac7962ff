"""Random stories of definitions: rules in CEL, and several versions whose objects are converted, applied and read."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from tests.differential.certificates import self_signed
from tests.differential.client import APPLY, JSON_PATCH, MERGE, TABLE, Client
from tests.differential.definitions import CRDS, DRY, definition, make, served
from tests.differential.generators.expressions import Expressions
from tests.differential.random_stories import Steady
from tests.differential.steps import listening

# fmt: off

Object = dict[str, Any]
STRING = {"type": "string", "maxLength": 40}

SPEC: Object = {
    "type": "object",
    "properties": {
        "name": STRING, "other": STRING, "size": {"type": "integer", "minimum": -5, "maximum": 100}, "ratio": {"type": "number"}, "flag": {"type": "boolean"},
        "tags": {"type": "array", "maxItems": 6, "items": STRING, "x-kubernetes-list-type": "set"},
        "options": {"type": "object", "maxProperties": 6, "additionalProperties": STRING},
        "port": {"x-kubernetes-int-or-string": True},
        "since": {"type": "string", "format": "date-time"}, "lasts": {"type": "string", "format": "duration"},
        "parts": {"type": "array", "maxItems": 4, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                  "items": {"type": "object", "required": ["id"], "properties": {"id": STRING, "count": {"type": "integer", "default": 1}}}},
    },
}
OF_SPEC = {
    "bool": ["self.flag"], "int": ["self.size", "self.size", "int(self.ratio)", "self.parts[0].count"], "string": ["self.name", "self.name", "self.other", "self.tags[0]", "self.parts[0].id", "string(self.port)"],
    "list": ["self.tags", "self.tags", "self.parts.map(p, p.id)"], "map": ["self.options"], "any": ["self.name", "self.size", "self.other", "self.flag", "self.tags", "self.port", "self.since", "self.lasts", "self.options", "self.parts", "oldSelf.name", "self.nope"],
}
OF_UPDATES = {**OF_SPEC, "int": [*OF_SPEC["int"], "oldSelf.size"], "string": [*OF_SPEC["string"], "oldSelf.name"], "list": [*OF_SPEC["list"], "oldSelf.tags"]}


def values(rng: Steady) -> Object:
    """A spec that the schema allows, mostly."""
    whole: Object = {
        "name": rng.choice(["a", "abc", "", "10.0.0.1", "a-b-c", "1Gi", "x" * 41]), "other": rng.choice(["a", "b", "abc", "42", "5s"]), "size": rng.choice([0, 1, 5, 100, -1, 101, "x"] if rng.random() < 0.3 else [0, 1, 5]),
        "ratio": rng.choice([0.5, 1, 2.0]), "flag": rng.random() < 0.5, "tags": rng.choice([["a", "b"], [], ["a"], ["a", "a"], ["b", "a", "c"]]), "options": rng.choice([{}, {"a": "b"}, {"a": "1", "b": "2"}]),
        "port": rng.choice([80, "http", "80"]), "since": rng.choice(["2020-01-01T00:00:00Z", "x", "2020-01-01T00:00:00.5+02:00"]), "lasts": rng.choice(["5s", "1h", "x"]),
        "parts": rng.choice([[{"id": "a"}], [{"id": "a", "count": 2}, {"id": "b"}], [{"id": "a"}, {"id": "a"}], []]),
    }
    return {key: value for key, value in whole.items() if rng.random() < 0.8}


def rule(rng: Steady, names: dict[str, list[str]] | None = None) -> Object:
    """A validation rule with whatever may stand beside it."""
    drawn = Expressions(rng, names or (OF_UPDATES if rng.random() < 0.4 else OF_SPEC))
    out: Object = {"rule": drawn.of("bool")}
    if rng.random() < 0.3:
        out["message"] = rng.choice(["it is wrong", "", "two\nlines", " ", "é"])
    if rng.random() < 0.35:
        out["messageExpression"] = drawn.of("string") if rng.random() < 0.9 else drawn.of("int")
    if rng.random() < 0.25:
        out["reason"] = rng.choice(["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate", "Nope"])
    if rng.random() < 0.25:
        out["fieldPath"] = rng.choice([".name", ".tags", ".options['a']", ".options.a", ".nope", "name", ".parts[0]", ".parts", "", ".", ".size"])
    if rng.random() < 0.15:
        out["optionalOldSelf"] = rng.random() < 0.5
        if rng.random() < 0.5:
            out["rule"] = f"oldSelf.hasValue() ? oldSelf.value().size == self.size : {out['rule']}"
    return out


def tell_rules(client: Client, rng: Steady) -> None:
    """Rules on a spec, its lists and its maps: refused definitions, and objects that keep or break the rules of the others."""
    body = definition(client, {"type": "object", "properties": {"spec": dict(SPEC)}})
    schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    kept: list[Object] = []
    for _ in range(12):
        one = rule(rng)
        schema["x-kubernetes-validations"] = [one]
        if client.post(CRDS, body, DRY).status == 201 and len(kept) < 4:
            kept.append(one)
    schema["x-kubernetes-validations"] = kept
    with served(client, body) as path:
        for number in range(10):
            name = f"o{number % 4}"
            obj = make(body, name, spec=values(rng))
            reply = client.post(path, obj)
            if reply.status == 409:
                client.put(f"{path}/{name}", {**obj, "metadata": {"name": name, "resourceVersion": client.get(f"{path}/{name}", silent=True).rv}})
            if reply.status == 201:
                client.patch(f"{path}/{name}", {"spec": values(rng)}, MERGE)
                client.patch(f"{path}/{name}", {**obj, "spec": values(rng)}, APPLY, {"fieldManager": "m", "force": "true"})


def _version(name: str, rng: Steady, storage: bool) -> Object:
    """A version that knows some of the fields, with defaults and columns of its own."""
    properties = {key: value for key, value in SPEC["properties"].items() if key == "name" or rng.random() < 0.7}
    if "size" in properties and rng.random() < 0.5:
        properties["size"] = {"type": "integer", "default": rng.choice([1, 2, 3])}
    spec: Object = {"type": "object", "properties": properties}
    if rng.random() < 0.3:
        spec["required"] = [rng.choice(sorted(properties))]
    if rng.random() < 0.2:
        spec["x-kubernetes-preserve-unknown-fields"] = True
    if rng.random() < 0.2:
        spec["x-kubernetes-validations"] = [{"rule": "!has(self.name) || self.name != 'bad'"}]
    if rng.random() < 0.3 and "tags" in properties:
        properties["tags"] = {**properties["tags"], "x-kubernetes-list-type": rng.choice(["atomic", "set"])}
    out: Object = {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}
    if rng.random() < 0.5:
        out["subresources"] = {"status": {}, **({"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", **({"labelSelectorPath": ".status.selector"} if rng.random() < 0.5 else {})}} if rng.random() < 0.6 else {})}
    if rng.random() < 0.4:
        out["additionalPrinterColumns"] = [{"name": "Name", "type": rng.choice(["string", "integer", "date"]), "jsonPath": rng.choice([".spec.name", ".spec.tags", ".spec.parts[*].id", ".metadata.labels.a"])}]
    if rng.random() < 0.3:
        out["selectableFields"] = [{"jsonPath": ".spec.name"}]
    if rng.random() < 0.2:
        out |= {"deprecated": True, **({"deprecationWarning": "use another"} if rng.random() < 0.5 else {})}
    return out


@contextlib.contextmanager
def _versions(client: Client, rng: Steady, versions: list[Object]) -> Iterator[Object]:
    """A definition of these versions; half of them are converted by a webhook that moves `other` to `name`."""
    body = definition(client, None, preserveUnknownFields=False)
    body["spec"]["versions"] = versions
    if rng.random() < 0.5:
        yield body
        return

    def answer(request: Any) -> tuple[int, dict[str, str], bytes]:

        review = json.loads(request.body)
        wanted = review["request"]["desiredAPIVersion"]
        converted = []
        for one in review["request"]["objects"]:
            spec = one.get("spec") if isinstance(one.get("spec"), dict) else None
            if spec is not None and wanted.endswith("v2") and "other" in spec:
                spec["name"] = spec.pop("other")
            elif spec is not None and "name" in spec:
                spec["other"] = spec.pop("name")
            converted.append({**one, "apiVersion": wanted})
        response = {"uid": review["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": converted}
        return 200, {}, json.dumps({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}).encode()

    with listening(client, answer) as (port, _):
        body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": f"https://127.0.0.1:{port}/convert", "caBundle": self_signed()[1]}}}
        yield body


def tell_versions(client: Client, rng: Steady) -> None:
    """Objects written by several managers in several versions, and read in each."""
    names = ["v1", "v2", "v1beta1"][: 2 + (rng.random() < 0.4)]
    stored = rng.choice(names)
    versions = [_version(name, rng, name == stored) for name in names]
    with _versions(client, rng, versions) as body, served(client, body) as path:
        places = {name: path.replace(f"/{path.split('/')[3]}/", f"/{name}/") for name in names}
        for _ in range(14):
            name, at = rng.choice(["one", "two"]), rng.choice(names)
            own = f"{places[at]}/{name}"
            obj = make(body, name, at, spec=values(rng))
            if rng.random() < 0.3:
                obj["metadata"]["labels"] = {"a": rng.choice("xyz")}
            query: Object = {"fieldManager": rng.choice(["m1", "m2"])}
            if rng.random() < 0.15:
                query["fieldValidation"] = rng.choice(["Strict", "Warn"])
            roll = rng.random()
            if roll < 0.4:
                client.patch(own, obj, APPLY, {**query, **({"force": "true"} if rng.random() < 0.5 else {})})
            elif roll < 0.5:
                client.post(places[at], obj, query)
            elif roll < 0.62:
                current = client.get(own, silent=True)
                client.put(own, {**obj, "metadata": {**obj["metadata"], "resourceVersion": current.rv}}, query)
            elif roll < 0.75:
                client.patch(own, {"spec": values(rng)}, MERGE, query)
            elif roll < 0.8:
                client.patch(own, [{"op": rng.choice(["add", "replace", "test", "remove"]), "path": rng.choice(["/spec/name", "/spec/tags/-", "/spec/tags/0", "/spec/options/a~1b", "/metadata/labels", "/apiVersion", "/spec"]), "value": rng.choice(["x", {}, ["a"], 5])}], JSON_PATCH, query)
            elif roll < 0.86:
                client.patch(f"{own}/scale", {"spec": {"replicas": rng.choice([1, 7, -1, "x"])}}, MERGE, query)
                client.get(f"{own}/scale")
            elif roll < 0.92:
                client.patch(f"{own}/status", {"status": rng.choice([{"replicas": 2}, {"selector": "a=b", "replicas": 1}, {"x": 1}, "x"])}, MERGE, query)
            else:
                client.patch(own, {"metadata": {"managedFields": rng.choice([[], [{}]])}}, MERGE, query)
            client.get(f"{places[rng.choice(names)]}/{name}")
        for at in names:
            client.get(places[at], headers={"Accept": TABLE})
            client.get(places[at], {"fieldSelector": rng.choice(["spec.name=a", "metadata.name=one", "spec.other=a"])})
