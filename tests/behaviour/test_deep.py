"""Objects nested thousands of levels deep are supported, up to the maximum depth of JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

GROUP = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REVISIONS = "apps/v1"
MERGE, JSON_PATCH, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
ANYTHING = '{"type":"object","x-kubernetes-preserve-unknown-fields":true}'
DEPTH = 1000
TOO_DEEP = "invalid character '{' exceeded max depth"


def nested(before: str, core: str, after: str, depth: int = DEPTH) -> str:
    return before * depth + core + after * depth


def deep(core: str = "1", depth: int = DEPTH) -> str:
    return nested('{"a":', core, "}", depth)


class Kind:
    """A definition of one's own, whose schema is given as text, and its resource."""

    def __init__(self, api: Any, schema: str) -> None:
        self._api = api
        self._group = f"{api.name('deep')}.example.com"
        self.definition = f"{GROUP}/things.{self._group}"
        self.things = f"/apis/{self._group}/v1/things"
        names = '{"plural":"things","kind":"Thing"}'
        version = f'{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}'
        spec = f'{{"group":"{self._group}","scope":"Cluster","names":{names},"versions":[{version}]}}'
        self.made = api.post(GROUP, f'{{"metadata":{{"name":"things.{self._group}"}},"spec":{spec}}}')

    def until_served(self) -> None:
        assert self.made.status == 201, self.made.body[:1000]
        end = time.monotonic() + 60
        while self._api.get(self.things).status != 200:
            assert time.monotonic() < end

    def thing(self, spec: str, name: str = "one", **more: str) -> str:
        members = "".join(f',"{key}":{value}' for key, value in more.items())
        return f'{{"apiVersion":"{self._group}/v1","kind":"Thing","metadata":{{"name":"{name}"{members}}},"spec":{spec}}}'


@pytest.fixture
def define(api) -> Iterator[Callable[[str], Kind]]:
    kinds = []

    def made(schema: str) -> Kind:
        kinds.append(Kind(api, schema))
        return kinds[-1]

    yield made
    for kind in kinds:
        api.delete(kind.definition)


@pytest.fixture
def kind(define) -> Kind:
    """A kind that takes anything."""
    kind = define(ANYTHING)
    kind.until_served()
    return kind


@pytest.mark.parametrize("depth", [300, 9_990])
def test_deeply_nested_object_is_stored_and_read(api, kind: Kind, depth: int) -> None:
    made = api.post(kind.things, kind.thing(deep(depth=depth)), "fieldValidation=Strict")
    assert (made.status, deep(depth=depth).encode() in made.body) == (201, True)
    one = f"{kind.things}/one"
    assert api.get(one).body == made.body
    assert deep(depth=depth).encode() in api.get(kind.things).body
    assert api.get(kind.things, headers={"Accept": TABLE}).status == 200
    assert b'"type":"ADDED"' in api.get(kind.things, "watch=1", lines=1).body
    assert api.delete(one).status == 200


def test_deeply_nested_object_is_written_as_pretty_json_and_yaml(api, kind: Kind) -> None:
    api.post(kind.things, kind.thing(deep()))
    shown = api.get(f"{kind.things}/one", "pretty=1").body
    assert b"\n" + b"  " * (DEPTH + 1) + b'"a": 1\n' in shown
    shown = api.get(f"{kind.things}/one", headers={"Accept": "application/yaml"}).body
    assert b"\n" + b"  " * DEPTH + b"a: 1\n" in shown


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (f'{{"spec":{deep("2")}}}', MERGE),
        (f'[{{"op":"replace","path":"/spec{"/a" * DEPTH}","value":2}}]', JSON_PATCH),
        (f'[{{"op":"add","path":"/spec","value":{deep("2")}}}]', JSON_PATCH),
    ],
)
def test_deeply_nested_object_can_be_patched(api, kind: Kind, body: str, content_type: str) -> None:
    api.post(kind.things, kind.thing(deep()))
    changed = api.patch(f"{kind.things}/one", body, content_type)
    assert (changed.status, deep("2").encode() in changed.body) == (200, True)
    labelled = api.patch(f"{kind.things}/one", '{"metadata":{"labels":{"a":"b"}}}', MERGE)
    assert (labelled.status, deep("2").encode() in labelled.body) == (200, True)


def test_json_patch_copies_increase_the_depth(api, kind: Kind) -> None:
    api.post(kind.things, kind.thing(deep(depth=100)))
    copies = [{"op": "copy", "from": "/spec", "path": "/spec" + "/a" * 100 * 2**number} for number in range(4)]
    changed = api.patch(f"{kind.things}/one", json.dumps(copies), JSON_PATCH)
    assert (changed.status, deep(depth=1600).encode() in changed.body) == (200, True)


def test_deeply_nested_object_can_be_applied(api, kind: Kind) -> None:
    applied = api.patch(f"{kind.things}/one", kind.thing(deep()), APPLY, "fieldManager=first")
    assert (applied.status, applied.body.count(b'"f:a"')) == (201, DEPTH)
    refused = api.patch(f"{kind.things}/one", kind.thing(deep("2")), APPLY, "fieldManager=second")
    assert refused.status == 409
    assert b'conflict with \\"first\\": .spec' + b".a" * DEPTH in refused.body
    forced = api.patch(f"{kind.things}/one", kind.thing(deep("2")), APPLY, "fieldManager=second&force=true")
    assert (forced.status, deep("2").encode() in forced.body) == (200, True)


@pytest.mark.parametrize(
    "spec",
    [
        "\n" + "".join(f"{' ' * level}a:\n" for level in range(1, DEPTH)) + " " * DEPTH + "a: 1\n",
        " " + deep(),
        "\n " + "- " * DEPTH + "1\n",
    ],
    ids=["block", "flow", "sequence"],
)
def test_deeply_nested_yaml_is_accepted(api, kind: Kind, spec: str) -> None:
    head = kind.thing("SPEC").removesuffix('"spec":SPEC}')
    made = api.post(kind.things, json_to_lines(head) + f"spec:{spec}", content_type="application/yaml")
    core = nested("[", "1", "]") if "- " in spec else deep()
    assert (made.status, core.encode() in made.body) == (201, True)


def json_to_lines(head: str) -> str:
    """The members of an object that is cut off behind one of them, a line each."""
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in json.loads(head.removesuffix(",") + "}").items())


def test_exceeding_the_maximum_json_depth_is_rejected(api, kind: Kind) -> None:
    refused = api.post(kind.things, kind.thing(deep(depth=10_000)))
    assert (refused.status, TOO_DEEP in refused.at("message")) == (400, True)
    refused = api.patch(f"{kind.things}/one", kind.thing(deep(depth=10_000)), APPLY, "fieldManager=first")
    assert (refused.status, refused.at("message")) == (
        400,
        "error decoding patch: error converting YAML to JSON: yaml: exceeded max depth of 10000",
    )
    assert api.get(f"{kind.things}/one").status == 404


PROPERTIES = nested('{"type":"object","properties":{"a":', '{"type":"string"}', "}}")
NOTS = nested('{"not":', "{}", "}")
DEFAULT = f'{{"type":"object","properties":{{"spec":{{"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{deep()}}}}}}}'


@pytest.mark.parametrize(
    "schema",
    [PROPERTIES, DEFAULT, f'{{"type":"object","not":{NOTS}}}', f'{{"type":"object","example":{deep()}}}'],
    ids=["properties", "default", "not", "example"],
)
def test_deeply_nested_crd_schemas_are_accepted(api, define, schema: str) -> None:
    kind = define(schema)
    assert kind.made.status == 201, kind.made.body[:1000]
    assert api.get(kind.definition).status == 200


def test_custom_resources_of_deeply_nested_schemas(api, define) -> None:
    depth = DEPTH // 2
    properties = nested('{"type":"object","properties":{"a":', '{"type":"string"}', "}}", depth)
    kind = define(f'{{"type":"object","properties":{{"spec":{properties}}}}}')
    kind.until_served()
    made = api.post(kind.things, kind.thing(deep('"x"', depth)))
    assert (made.status, deep('"x"', depth).encode() in made.body) == (201, True)
    refused = api.post(kind.things, kind.thing(deep(depth=depth), "two"))
    assert (refused.status, b": Invalid value" in refused.body) == (422, True)
    assert b"spec" + b".a" * depth in refused.body
    pruned = api.post(kind.things, kind.thing(nested('{"b":', "1", "}", depth), "three"))
    assert (pruned.status, pruned.at("spec")) == (201, {})
    assert api.get("/openapi/v3" + kind.things.removesuffix("/things")).status == 200


def test_deeply_nested_controller_revision_data(api) -> None:
    path = api.path("controllerrevisions", group=REVISIONS)
    made = api.post(path, f'{{"metadata":{{"name":"c"}},"revision":1,"data":{deep()}}}')
    assert (made.status, deep().encode() in made.body) == (201, True)
    assert deep().encode() in api.get(f"{path}/c", headers={"Accept": "application/vnd.kubernetes.protobuf"}).body
    applied = api.patch(
        f"{path}/c",
        f'{{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{{"name":"c"}},"revision":1,"data":{deep()}}}',
        APPLY,
        "fieldManager=m&force=true",
    )
    assert applied.status == 200
    refused = api.patch(f"{path}/c", f'{{"data":{deep("2")}}}', MERGE)
    assert (refused.status, b"field is immutable" in refused.body) == (422, True)


def test_deeply_nested_unknown_fields_are_ignored_or_reported(api) -> None:
    path = api.path("configmaps")
    assert api.post(path, f'{{"metadata":{{"name":"m"}},"unknown":{deep()}}}').status == 201
    refused = api.post(path, f'{{"metadata":{{"name":"n"}},"unknown":{deep()}}}', "fieldValidation=Strict")
    assert (refused.status, 'unknown field "unknown"' in refused.at("message")) == (400, True)
    assert api.patch(f"{path}/m", f'{{"unknown":{deep()}}}', MERGE).status == 200
    refused = api.post(path, f'{{"metadata":{{"name":"n","labels":{deep()}}}}}')
    assert (
        refused.status,
        "cannot unmarshal object into Go struct field ObjectMeta.metadata.labels of type string" in refused.at("message"),
    ) == (400, True)
    assert api.delete(f"{path}/m", f'{{"kind":"DeleteOptions","apiVersion":"v1","unknown":{deep()}}}').status == 200


def test_deeply_nested_managed_fields(api) -> None:
    path = api.path("configmaps")
    api.post(path, {"metadata": {"name": "m"}})
    fields = nested('{"f:a":', "{}", "}")
    entry = f'{{"manager":"z","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}'
    changed = api.patch(f"{path}/m", f'{{"metadata":{{"managedFields":[{entry}]}}}}', MERGE)
    assert (changed.status, fields.encode() in changed.body) == (200, True)
    assert fields.encode() in api.patch(f"{path}/m", '{"data":{"k":"v"}}', MERGE).body
