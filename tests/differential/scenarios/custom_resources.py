"""Custom resources: validation, pruning, defaulting, versions, subresources, patches, apply, tables, selectors, watches."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.differential import pacing
from tests.differential.client import APPLY, JSON_PATCH, MERGE, PARTIAL, PARTIAL_LIST, STRATEGIC, TABLE, Client
from tests.differential.definitions import ANY, CRDS, DRY, definition, make, obj, served, where
from tests.differential.pacing import until
from tests.differential.registry import scenario

STRING: dict[str, Any] = {"type": "string"}
INT: dict[str, Any] = {"type": "integer"}
DROP = "x-kubernetes-preserve-unknown-fields"
SCALE = {
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
}


def of_spec(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return obj({"spec": obj(properties, **more), "status": ANY})


def tries(client: Client, body: dict[str, Any], path: str, *specs: Any, **query: Any) -> None:
    """What the server says about creating a resource with each of these specs, without doing it."""
    for spec in specs:
        client.post(path, make(body, spec=spec), {**DRY, **query})


def check(client: Client, properties: dict[str, Any], *specs: Any) -> None:
    body = definition(client, of_spec(properties))
    with served(client, body) as path:
        tries(client, body, path, *specs)


def redefine(client: Client, body: dict[str, Any], seen: Callable[[], bool], **spec: Any) -> None:
    """Change the definition and wait until its resource behaves accordingly."""
    client.patch(f"{CRDS}/{body['metadata']['name']}", {"spec": spec}, MERGE, silent=True)
    until(seen)
    pacing.sleep(0.1)


# ---------------------------------------------------------------- validation by schema


@scenario
def types_are_checked(client: Client) -> None:
    """Every wrong type in every typed field; numbers that are whole count as integers."""
    fields = {
        "s": STRING,
        "i": INT,
        "n": {"type": "number"},
        "b": {"type": "boolean"},
        "a": {"type": "array", "items": STRING},
        "o": obj({"x": STRING}),
    }
    values = ["text", 3, 3.0, 3.5, True, ["x"], {"x": "y"}, None]
    check(client, fields, *({f: v} for f in fields for v in values))


@scenario
def strings_are_checked(client: Client) -> None:
    """minLength, maxLength (in characters), pattern (unanchored), enum."""
    check(
        client,
        {
            "lo": {"type": "string", "minLength": 2},
            "hi": {"type": "string", "maxLength": 3},
            "p": {"type": "string", "pattern": "b+"},
            "q": {"type": "string", "pattern": "^[a-z]+$"},
            "e": {"type": "string", "enum": ["a", "b"]},
            "all": {"type": "string", "minLength": 4, "maxLength": 5, "pattern": "^x", "enum": ["xxxx"]},
        },
        {"lo": "a"},
        {"lo": ""},
        {"lo": "ab"},
        {"hi": "abcd"},
        {"hi": "äöü"},
        {"hi": "äöüß"},
        {"p": "abc"},
        {"p": "ac"},
        {"q": "abc\n"},
        {"q": ""},
        {"e": "c"},
        {"e": ""},
        {"e": "A"},
        {"all": "a"},
        {"all": "toolong"},
        {"all": "xxxx"},
        {"hi": "😀😀😀"},
        {"hi": "😀😀😀😀"},
    )


@scenario
def formats_are_checked(client: Client) -> None:
    """Every string format with right and wrong values."""
    values = {
        "date": ["2024-02-30", "2024-02-29", "24-1-1"],
        "date-time": ["2024-01-01T00:00:00Z", "2024-01-01", "2024-01-01T00:00:00.123+02:00"],
        "byte": ["aGk=", "a", "!!"],
        "ipv4": ["1.2.3.4", "1.2.3", "::1", "01.2.3.4"],
        "ipv6": ["::1", "1.2.3.4", "g::"],
        "cidr": ["10.0.0.0/8", "10.0.0.0", "10.0.0.0/33"],
        "mac": ["00:11:22:33:44:55", "00:11", "0011.2233.4455"],
        "uuid": ["0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5bd9cb469fa16570867728950e", "x"],
        "uuid4": ["0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5b-d9cb-169f-a165-70867728950e"],
        "duration": ["1h", "1d", "1 day", "P1D", "-1s", "1.5h"],
        "email": ["a@b.c", "a", "A <a@b.c>"],
        "hostname": ["a.b", "a_b", "-a"],
        "uri": ["http://x", "x", "/a/b", ""],
        "hexcolor": ["#fff", "fff", "#ggg"],
        "rgbcolor": ["rgb(1,2,3)", "rgb(1,2)"],
        "isbn": ["9780306406157", "123"],
        "isbn10": ["0306406152", "0306406153"],
        "creditcard": ["4111111111111111", "4111"],
        "ssn": ["111-22-3333", "1"],
        "bsonobjectid": ["507f1f77bcf86cd799439011", "x"],
        "datetime": ["2024-01-01T00:00:00Z", "x"],
        "password": ["x"],
        "nosuch": ["x"],
        "k8s-short-name": ["abc", "A"],
        "k8s-long-name": ["a.b", "a_b"],
        "uuid3": ["x"],
        "isbn13": ["978-0306406157"],
    }
    check(
        client,
        {f.replace("-", "_"): {"type": "string", "format": f} for f in values},
        *({f.replace("-", "_"): v} for f, vs in values.items() for v in vs),
    )


@scenario
def numbers_are_checked(client: Client) -> None:
    """minimum, maximum, exclusive bounds, multipleOf, int32 and int64, floats."""
    num = {"type": "number"}
    check(
        client,
        {
            "lo": {**INT, "minimum": 2},
            "hi": {**INT, "maximum": 9},
            "xlo": {**INT, "minimum": 2, "exclusiveMinimum": True},
            "xhi": {**num, "maximum": 9.5, "exclusiveMaximum": True},
            "m": {**INT, "multipleOf": 3},
            "mf": {**num, "multipleOf": 0.1},
            "i32": {**INT, "format": "int32"},
            "i64": {**INT, "format": "int64"},
            "f": {**num, "format": "float"},
            "d": {**num, "format": "double"},
            "e": {**INT, "enum": [1, 2]},
            "n": num,
            "i": INT,
        },
        {"lo": 1},
        {"lo": 2},
        {"hi": 10},
        {"xlo": 2},
        {"xlo": 3},
        {"xhi": 9.5},
        {"xhi": 9.4},
        {"m": 4},
        {"m": 6},
        {"m": 0},
        {"mf": 0.3},
        {"mf": 0.35},
        {"i32": 2**31},
        {"i32": 2**31 - 1},
        {"i32": -(2**31) - 1},
        {"i64": 2**63 - 1},
        {"i64": 2**63},
        {"f": 1e39},
        {"d": 1e300},
        {"e": 3},
        {"e": 1.0},
        {"n": -0.0},
        {"n": 1e21},
        {"n": 100000000000000000000},
        {"i": 1e3},
        {"i": 2**53 + 1},
        {"i": 12345678901234567890},
        {"n": 0.1},
    )
    body = definition(client, of_spec({"n": num, "i": INT}), plural="gadgets", kind="Gadget")
    with served(client, body) as path:
        for text in ("1.0", "1.50", "1e2", "1E400", "-0", "0x1", "01", "1.", "NaN"):
            client.post(path, json.dumps(make(body, spec={"n": 7, "i": 7})).replace('"n": 7', f'"n": {text}'), DRY)
            client.post(path, json.dumps(make(body, spec={"n": 7, "i": 7})).replace('"i": 7', f'"i": {text}'), DRY)


@scenario
def arrays_are_checked(client: Client) -> None:
    """minItems, maxItems, items, and the uniqueness that sets and maps ask for."""
    item = obj({"k": STRING, "n": {**INT, "default": 1}, "v": STRING}, required=["k"])
    check(
        client,
        {
            "lo": {"type": "array", "items": STRING, "minItems": 2},
            "hi": {"type": "array", "items": INT, "maxItems": 2},
            "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
            "iset": {"type": "array", "items": {"type": "number"}, "x-kubernetes-list-type": "set"},
            "map": {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "n"]},
            "oset": {
                "type": "array",
                "items": obj({"a": STRING}, **{"x-kubernetes-map-type": "atomic"}),
                "x-kubernetes-list-type": "set",
            },
            "nested": {"type": "array", "items": {"type": "array", "items": INT, "maxItems": 1}},
        },
        {"lo": ["a"]},
        {"lo": []},
        {"hi": [1, 2, 3]},
        {"hi": [1, "x"]},
        {"hi": ["x", "y", "z"]},
        {"set": ["a", "b"]},
        {"set": ["a", "b", "a", "b", "a"]},
        {"iset": [1, 1.0]},
        {"iset": [1, 2, 1]},
        {"map": [{"k": "a"}, {"k": "b"}]},
        {"map": [{"k": "a"}, {"k": "a", "n": 1}]},
        {"map": [{"k": "a", "n": 2}, {"k": "a"}]},
        {"map": [{"n": 1}]},
        {"map": [{"k": "a"}, {"k": "a"}, {"k": "a"}]},
        {"oset": [{"a": "x"}, {"a": "x"}]},
        {"oset": [{}, {"a": "x"}]},
        {"nested": [[1, 2], ["x"], 3]},
        {"lo": [None, "a"]},
        {"map": [None]},
        {"set": [1]},
    )


@scenario
def objects_are_checked(client: Client) -> None:
    """required, minProperties, maxProperties, additionalProperties."""
    check(
        client,
        {
            "r": obj({"a": STRING, "b": STRING}, required=["a", "b"]),
            "one": obj({"a": STRING}, required=["a"]),
            "lo": obj(additionalProperties=INT, minProperties=1),
            "hi": obj(additionalProperties=STRING, maxProperties=1),
            "deep": obj(additionalProperties=obj({"x": {**INT, "maximum": 1}}, required=["x"])),
        },
        {"one": {}},
        {"one": {"a": None}},
        {"one": {"a": ""}},
        {"r": {"a": "x"}},
        {"lo": {}},
        {"lo": {"k": "s"}},
        {"hi": {"a": "1", "b": "2"}},
        {"hi": {"a": None}},
        {"deep": {"k": {}}},
        {"deep": {"k.l/m": {"x": 2}}},
        {"deep": {"k": None}},
        {"deep": {"": {"x": 1}}},
        {"lo": {"k": None}},
        {"one": None},
        {"one": []},
    )


@scenario
def logic_is_checked(client: Client) -> None:
    """oneOf, anyOf, allOf and not, in values and around required."""
    check(
        client,
        {
            "one": {**STRING, "oneOf": [{"minLength": 3}, {"pattern": "^a"}]},
            "any": {**STRING, "anyOf": [{"minLength": 3}, {"pattern": "^a"}]},
            "all": {**STRING, "allOf": [{"minLength": 3}, {"pattern": "^a"}]},
            "no": {**STRING, "not": {"pattern": "^a"}},
            "req": obj({"a": STRING, "b": STRING}, oneOf=[{"required": ["a"]}, {"required": ["b"]}]),
            "dep": obj({"a": STRING, "b": STRING}, anyOf=[{"not": {"required": ["a"]}}, {"required": ["b"]}]),
        },
        {"one": "abc"},
        {"one": "b"},
        {"one": "a"},
        {"any": "b"},
        {"any": "abc"},
        {"all": "b"},
        {"all": "ab"},
        {"no": "a"},
        {"no": "b"},
        {"req": {}},
        {"req": {"a": "x", "b": "y"}},
        {"req": {"b": "y"}},
        {"dep": {"a": "x"}},
        {"dep": {"a": "x", "b": "y"}},
    )


@scenario
def int_or_string_values(client: Client) -> None:
    """Both kinds pass; patterns only bind strings and bounds only numbers."""
    key = "x-kubernetes-int-or-string"
    check(
        client,
        {
            "p": {key: True},
            "a": {key: True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "q": {key: True, "pattern": "^[0-9]+%$", "maximum": 5},
        },
        {"p": 1},
        {"p": "x"},
        {"p": 1.5},
        {"p": True},
        {"p": None},
        {"p": []},
        {"a": 2},
        {"a": "2"},
        {"a": {}},
        {"q": 6},
        {"q": 5},
        {"q": "x"},
        {"q": "6%"},
    )


@scenario
def null_is_kept_dropped_or_refused(client: Client) -> None:
    """nullable keeps null; without it null is refused, unless a default takes its place."""
    check(
        client,
        {
            "n": {**STRING, "nullable": True},
            "s": STRING,
            "d": {**STRING, "default": "x"},
            "nd": {**STRING, "nullable": True, "default": "x"},
            "e": {**STRING, "nullable": True, "enum": ["a"]},
            "a": {"type": "array", "nullable": True, "items": {**STRING, "nullable": True}},
            "o": obj({"x": {**STRING, "default": "y"}}, nullable=True),
            "m": obj(additionalProperties={**INT, "nullable": True, "default": 4}),
        },
        {"n": None},
        {"s": None},
        {"d": None},
        {"nd": None},
        {"e": None},
        {"a": None},
        {"a": [None, "b"]},
        {"o": None},
        {"o": {}},
        {"m": {"k": None, "l": 2}},
        {"m": None},
        {"m": {}},
    )


@scenario
def several_faults_are_all_told(client: Client) -> None:
    """Faults of one list come in its order; those of defaults, sets and rules follow."""
    schema = {
        "l": {
            "type": "array",
            "maxItems": 3,
            "items": {**STRING, "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
            "x-kubernetes-list-type": "set",
        },
        "o": {"type": "array", "items": obj({"n": {**INT, "minimum": 1, "multipleOf": 2}}, required=["n"])},
    }
    check(
        client,
        schema,
        {"l": ["A", "toolong", "B", "A"]},
        {"l": [1, None, "ok", "x"]},
        {"o": [{}, {"n": 0}, {"n": "x"}, {"n": -1}, {"n": 1.5}, None]},
        {"l": ["", ""]},
    )


@scenario
def whole_objects_of_the_wrong_type(client: Client) -> None:
    """A spec that is not an object, a body that is not one, broken JSON, an empty body."""
    body = definition(client, of_spec({"s": STRING}))
    with served(client, body) as path:
        tries(client, body, path, "text", 1, [], None, True)
        for raw in ("", "{", "[]", "null", "1", '"x"', "{}", '{"a": }', json.dumps(make(body)) + "x", "apiVersion: v1"):
            client.post(path, raw, DRY)
        client.post(path, json.dumps(make(body)), DRY, ctype="application/yaml")
        client.post(path, json.dumps(make(body)), DRY, ctype="text/plain")
        client.get(path, headers={"Accept": "application/vnd.kubernetes.protobuf"})
        client.get(path, headers={"Accept": "application/yaml"})
        client.get(path, headers={"Accept": "text/html"})


@scenario
def kind_and_version_must_match(client: Client) -> None:
    """apiVersion and kind of the body are compared with the path."""
    body = definition(client)
    group = body["spec"]["group"]
    with served(client, body) as path:
        for api, kind in (
            (f"{group}/v1", "Gadget"),
            (f"{group}/v2", "Widget"),
            ("v1", "Widget"),
            ("other.example.com/v1", "Widget"),
            ("", "Widget"),
            (f"{group}/v1", ""),
            (None, None),
            (1, "Widget"),
            (f"{group}/v1/x", "Widget"),
            (f"{group}/v1", "WidgetList"),
        ):
            whole = {**make(body), "apiVersion": api, "kind": kind}
            client.post(path, {k: v for k, v in whole.items() if v is not None}, DRY)
        client.post(path, make(body), silent=True)
        client.put(f"{path}/one", {**make(body), "kind": "Gadget"})
        client.patch(f"{path}/one", {"kind": "Gadget"}, MERGE)
        client.patch(f"{path}/one", {"apiVersion": f"{group}/v2"}, MERGE)
        client.patch(
            f"{path}/one",
            {"apiVersion": f"{group}/v2", "kind": "Widget", "metadata": {"name": "one"}},
            APPLY,
            {"fieldManager": "m"},
        )
        client.patch(f"{path}/one", {"kind": "Widget", "metadata": {"name": "one"}}, APPLY, {"fieldManager": "m"})


@scenario
def metadata_is_checked(client: Client) -> None:
    """Names, labels, annotations, finalizers, owners; odd types; unknown fields are dropped."""
    body = definition(client)
    metas: list[Any] = [
        None,
        "text",
        {},
        {"name": ""},
        {"name": "UPPER"},
        {"name": "a/b"},
        {"name": "a" * 254},
        {"name": "a.b.c"},
        {"name": 5},
        {"name": "one", "namespace": "other"},
        {"name": "one", "labels": {"a b": "c"}},
        {"name": "one", "labels": {"a": "c d"}},
        {"name": "one", "labels": {"a": 1}},
        {"name": "one", "labels": None},
        {"name": "one", "labels": []},
        {"name": "one", "annotations": {"A B": "x"}},
        {"name": "one", "annotations": {"a": None}},
        {"name": "one", "finalizers": ["nodomain"]},
        {"name": "one", "finalizers": ["a b"]},
        {"name": "one", "finalizers": ["example.com/x", "example.com/x"]},
        {"name": "one", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
        {
            "name": "one",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}] * 2,
        },
        {"name": "one", "ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "p", "uid": "u"}]},
        {"name": "one", "unknown": 1},
        {"name": "one", "resourceVersion": "5"},
        {"name": "one", "uid": "mine", "generation": 9, "creationTimestamp": "2020-01-01T00:00:00Z", "selfLink": "/x"},
        {"name": "one", "deletionTimestamp": "2020-01-01T00:00:00Z"},
        {"name": "one", "creationTimestamp": "x"},
        {"name": "one", "generateName": "x-"},
        {"name": "one", "managedFields": []},
        {"name": "one", "managedFields": [{"manager": "x"}]},
        {"name": "one", "generation": "1"},
    ]
    with served(client, body) as path:
        for meta in metas:
            client.post(path, {**make(body), "metadata": meta}, DRY)
        client.post(path, {k: v for k, v in make(body).items() if k != "metadata"}, DRY)
        client.post(path, make(body, metadata={"name": "one", "unknown": 1}), {**DRY, "fieldValidation": "Strict"})


@scenario
def a_definition_may_narrow_names(client: Client) -> None:
    """metadata.name of the schema binds names, given and generated."""
    body = definition(client, obj({"metadata": obj({"name": {**STRING, "maxLength": 4, "pattern": "^o"}})}))
    with served(client, body) as path:
        for name in ("one", "toolong", "xx", "X"):
            client.post(path, make(body, name), DRY)
        client.post(path, {**make(body), "metadata": {"generateName": "generated-"}}, DRY)


@scenario
def names_can_be_generated(client: Client) -> None:
    """generateName gives a suffix; what is wrong with it is told."""
    body = definition(client)
    with served(client, body) as path:
        for prefix in ("thing-", "x" * 70, "Bad_", "a.b-"):
            client.post(path, {**make(body), "metadata": {"generateName": prefix}})
        client.get(path, {"limit": "0"}, headers={"Accept": PARTIAL_LIST})


# ---------------------------------------------------------------- pruning, defaulting, strictness


@scenario
def unknown_fields_are_pruned(client: Client) -> None:
    """In objects, arrays and maps, but not where they are to be preserved; known fields below preserved ones are pruned again."""
    body = definition(
        client,
        of_spec(
            {
                "o": obj({"x": STRING}),
                "a": {"type": "array", "items": obj({"x": STRING})},
                "m": obj(additionalProperties=obj({"x": STRING})),
                "p": obj({"known": obj({"x": STRING})}, **{DROP: True}),
                "any": {DROP: True},
                "empty": obj(),
                "aa": {"type": "array", "items": {"type": "array", "items": obj({"x": STRING})}},
                "pa": {"type": "array", "items": obj({"in": obj({"x": STRING})}, **{DROP: True})},
                "free": {"type": "object", "additionalProperties": True},
            }
        ),
    )
    with served(client, body) as path:
        tries(
            client,
            body,
            path,
            {"zz": 1},
            {"o": {"x": "1", "y": 2}},
            {"a": [{"x": "1", "y": 2}, {"z": 3}]},
            {"m": {"k": {"x": "1", "y": 2}}},
            {"p": {"known": {"x": "1", "y": 2}, "other": {"y": 2}}},
            {"any": {"deep": [{"er": None}]}},
            {"any": [1, "x"]},
            {"empty": {"y": 1}},
            {"aa": [[{"y": 1, "x": "2"}]]},
            {"pa": [{"q": 1, "in": {"r": 2}}]},
            {"any": None},
            {"free": {"q": 1, "r": {"s": None}}},
            {"zz": {"deep": {"er": [1, 2]}}, "yy": []},
        )
        client.post(path, make(body, top=1, spec={"o": {}}, status={"x": {"y": 1}}), DRY)


@scenario
def strict_and_warn(client: Client) -> None:
    """fieldValidation for unknown and duplicate fields, on create, update, patch and apply."""
    body = definition(client, of_spec({"s": STRING, "a": {"type": "array", "items": obj({"x": STRING})}}))
    with served(client, body) as path:
        client.post(path, make(body), silent=True)
        for mode in ("Strict", "Warn", "Ignore", "strict"):
            q = {"fieldValidation": mode, "dryRun": "All"}
            client.post(path, make(body, "two", spec={"s": "x", "u": 1, "a": [{"y": 1}, {"z": 1}]}, top={}), q)
            client.post(path, json.dumps(make(body, "two", spec={"s": "x"})).replace('"s"', '"s": "y", "s"'), q)
            client.patch(f"{path}/one", {"spec": {"u": 1}}, MERGE, q)
            client.patch(f"{path}/one", [{"op": "add", "path": "/spec", "value": {"u": 2}}], JSON_PATCH, q)
            client.patch(f"{path}/one", make(body, spec={"u": 3}), APPLY, {**q, "fieldManager": "m"})
            client.patch(f"{path}/one", '{"spec": {"s": "a", "s": "b"}}', MERGE, q)


@scenario
def embedded_resources(client: Client) -> None:
    """apiVersion, kind and metadata of an embedded resource are kept and validated; unknown metadata goes."""
    key = "x-kubernetes-embedded-resource"
    body = definition(
        client,
        of_spec(
            {
                "r": obj({"spec": obj({"x": STRING})}, **{key: True}),
                "p": obj(**{key: True, DROP: True}),
                "l": {"type": "array", "items": obj(**{key: True, DROP: True})},
            }
        ),
    )
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}}
    with served(client, body) as path:
        tries(
            client,
            body,
            path,
            {"r": {**whole, "spec": {"x": "1", "y": 2}, "other": 1}},
            {"p": {**whole, "spec": {"y": 2}}},
            {"r": {}},
            {"p": {"kind": "Pod"}},
            {"p": {"apiVersion": "v1"}},
            {"p": {"apiVersion": "a/b/c", "kind": "Pod"}},
            {"p": {**whole, "kind": ""}},
            {"p": {**whole, "metadata": {"name": "A B"}}},
            {"p": {**whole, "metadata": {"labels": {"a": "b c"}}}},
            {"p": {**whole, "metadata": {"labels": 1}}},
            {"p": {**whole, "metadata": {"unknown": 1, "name": "x"}}},
            {"l": [whole, {"kind": "x"}]},
            {"p": {**whole, "kind": "bad kind"}},
            {"p": {**whole, "metadata": {"name": 5}}},
            {"p": None},
        )


@scenario
def defaults_fill_what_is_missing(client: Client) -> None:
    """On create, inside lists and maps, nested, and not below what is absent without a default of its own."""
    schema = {
        "a": {**STRING, "default": "x"},
        "o": obj({"b": {**INT, "default": 1}}),
        "od": obj({"b": {**INT, "default": 2}, "c": STRING}, default={}),
        "oe": obj({"b": {**INT, "default": 2}, "c": STRING}, default={"c": "z"}),
        "l": {"type": "array", "items": obj({"k": STRING, "v": {**STRING, "default": "w"}})},
        "m": obj(additionalProperties=obj({"v": {"type": "boolean", "default": True}})),
        "ld": {"type": "array", "items": STRING, "default": ["p", "q"]},
        "n": {"type": "number", "default": 1.5},
        "any": {DROP: True, "default": {"free": [1]}},
        "ios": {"x-kubernetes-int-or-string": True, "default": "10%"},
    }
    body = definition(client, of_spec(schema))
    with served(client, body) as path:
        tries(
            client,
            body,
            path,
            {},
            {"a": ""},
            {"o": {}},
            {"od": {"c": "y"}},
            {"oe": {}},
            {"l": [{}, {"v": "own"}]},
            {"m": {"k": {}, "l": {"v": False}}},
            {"ld": []},
            {"any": None},
            {"o": {"b": None}},
        )
        client.post(path, make(body), DRY)
        client.post(path, make(body, spec={}))
        client.patch(f"{path}/one", {"spec": {"a": None, "ld": None, "od": {"c": "n"}}}, MERGE)
        client.patch(f"{path}/one", [{"op": "remove", "path": "/spec/n"}], JSON_PATCH)
        client.put(
            f"{path}/one",
            make(body, spec={"a": "own"}, metadata={"name": "one", "resourceVersion": client.get(f"{path}/one", silent=True).rv}),
        )
        client.patch(f"{path}/one", make(body, spec={"l": [{"k": "a"}]}), APPLY, {"fieldManager": "m"})


@scenario
def defaults_reach_old_objects_when_read(client: Client) -> None:
    """A default added later shows in get, list and watch of what was stored before, and a removed field vanishes."""
    body = definition(client, of_spec({"a": STRING, "gone": STRING}))
    with served(client, body) as path:
        client.post(path, make(body, spec={"a": "1", "gone": "bye"}))
        versions = [
            {**body["spec"]["versions"][0], "schema": {"openAPIV3Schema": of_spec({"a": STRING, "b": {**INT, "default": 7}})}}
        ]
        redefine(client, body, lambda: client.get(f"{path}/one", silent=True).get("spec", "b") == 7, versions=versions)
        client.get(f"{path}/one")
        client.get(path)
        client.watch(path)
        client.patch(f"{path}/one", {"metadata": {"labels": {"x": "y"}}}, MERGE)
        client.put(f"{path}/one", client.get(f"{path}/one", silent=True).json)


@scenario
def invalid_old_objects_are_ratcheted(client: Client) -> None:
    """What was stored before the schema grew narrower may stay, but not change into other wrong values."""
    body = definition(
        client,
        of_spec(
            {
                "a": STRING,
                "n": INT,
                "l": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                "m": obj(additionalProperties=STRING),
            }
        ),
    )
    with served(client, body) as path:
        client.post(path, make(body, spec={"a": "too long", "n": 50, "l": ["long one", "ok"], "m": {"k": "long one"}}))
        short = {**STRING, "maxLength": 3}
        new = of_spec(
            {
                "a": short,
                "n": {**INT, "maximum": 9},
                "l": {"type": "array", "items": short, "x-kubernetes-list-type": "set"},
                "m": obj(additionalProperties=short),
                "r": STRING,
            },
            **{"x-kubernetes-validations": [{"rule": "!has(self.a) || self.a.size() < 4", "message": "a is long"}]},
        )
        redefine(
            client,
            body,
            lambda: client.post(path, make(body, "two", spec={"a": "too long"}), DRY, silent=True).status == 422,
            versions=[{**body["spec"]["versions"][0], "schema": {"openAPIV3Schema": new}}],
        )
        for change in (
            {"a": "also too long"},
            {"n": 60},
            {"n": 50, "r": "new"},
            {"r": None},
            {"l": ["long one", "ok", "new"]},
            {"l": ["long one", "other long"]},
            {"m": {"j": "fine"}},
            {"m": {"j": "not so fine"}},
            {"m": {"k": "longer one"}},
            {"n": 5},
            {"a": "ok"},
            {"a": "too long"},
        ):
            client.patch(f"{path}/one", {"spec": change}, MERGE)
        client.patch(f"{path}/one", {"metadata": {"labels": {"x": "y"}}}, MERGE)


# ---------------------------------------------------------------- life


@scenario
def create_read_update_delete(client: Client) -> None:
    """The plain course of things, with its conflicts and errors."""
    body = definition(client, of_spec({"s": STRING}))
    with served(client, body) as path:
        made = client.post(path, make(body, spec={"s": "a"}))
        client.post(path, make(body))
        client.get(f"{path}/one")
        client.get(f"{path}/two")
        client.get(path)
        client.get(where(client, body, ns=False))
        client.post(where(client, body, ns=False), make(body, "elsewhere"))
        client.put(f"{path}/one", make(body, spec={"s": "b"}))
        client.put(f"{path}/one", make(body, metadata={"name": "one", "resourceVersion": made.rv}, spec={"s": "b"}))
        client.put(f"{path}/one", make(body, metadata={"name": "one", "resourceVersion": made.rv}, spec={"s": "c"}))
        client.put(f"{path}/one", make(body, "other", spec={"s": "c"}))
        client.put(f"{path}/new", make(body, "new", spec={"s": "c"}))
        client.put(
            f"{path}/one",
            make(
                body,
                metadata={
                    "name": "one",
                    "uid": "0f8fad5b-d9cb-469f-a165-70867728950e",
                    "resourceVersion": client.get(f"{path}/one", silent=True).rv,
                },
            ),
        )
        client.delete(f"{path}/one", {"preconditions": {"uid": "x"}})
        client.delete(f"{path}/one", None, {"dryRun": "All"})
        client.delete(f"{path}/one")
        client.delete(f"{path}/one")
        client.post(f"/apis/{body['spec']['group']}/v1/namespaces/nowhere-{client.id}/widgets", make(body))
        client.request("OPTIONS", path)
        client.post(f"{path}/one", {})
        client.get(f"{path}/one/status")


@scenario
def patches(client: Client) -> None:
    """Merge and JSON patches work; a strategic merge patch is not for custom resources."""
    body = definition(
        client, of_spec({"s": STRING, "l": {"type": "array", "items": STRING}, "o": obj({"x": STRING, "y": STRING}), "n": INT})
    )
    with served(client, body) as path:
        client.post(path, make(body, spec={"s": "a", "l": ["1", "2"], "o": {"x": "1"}}), silent=True)
        for patch in (
            {"spec": {"s": "b", "o": {"y": "2"}}},
            {"spec": {"o": {"x": None}}},
            {"spec": {"l": []}},
            {"spec": {"n": "no"}},
            {"spec": None},
            {},
            [],
            "text",
            None,
            {"metadata": {"name": "two"}},
            {"metadata": {"resourceVersion": "1"}},
            {"status": {"x": 1}},
        ):
            client.patch(f"{path}/one", patch if patch is not None else "null", MERGE)
        for ops in (
            [{"op": "add", "path": "/spec", "value": {"l": ["a"]}}],
            [{"op": "add", "path": "/spec/l/-", "value": "b"}],
            [{"op": "add", "path": "/spec/l/9", "value": "b"}],
            [{"op": "replace", "path": "/spec/nope", "value": 1}],
            [{"op": "test", "path": "/spec/l/0", "value": "x"}],
            [{"op": "test", "path": "/spec/l/0", "value": "a"}, {"op": "remove", "path": "/spec/l/0"}],
            [{"op": "move", "from": "/spec/l", "path": "/spec/o"}],
            [{"op": "copy", "from": "/metadata/name", "path": "/spec/s"}],
            [{"op": "odd", "path": "/x"}],
            [{"path": "/x"}],
            {},
            [],
            [{"op": "add", "path": "spec", "value": 1}],
            [{"op": "add", "path": "/spec/n", "value": 1.5}],
        ):
            client.patch(f"{path}/one", ops, JSON_PATCH)
        client.patch(f"{path}/one", {"spec": {"s": "z"}}, STRATEGIC)
        client.patch(f"{path}/one", {"spec": {"s": "z"}}, "application/json")
        client.patch(f"{path}/none", {"spec": {"s": "z"}}, MERGE)
        client.patch(f"{path}/one", {"spec": {"s": "z"}}, MERGE, {"force": "true"})


@scenario
def apply_with_every_list_type(client: Client) -> None:
    """atomic, set and map lists; granular and atomic maps; conflicts, force, giving up fields."""
    item = obj({"k": STRING, "v": STRING}, required=["k"])
    body = definition(
        client,
        of_spec(
            {
                "at": {"type": "array", "items": STRING, "x-kubernetes-list-type": "atomic"},
                "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                "map": {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
                "plain": {"type": "array", "items": item},
                "gran": obj(additionalProperties=STRING),
                "atom": obj({"a": STRING, "b": STRING}, **{"x-kubernetes-map-type": "atomic"}),
                "free": {DROP: True},
            }
        ),
    )
    with served(client, body) as path:
        one = f"{path}/one"

        def apply(manager: str, spec: Any, **query: str) -> None:
            client.patch(one, make(body, spec=spec), APPLY, {"fieldManager": manager, **query})

        apply(
            "m1",
            {
                "at": ["a"],
                "set": ["a", "b"],
                "map": [{"k": "a", "v": "1"}],
                "plain": [{"k": "a"}],
                "gran": {"x": "1"},
                "atom": {"a": "1"},
                "free": {"q": {"r": [1]}},
            },
        )
        apply("m2", {"set": ["b", "c"]})
        apply("m2", {"set": ["b", "c"], "map": [{"k": "b", "v": "2"}], "gran": {"y": "2"}})
        apply("m2", {"map": [{"k": "a", "v": "2"}]})
        apply("m2", {"at": ["b"]})
        apply("m2", {"atom": {"b": "2"}})
        apply("m2", {"plain": [{"k": "b"}]}, force="true")
        apply("m2", {"free": {"q": {"s": 2}}})
        apply("m1", {"set": ["a"], "free": {}})
        apply("m2", {"set": ["d", "d"]})
        apply("m2", {"map": [{"k": "x"}, {"k": "x"}]})
        apply("m2", {"map": [{"v": "x"}]})
        apply("m2", {"gran": {"x": 5}})
        apply("m2", {"unknown": 5})
        apply("m2", {})
        client.patch(one, make(body, spec={"set": ["z"]}), APPLY)
        client.patch(one, make(body, "two"), APPLY, {"fieldManager": "m"})
        client.patch(one, make(body, metadata={"name": "one", "managedFields": [{"manager": "x"}]}), APPLY, {"fieldManager": "m"})
        client.patch(f"{path}/fresh", make(body, "fresh", spec={"at": [1]}), APPLY, {"fieldManager": "m"})
        client.patch(one, "spec: {at: [", APPLY, {"fieldManager": "m"})
        client.patch(one, {"metadata": {"managedFields": [{}]}}, MERGE)
        client.get(one)


@scenario
def status_is_apart(client: Client) -> None:
    """With the subresource, status is ignored on the main path and the rest on /status; only spec moves the generation."""
    body = definition(
        client,
        obj({"spec": obj({"s": STRING}), "status": obj({"phase": STRING, "n": {**INT, "default": 4}}, required=["phase"])}),
        {"subresources": {"status": {}}},
    )
    with served(client, body) as path:
        one = f"{path}/one"
        client.post(path, make(body, spec={"s": "a"}, status={"phase": "x"}))
        client.get(f"{one}/status")
        client.patch(one, {"status": {"phase": "y"}, "spec": {"s": "b"}}, MERGE)
        client.patch(f"{one}/status", {"status": {"phase": "y"}, "spec": {"s": "c"}, "metadata": {"labels": {"a": "b"}}}, MERGE)
        client.patch(f"{one}/status", {"status": {"n": 5}}, MERGE)
        client.patch(f"{one}/status", {"status": {"phase": 5}}, MERGE)
        client.patch(f"{one}/status", {"status": {"phase": None}}, MERGE)
        now = client.get(one, silent=True).json
        client.put(f"{one}/status", {**now, "status": {"phase": "z"}, "spec": {"s": 9}} if isinstance(now, dict) else None)
        client.put(f"{one}/status", {**now, "status": {"phase": "w"}, "spec": {"s": "ok"}} if isinstance(now, dict) else None)
        client.put(one, {**now, "status": {"phase": 1}} if isinstance(now, dict) else None)
        client.patch(f"{one}/status", make(body, status={"phase": "q"}), APPLY, {"fieldManager": "s", "force": "true"})
        client.patch(one, make(body, spec={"s": "q"}, status={"phase": "r"}), APPLY, {"fieldManager": "t", "force": "true"})
        client.patch(f"{one}/status", [{"op": "remove", "path": "/status"}], JSON_PATCH)
        client.patch(one, {"metadata": {"annotations": {"x": "y"}}}, MERGE)
        client.post(f"{one}/status", now)
        client.delete(f"{one}/status")
        client.get(f"{path}/none/status")
        client.get(f"{one}/scale")


@scenario
def scale_is_a_view(client: Client) -> None:
    """/scale shows and sets the replicas at the paths of the definition."""
    body = definition(
        client,
        obj(
            {"spec": obj({"replicas": {**INT, "maximum": 10}, "s": STRING}), "status": obj({"replicas": INT, "selector": STRING})}
        ),
        {"subresources": {"status": {}, **SCALE}},
    )
    with served(client, body) as path:
        one = f"{path}/one/scale"
        client.post(path, make(body, spec={"s": "x"}), silent=True)
        client.get(one)
        client.patch(one, {"spec": {"replicas": 2}}, MERGE)
        client.patch(f"{path}/one", {"spec": {"replicas": 3}}, MERGE, silent=True)
        client.get(one)
        client.patch(f"{path}/one/status", {"status": {"replicas": 1, "selector": "a=b"}}, MERGE, silent=True)
        now = client.get(one)
        for replicas in (4, 4, -1, 11, "x", 2.5, None, 2**33):
            client.patch(one, {"spec": {"replicas": replicas}}, MERGE)
        scale = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "one", "namespace": client.ns},
            "spec": {"replicas": 6},
        }
        client.put(one, scale)
        client.put(one, {**scale, "metadata": {**scale["metadata"], "resourceVersion": now.rv}})
        client.put(one, {**scale, "kind": "Widget"})
        client.put(one, {**scale, "apiVersion": "autoscaling/v2"})
        client.put(one, {**scale, "metadata": {"name": "two"}})
        client.put(one, {**scale, "spec": {"replicas": -2}})
        client.patch(one, [{"op": "replace", "path": "/spec/replicas", "value": 7}], JSON_PATCH)
        client.patch(one, {"spec": {"replicas": 8}}, STRATEGIC)
        client.patch(one, {**scale, "spec": {"replicas": 9}}, APPLY, {"fieldManager": "hpa", "force": "true"})
        client.get(one, headers={"Accept": TABLE})
        client.get(f"{path}/two/scale")
        client.delete(one)
        client.get(f"{path}/one")


@scenario
def tables_have_the_columns(client: Client) -> None:
    """Every column type and format, priorities, missing and wrong values, lists, the default Age column."""
    columns = [
        ("S", "string", ".spec.s", {}),
        ("I", "integer", ".spec.i", {"description": "an int", "format": "int32"}),
        ("N", "number", ".spec.n", {"priority": 1}),
        ("B", "boolean", ".spec.b", {}),
        ("D", "date", ".spec.d", {}),
        ("L", "string", ".spec.l", {}),
        ("L0", "string", ".spec.l[0]", {}),
        ("O", "string", ".spec.o", {}),
        ("K", "string", ".spec.map[*].k", {}),
        ("F", "string", '.spec.map[?(@.k=="b")].v', {}),
        ("IS", "integer", ".spec.s", {}),
        ("SI", "string", ".spec.i", {}),
        ("Age", "date", ".metadata.creationTimestamp", {}),
        ("Lab", "string", ".metadata.labels.app", {}),
        ("SD", "string", ".spec.d", {"format": "date-time"}),
    ]
    body = definition(
        client,
        of_spec({}, **{DROP: True}),
        {"additionalPrinterColumns": [{"name": n, "type": t, "jsonPath": p, **more} for n, t, p, more in columns]},
    )
    with served(client, body) as path:
        specs: list[Any] = [
            {},
            {
                "s": "x",
                "i": 5,
                "n": 1.5,
                "b": True,
                "d": "2001-01-01T00:00:00Z",
                "l": ["a", 1],
                "o": {"z": 1},
                "map": [{"k": "a", "v": "1"}, {"k": "b", "v": "2"}],
            },
            {"s": 5, "i": "x", "n": "y", "b": "z", "d": "no date", "l": [], "o": None},
            {"s": None, "i": 1.5, "n": 3, "d": 7, "map": {}},
            {"s": "", "i": 0, "b": False, "l": "text", "map": "text"},
            {"s": "two\nlines", "i": 2**40, "n": 1e100, "o": "tab\there"},
        ]
        for i, spec in enumerate(specs):
            client.post(
                path, make(body, metadata={"name": f"n{i}", "labels": {"app": f"l{i}"} if i % 2 else {}}, spec=spec), silent=True
            )
            client.get(f"{path}/n{i}", headers={"Accept": TABLE})
        client.get(path, headers={"Accept": TABLE})
        client.get(path, {"includeObject": "Object", "limit": "2"}, headers={"Accept": TABLE})
        client.get(path, {"includeObject": "None"}, headers={"Accept": TABLE})
        client.get(path, {"includeObject": "Odd"}, headers={"Accept": TABLE})
        client.watch(path, headers={"Accept": TABLE})
        client.post(path, make(body, "posted"), headers={"Accept": TABLE})
        client.delete(f"{path}/posted", headers={"Accept": TABLE})
    plain = definition(client, plural="gadgets", kind="Gadget")
    with served(client, plain) as path:
        client.get(path, headers={"Accept": TABLE})
        client.post(path, make(plain), headers={"Accept": TABLE})
        client.get(f"{path}/none", headers={"Accept": TABLE})


@scenario
def fields_can_be_selected(client: Client) -> None:
    """Strings, integers and booleans named by selectableFields; others are refused."""
    schema = of_spec({"color": STRING, "size": INT, "flag": {"type": "boolean"}, "o": obj({"x": STRING})})
    body = definition(
        client, schema, {"selectableFields": [{"jsonPath": p} for p in (".spec.color", ".spec.size", ".spec.flag", ".spec.o.x")]}
    )
    with served(client, body) as path:
        for i, spec in enumerate(
            (
                {"color": "red", "size": 1, "flag": True},
                {"color": "blue", "size": 2, "o": {"x": "y"}},
                {},
                {"color": "", "size": 0, "flag": False},
            )
        ):
            client.post(path, make(body, f"n{i}", spec=spec), silent=True)
        for selector in (
            "spec.color=red",
            "spec.color!=red",
            "spec.color=",
            "spec.size=1",
            "spec.size=0",
            "spec.flag=true",
            "spec.flag=false",
            "spec.flag!=true",
            "spec.o.x=y",
            "spec.color=red,spec.size=2",
            "spec.none=1",
            "status.x=1",
            "metadata.name=n1",
            f"metadata.namespace={client.ns}",
            "spec.color=red,metadata.name=n0",
            ".spec.color=red",
            "spec.color==blue",
            "spec.size=x",
        ):
            client.get(path, {"fieldSelector": selector}, headers={"Accept": PARTIAL_LIST})
        client.watch(
            path,
            {"fieldSelector": "spec.color=red"},
            then=lambda: [
                client.patch(f"{path}/n0", {"spec": {"color": "blue"}}, MERGE, silent=True),
                client.patch(f"{path}/n1", {"spec": {"color": "red"}}, MERGE, silent=True),
            ],
        )
        client.delete(path, None, {"fieldSelector": "spec.color=red"})
        client.get(where(client, body, ns=False), {"fieldSelector": "spec.color=blue"}, headers={"Accept": PARTIAL_LIST})


@scenario
def lists_and_watches(client: Client) -> None:
    """Pages, label selectors, watches from a revision, bookmarks, deletion of collections."""
    body = definition(client, of_spec({"n": INT}))
    with served(client, body) as path:
        first = client.post(path, make(body, metadata={"name": "n0", "labels": {"even": "yes"}}, spec={"n": 0}))
        for i in range(1, 5):
            client.post(
                path,
                make(body, metadata={"name": f"n{i}", "labels": {"even": "no" if i % 2 else "yes"}}, spec={"n": i}),
                silent=True,
            )
        page = client.get(path, {"limit": "2"})
        client.get(path, {"limit": "2", "continue": page.get("metadata", "continue", default="")})
        client.get(path, {"labelSelector": "even=yes"}, headers={"Accept": PARTIAL_LIST})
        client.get(path, {"resourceVersion": "0"}, headers={"Accept": PARTIAL_LIST})
        client.get(path, {"resourceVersion": first.rv, "resourceVersionMatch": "Exact"})
        client.get(path, {"limit": "x"})
        client.watch(
            path,
            {"resourceVersion": first.rv},
            then=lambda: client.patch(f"{path}/n1", {"spec": {"n": 9}}, MERGE, silent=True) and None,
        )
        client.watch(
            path,
            {"labelSelector": "even=yes"},
            then=lambda: client.patch(f"{path}/n2", {"metadata": {"labels": {"even": "no"}}}, MERGE, silent=True) and None,
        )
        client.watch(f"/apis/{body['spec']['group']}/v1/watch/namespaces/{client.ns}/widgets", {})
        client.watch(
            path,
            {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"},
            headers={"Accept": PARTIAL},
        )
        client.delete(path, None, {"labelSelector": "even=no", "dryRun": "All"})
        client.delete(path, None, {"labelSelector": "even=no"})
        client.get(path)
        client.delete(path, {"propagationPolicy": "Odd"})
        client.delete(path)
        client.get(path)


@scenario
def finalizers_hold_deletion(client: Client) -> None:
    """Deletion marks; an update may only take finalizers away; then it is gone."""
    body = definition(client, of_spec({"n": INT}))
    with served(client, body) as path:
        client.post(path, make(body, metadata={"name": "one", "finalizers": ["example.com/a", "example.com/b"]}, spec={"n": 1}))
        client.delete(f"{path}/one", {"gracePeriodSeconds": 30})
        client.delete(f"{path}/one", {"propagationPolicy": "Foreground"})
        client.patch(f"{path}/one", {"metadata": {"finalizers": ["example.com/a", "example.com/b", "example.com/c"]}}, MERGE)
        client.patch(f"{path}/one", {"spec": {"n": 2}}, MERGE)
        client.patch(f"{path}/one", {"metadata": {"finalizers": ["example.com/b"]}}, MERGE)
        client.patch(f"{path}/one", {"metadata": {"finalizers": []}}, MERGE)
        client.get(f"{path}/one")


@scenario
def cluster_wide_resources(client: Client) -> None:
    """scope: Cluster; namespaces in path or body are errors."""
    body = definition(client, scope="Cluster")
    with served(client, body) as path:
        client.post(path, make(body, spec={"a": 1}))
        client.post(path, make(body, metadata={"name": "two", "namespace": client.ns}))
        client.get(f"/apis/{body['spec']['group']}/v1/namespaces/{client.ns}/widgets")
        client.post(f"/apis/{body['spec']['group']}/v1/namespaces/{client.ns}/widgets", make(body, "three"))
        client.get(f"{path}/one")
        client.get(path)
        client.delete(f"{path}/one", None, {"propagationPolicy": "Orphan"})
        client.get(f"{path}/one")


# ---------------------------------------------------------------- versions


def two_versions(client: Client, **second: Any) -> dict[str, Any]:
    body = definition(client, of_spec({"a": STRING, "only1": STRING}))
    body["spec"]["versions"].append(
        {
            "name": "v2",
            "served": True,
            "storage": False,
            "schema": {"openAPIV3Schema": of_spec({"a": STRING, "only2": {**STRING, "default": "d2"}})},
            **second,
        }
    )
    return body


@scenario
def versions_share_objects(client: Client) -> None:
    """Strategy None only changes apiVersion; each version prunes and defaults in its own way."""
    body = two_versions(client)
    with served(client, body) as path:
        path2 = path.replace("/v1/", "/v2/")
        client.post(path, make(body, spec={"a": "1", "only1": "x"}))
        client.get(f"{path2}/one")
        client.post(path2, make(body, "two", "v2", spec={"a": "2", "only2": "y"}))
        client.get(f"{path}/two")
        client.get(path)
        client.get(path2)
        client.post(path2, make(body, "three", "v1"))
        client.patch(f"{path2}/one", {"spec": {"a": "3"}}, MERGE)
        client.get(f"{path}/one")
        client.patch(f"{path2}/one", make(body, "one", "v2", spec={"only2": "z"}), APPLY, {"fieldManager": "m", "force": "true"})
        client.patch(f"{path}/one", make(body, "one", "v1", spec={"only1": "w"}), APPLY, {"fieldManager": "m", "force": "true"})
        client.watch(path2, then=lambda: client.patch(f"{path}/two", {"spec": {"a": "w"}}, MERGE, silent=True) and None)
        client.delete(f"{path2}/two")


@scenario
def a_version_may_stop_being_served(client: Client) -> None:
    """served=false answers 404; the storage version may be one that is not served."""
    body = two_versions(client)
    with served(client, body) as path:
        path2 = path.replace("/v1/", "/v2/")
        client.post(path, make(body, spec={"a": "1", "only1": "x"}), silent=True)
        one, two = body["spec"]["versions"]
        redefine(client, body, lambda: client.get(path, silent=True).status == 404, versions=[{**one, "served": False}, two])
        client.get(path)
        client.get(f"{path}/one")
        client.post(path, make(body, "two"))
        client.get(f"{path2}/one")
        client.post(path2, make(body, "two", "v2", spec={"a": "2", "only2": "y"}))
        redefine(
            client,
            body,
            lambda: client.get(path, silent=True).status == 200,
            versions=[{**one, "storage": False}, {**two, "storage": True}],
        )
        pacing.sleep(0.5)
        client.get(f"{path}/one")
        client.patch(f"{path}/two", {"metadata": {"labels": {"moved": "yes"}}}, MERGE)
        client.get(f"{path2}/two")
        client.get(f"{CRDS}/{body['metadata']['name']}/status", headers={"Accept": PARTIAL})


@scenario
def deprecated_versions_warn(client: Client) -> None:
    """The default warning, one of one's own, on every verb."""
    body = two_versions(client, deprecated=True, deprecationWarning="v2 was a mistake")
    body["spec"]["versions"][0]["deprecated"] = True
    body["spec"]["versions"].append({"name": "v3", "served": True, "storage": False, "schema": {"openAPIV3Schema": ANY}})
    body["spec"]["versions"].append(
        {"name": "v4beta1", "served": True, "storage": False, "deprecated": True, "schema": {"openAPIV3Schema": ANY}}
    )
    with served(client, body) as path:
        for v in ("v1", "v2", "v3", "v4beta1"):
            here = path.replace("/v1/", f"/{v}/")
            client.post(here, make(body, f"in-{v}", v))
            client.get(here, headers={"Accept": PARTIAL_LIST})
            client.get(f"{here}/in-{v}")
            client.delete(f"{here}/in-{v}")


@scenario
def depth_and_size_of_values(client: Client) -> None:
    """Deep nesting and odd keys pass through preserved fields."""
    body = definition(client, obj({"spec": {DROP: True}}))
    deep: Any = 1
    for _ in range(60):
        deep = {"d": deep}
    with served(client, body) as path:
        tries(
            client,
            body,
            path,
            deep,
            {"": 1, "a.b": 2, "a/b": 3, "é": 4, "x" * 300: 5},
            {"u": "\u0000\u001f\u2028é😀"},
            {"f": [1.0, 1e10, 1e-7, 123456789.125, 1e25, -0.0, 2**62]},
            [[[]]],
            "just text",
            {"apiVersion": 5, "kind": [], "metadata": "x"},
        )
