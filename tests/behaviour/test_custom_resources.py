"""Custom resources: serving, validation, pruning, defaulting, subresources and deletion."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
KEEP = "x-kubernetes-preserve-unknown-fields"
DRY = {"dryRun": "All"}
ANY = {"type": "object", KEEP: True}
STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}


def struct(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", **({"properties": properties} if properties else {}), **more}


def of_spec(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The schema of a resource whose spec has these properties, and whose status is free."""
    return struct({"spec": struct(properties, **more), "status": ANY})


def version(schema: dict[str, Any], name: str = "v1", **more: Any) -> dict[str, Any]:
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}


def until(probe: Callable[[], bool]) -> bool:
    """Poll until a condition holds; a real server does some things asynchronously."""
    end = time.monotonic() + 60
    while not (is_so := probe()) and time.monotonic() < end:
        pass
    return is_so


@dataclass
class Widgets:
    """A definition on a server, and requests about its objects."""

    api: Any
    body: dict[str, Any]

    @property
    def name(self) -> str:
        return self.body["metadata"]["name"]

    @property
    def group(self) -> str:
        return self.body["spec"]["group"]

    def path(self, *rest: str, version: str = "v1") -> str:
        return self.api.path("widgets", *rest, group=f"{self.group}/{version}")

    def of(self, name: str = "one", version: str = "v1", **fields: Any) -> dict[str, Any]:
        """An object to send."""
        return {"apiVersion": f"{self.group}/{version}", "kind": "Widget", "metadata": {"name": name}, **fields}

    def create(self, name: str = "one", query: Any = None, **fields: Any) -> Any:
        return self.api.post(self.path(), self.of(name, **fields), query)

    def dry(self, spec: Any, **query: str) -> Any:
        """Create an object with a spec as a dry run."""
        return self.create(query={**DRY, **query}, spec=spec)

    def merge(self, patch: dict[str, Any], *rest: str, name: str = "one", **query: str) -> Any:
        return self.api.patch(self.path(name, *rest), patch, MERGE, query)

    def apply(self, spec: Any, manager: str, **query: str) -> Any:
        return self.api.patch(self.path("one"), self.of(spec=spec), APPLY, {"fieldManager": manager, **query})

    def definition(self) -> Any:
        return self.api.get(f"{DEFINITIONS}/{self.name}")

    def condition(self, kind: str) -> dict[str, str]:
        conditions = self.definition().at("status", "conditions", default=None) or ()
        return next((c for c in conditions if c["type"] == kind), {})

    def redefine(self, *versions: dict[str, Any]) -> None:
        changed = self.api.patch(f"{DEFINITIONS}/{self.name}", {"spec": {"versions": list(versions)}}, MERGE)
        assert changed.status == 200, changed.body


@pytest.fixture
def define(api) -> Iterator[Callable[..., Widgets]]:
    """Makes definitions, each in a group of its own, and waits until they are served."""
    made: list[Widgets] = []
    number = itertools.count()

    def define(schema: dict[str, Any] = ANY, *versions: dict[str, Any], **spec: Any) -> Widgets:
        group = f"g{api.suffix}{next(number)}.example.com"
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
                "versions": list(versions) or [version(schema)],
                **spec,
            },
        }
        widgets = Widgets(api, body)
        made.append(widgets)
        created = api.post(DEFINITIONS, body)
        assert created.status == 201, created.body
        assert until(lambda: widgets.condition("Established").get("status") == "True")
        for served in body["spec"]["versions"]:
            if served["served"]:
                assert until(lambda name=served["name"]: api.get(widgets.path(version=name)).status == 200)
        return widgets

    yield define
    for widgets in made:
        for item in api.get(widgets.path()).at("items", default=()):
            widgets.merge({"metadata": {"finalizers": None}}, name=item["metadata"]["name"])
        api.delete(f"{DEFINITIONS}/{widgets.name}")


def causes_of(reply: Any) -> list[tuple[str, str]]:
    """Reason and field of every cause of a 422 response."""
    assert reply.status == 422, (reply.status, reply.body)
    return [(cause["reason"], cause["field"]) for cause in reply.at("details", "causes")]


# ---------------------------------------------------------------- definitions


def test_established_crd_is_served(api, define) -> None:
    widgets = define(names={"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]})
    assert widgets.definition().at("status", "acceptedNames") == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
        "shortNames": ["wd"],
        "categories": ["all"],
    }
    assert widgets.definition().at("status", "storedVersions") == ["v1"]
    assert widgets.condition("NamesAccepted")["reason"] == "NoConflicts"
    assert widgets.condition("Established")["reason"] == "InitialNamesAccepted"
    assert until(lambda: api.get(f"/apis/{widgets.group}/v1").status == 200)
    served = api.get(f"/apis/{widgets.group}/v1").at("resources", 0)
    assert (served["name"], served["singularName"], served["kind"], served["shortNames"]) == (
        "widgets",
        "widget",
        "Widget",
        ["wd"],
    )
    assert served["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert (
        api.get(widgets.path()).json
        == {
            "apiVersion": f"{widgets.group}/v1",
            "items": [],
            "kind": "WidgetList",
            "metadata": {"continue": "", "resourceVersion": api.get(widgets.path()).at("metadata", "resourceVersion")},
        }
        or api.is_ours is False
    )


def test_crd_with_conflicting_names_is_not_accepted(api, define) -> None:
    widgets = define()
    other = json.loads(json.dumps(widgets.body))
    other["metadata"]["name"] = f"gadgets.{widgets.group}"
    other["spec"]["names"] = {"plural": "gadgets", "kind": "Widget"}
    assert api.post(DEFINITIONS, other).status == 201
    gadgets = Widgets(api, other)
    assert until(lambda: gadgets.condition("NamesAccepted").get("status") == "False")
    assert gadgets.condition("NamesAccepted")["reason"] in ("KindConflict", "ListKindConflict")
    assert gadgets.condition("Established")["reason"] == "NotAccepted"
    api.delete(f"{DEFINITIONS}/{gadgets.name}")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"group": "Upper"}, "spec.group"),
        ({"scope": "Everywhere"}, "spec.scope"),
        ({"names": {"plural": "gadgets", "kind": "Widget"}}, "metadata.name"),
        ({"versions": []}, "spec.versions"),
        ({"versions": [{"name": "v1", "served": True, "storage": True}]}, "spec.versions[0].schema.openAPIV3Schema"),
        ({"versions": [version({"type": "string"})]}, "spec.validation.openAPIV3Schema.type"),
        ({"versions": [version(struct({"a": {}}))]}, "spec.validation.openAPIV3Schema.properties[a].type"),
        ({"preserveUnknownFields": True}, "spec.preserveUnknownFields"),
    ],
)
def test_invalid_crds_are_rejected(api, change: dict[str, Any], place: str) -> None:
    group = f"g{api.suffix}.example.com"
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version(ANY)],
        **change,
    }
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": spec,
    }
    assert place in [field for _, field in causes_of(api.post(DEFINITIONS, body, DRY))]


# ---------------------------------------------------------------- validation


CHECKED = of_spec(
    {
        "s": STRING,
        "i": INTEGER,
        "n": {"type": "number"},
        "b": {"type": "boolean"},
        "a": {"type": "array", "items": STRING, "maxItems": 2},
        "o": struct({"x": STRING}, required=["x"]),
        "e": {**STRING, "enum": ["a", "b"]},
        "p": {**STRING, "pattern": "^[a-z]+$"},
        "lo": {**STRING, "minLength": 2},
        "hi": {**STRING, "maxLength": 3},
        "min": {**INTEGER, "minimum": 2},
        "xmax": {"type": "number", "maximum": 9.5, "exclusiveMaximum": True},
        "m": {**INTEGER, "multipleOf": 3},
        "i32": {**INTEGER, "format": "int32"},
        "ios": {"x-kubernetes-int-or-string": True},
        "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        "map": struct(additionalProperties=INTEGER, minProperties=1),
        "no": {**STRING, "not": {"pattern": "^a"}},
    }
)

REFUSED = [
    ({"s": 3}, 'spec.s: Invalid value: "integer": spec.s in body must be of type string: "integer"'),
    ({"i": "x"}, 'spec.i: Invalid value: "string": spec.i in body must be of type integer: "string"'),
    (
        {"i": 1.5},
        '[spec.i: Invalid value: "number": spec.i in body must be of type integer: "number", <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.i]',
    ),
    ({"n": True}, 'spec.n: Invalid value: "boolean": spec.n in body must be of type number: "boolean"'),
    ({"b": "true"}, 'spec.b: Invalid value: "string": spec.b in body must be of type boolean: "string"'),
    ({"a": {}}, 'spec.a: Invalid value: "object": spec.a in body must be of type array: "object"'),
    ({"o": []}, 'spec.o: Invalid value: "array": spec.o in body must be of type object: "array"'),
    ({"a": ["x", 1]}, 'spec.a[1]: Invalid value: "integer": spec.a[1] in body must be of type string: "integer"'),
    ({"a": ["x", "y", "z"]}, "spec.a: Too many: 3: must have at most 2 items"),
    ({"o": {}}, "spec.o.x: Required value"),
    ({"e": "c"}, 'spec.e: Unsupported value: "c": supported values: "a", "b"'),
    ({"p": "A"}, "spec.p: Invalid value: \"A\": spec.p in body should match '^[a-z]+$'"),
    ({"lo": "a"}, 'spec.lo: Invalid value: "a": spec.lo in body should be at least 2 chars long'),
    ({"hi": "äöüß"}, "spec.hi: Too long: may not be more than 3 bytes"),
    ({"min": 1}, "spec.min: Invalid value: 1: spec.min in body should be greater than or equal to 2"),
    ({"xmax": 9.5}, "spec.xmax: Invalid value: 9.5: spec.xmax in body should be less than 9.5"),
    ({"m": 4}, "spec.m: Invalid value: 4: spec.m in body should be a multiple of 3"),
    ({"i32": 2**31}, '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.i32'),
    ({"ios": 1.5}, 'spec.ios: Invalid value: "number": spec.ios in body must be of type integer,string: "number"'),
    ({"set": ["a", "b", "a"]}, 'spec.set[2]: Duplicate value: "a"'),
    ({"map": {}}, "spec.map: Invalid value: 0: spec.map in body should have at least 1 properties"),
    ({"map": {"k.l": "x"}}, 'spec.map.k.l: Invalid value: "string": spec.map.k.l in body must be of type integer: "string"'),
    ({"no": "a"}, '<nil>: Invalid value: "": "spec.no" must not validate the schema (not)'),
    ("text", 'spec: Invalid value: "string": spec in body must be of type object: "string"'),
]


def test_invalid_values_are_rejected_with_messages(define) -> None:
    widgets = define(CHECKED)
    said = {json.dumps(spec): widgets.dry(spec).at("message") for spec, _ in REFUSED}
    assert said == {json.dumps(spec): f'Widget.{widgets.group} "one" is invalid: {text}' for spec, text in REFUSED}


def test_valid_values_are_accepted(define) -> None:
    widgets = define(CHECKED)
    right = [
        {"i": 3.0},
        {"n": 3},
        {"hi": "äöü"},
        {"lo": "ab"},
        {"e": "a"},
        {"xmax": 9.4},
        {"m": 0},
        {"ios": 1},
        {"ios": "1%"},
        {"set": ["a", "b"]},
        {"o": {"x": ""}},
        {},
    ]
    assert [widgets.dry(spec).status for spec in right] == [201] * len(right)


def test_all_validation_errors_are_reported(define) -> None:
    widgets = define(of_spec({"a": {**STRING, "maxLength": 1}, "b": {**INTEGER, "minimum": 5}}, required=["c"]))
    reply = widgets.dry({"a": "long", "b": 1})
    assert sorted(causes_of(reply)) == [
        ("FieldValueInvalid", "spec.b"),
        ("FieldValueRequired", "spec.c"),
        ("FieldValueTooLong", "spec.a"),
    ]
    assert reply.at("message").startswith(f'Widget.{widgets.group} "one" is invalid: [')


FORMATS = {
    "date": ("2024-02-29", "2024-02-30"),
    "date-time": ("2024-01-01T00:00:00Z", "2024-01-01"),
    "byte": ("aGk=", "!!"),
    "ipv4": ("1.2.3.4", "1.2.3"),
    "ipv6": ("::1", "g::"),
    "cidr": ("10.0.0.0/8", "10.0.0.0"),
    "mac": ("00:11:22:33:44:55", "00:11"),
    "uuid": ("0f8fad5b-d9cb-469f-a165-70867728950e", "x"),
    "uuid4": ("0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5b-d9cb-169f-a165-70867728950e"),
    "duration": ("1h", "soon"),
    "email": ("a@b.c", "a"),
    "hostname": ("a.example.com", "-a"),
    "uri": ("http://x", "x"),
    "hexcolor": ("#fff", "#ggg"),
    "rgbcolor": ("rgb(1,2,3)", "rgb(1,2)"),
    "isbn10": ("0306406152", "0306406153"),
    "bsonobjectid": ("507f1f77bcf86cd799439011", "x"),
    "creditcard": ("4111111111111111", "4111"),
    "ssn": ("111-22-3333", "1"),
}


def test_string_formats_are_validated(define) -> None:
    widgets = define(of_spec({f"f{n}": {**STRING, "format": name} for n, name in enumerate(FORMATS)}))
    assert {name: widgets.dry({f"f{n}": FORMATS[name][0]}).status for n, name in enumerate(FORMATS)} == dict.fromkeys(
        FORMATS, 201
    )
    for n, (name, (_, wrong)) in enumerate(FORMATS.items()):
        place = f"spec.f{n}"
        assert f'{place}: Invalid value: "{wrong}": {place} in body must be of type {name}: "{wrong}"' in widgets.dry(
            {f"f{n}": wrong}
        ).at("message")


#: Texts that only a careless reader tells apart from those that are of a format.
ODD_FORMATS = {
    "cidr": ("010.0.0.0/08", "10.0.0.0/255.0.0.0"),
    "ipv4": ("::ffff:1.2.3.4", "1.2.3.4."),
    "ipv6": ("::ffff:1.2.3.4", "fe80::1%eth0"),
    "mac": ("001122334455", "00:11:22:33:44:55:66"),
    "email": ("A. <a@b> (c)", "a..b@c"),
    "ssn": ("111 22 3333", "111223333"),
    "date-time": ("2024-01-01t00:00:00,1+99:99", "2024-01-01T24:00:00Z"),
    "date": ("0000-02-29", "2023-02-29"),
    "duration": ("1 week", "99999999999999999999h"),
    "creditcard": ("5139288802098206", "2223003122003222"),
}


def test_string_formats_follow_the_go_parsers(define) -> None:
    widgets = define(of_spec({f"f{n}": {**STRING, "format": name} for n, name in enumerate(ODD_FORMATS)}))
    right, wrong = ({f"f{n}": pair[which] for n, pair in enumerate(ODD_FORMATS.values())} for which in (0, 1))
    assert widgets.dry(right).status == 201
    assert sorted(place for _, place in causes_of(widgets.dry(wrong))) == sorted(f"spec.{name}" for name in wrong)


def test_large_numbers_in_enums(define) -> None:
    widgets = define(of_spec({"a": {"type": "number", "enum": [-(2**63), 1.0]}}))
    assert [widgets.dry({"a": value}).status for value in (10**20, 1, 1.0)] == [201] * 3
    assert widgets.dry({"a": "x"}).at("details", "causes", 1, "message").endswith('supported values: "-9223372036854775808", "1"')


def test_cel_rule_on_integer_rejects_a_float(define) -> None:
    ruled = {**INTEGER, "x-kubernetes-validations": [{"rule": "true"}, {"rule": "self > 1"}]}
    refused = define(of_spec({"a": ruled})).dry({"a": 3.0})
    assert [cause["message"] for cause in refused.at("details", "causes")] == [
        'Invalid value: "integer": invalid data, expected int, got float64 evaluating rule: self > 1'
    ]


def test_json_type_change_increments_generation(define) -> None:
    widgets = define()
    widgets.create(spec={"a": [1]})
    generations = [widgets.merge({"spec": {"a": [value]}}).at("metadata", "generation") for value in (1, True, 1, 2)]
    assert generations == [1, 2, 3, 4]


def test_invalid_scale_bodies_are_rejected(api, define) -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    widgets = define(ANY, version(ANY, subresources={"scale": scale}))
    widgets.create(spec={"replicas": 1})
    unread = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "one"}, "spec": {"replicas": "x"}}
    for body, query in (("{", None), (unread, None), ({**unread, "spec": {}, "x": 1}, {"fieldValidation": "Strict"})):
        refused = api.put(widgets.path("one", "scale"), body, query)
        said = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
        assert (refused.status, refused.at("message")) == (400, said)


def test_printer_columns_end_at_an_unreadable_path(api, define) -> None:
    paths = {"large": ".spec.n", "wrong": ".spec.a[x]", "behind": ".spec.n"}
    columns = [{"name": name, "type": "integer", "jsonPath": path} for name, path in paths.items()]
    widgets = define(ANY, version(ANY, additionalPrinterColumns=columns))
    widgets.create(spec={"n": 1e21})
    shown = api.get(widgets.path(), headers={"Accept": TABLE})
    assert [column["name"] for column in shown.at("columnDefinitions")] == ["Name", "large"]
    assert shown.at("rows", 0, "cells") == ["one", -(2**63)]


def test_managed_fields_with_a_type_beside_int_or_string(define) -> None:
    widgets = define(of_spec({"a": {"x-kubernetes-int-or-string": True, **STRING}}))
    assert "managedFields" not in widgets.dry({"a": 1}).at("metadata")
    assert "managedFields" in widgets.dry({"a": "1"}).at("metadata")


def test_unknown_formats_are_ignored(define) -> None:
    assert define(of_spec({"x": {**STRING, "format": "nosuch"}})).dry({"x": "anything"}).status == 201


# ---------------------------------------------------------------- pruning, strictness, defaults, nulls


@pytest.fixture
def prunable() -> dict[str, Any]:
    return of_spec(
        {
            "o": struct({"x": STRING}),
            "a": {"type": "array", "items": struct({"x": STRING})},
            "m": struct(additionalProperties=struct({"x": STRING})),
            "p": struct({"known": struct({"x": STRING})}, **{KEEP: True}),
            "any": {KEEP: True},
            "free": {"type": "array", KEEP: True, "items": struct({"x": struct({"y": STRING})})},
            "rows": {"type": "array", KEEP: True, "items": {"type": "array", "items": struct()}},
            "entries": struct(additionalProperties=struct({"x": STRING}), **{KEEP: True}),
        }
    )


@pytest.mark.parametrize(
    ("spec", "kept", "unknown"),
    [
        ({"zz": 1}, {}, ["spec.zz"]),
        ({"o": {"x": "1", "y": 2}}, {"o": {"x": "1"}}, ["spec.o.y"]),
        ({"a": [{"x": "1", "y": 2}, {"z": 3}]}, {"a": [{"x": "1"}, {}]}, ["spec.a[0].y", "spec.a[1].z"]),
        ({"m": {"k": {"x": "1", "y": 2}}}, {"m": {"k": {"x": "1"}}}, ["spec.m.k.y"]),
        ({"p": {"known": {"y": 2}, "other": {"y": [1]}}}, {"p": {"known": {}, "other": {"y": [1]}}}, ["spec.p.known.y"]),
        ({"any": {"deep": [{"er": None}]}}, {"any": {"deep": [{"er": None}]}}, []),
        (
            {"free": [{"x": {"y": "1", "z": 2}, "w": {"v": 3}}]},
            {"free": [{"x": {"y": "1"}, "w": {"v": 3}}]},
            ["spec.free[0].x.z"],
        ),
        ({"rows": [[{"a": {"b": 1}}]]}, {"rows": [[{"a": {"b": 1}}]]}, []),
        ({"entries": {"k": {"x": "1", "y": 2}}}, {"entries": {"k": {"x": "1"}}}, ["spec.entries.k.y"]),
    ],
)
def test_unknown_fields_are_pruned_and_reported(define, prunable, spec: Any, kept: Any, unknown: list[str]) -> None:
    widgets = define(prunable)
    texts = [f'unknown field "{path}"' for path in unknown]
    assert widgets.dry(spec, fieldValidation="Ignore").at("spec") == kept
    warned = widgets.dry(spec, fieldValidation="Warn")
    assert (warned.status, warned.at("spec")) == (201, kept)
    assert warned.headers.get("warning", "") == ", ".join(f"299 - {json.dumps(text)}" for text in texts)
    strict = widgets.dry(spec, fieldValidation="Strict")
    assert strict.status == (400 if unknown else 201)
    if unknown:
        assert strict.at("message").endswith(f"strict decoding error: {', '.join(texts)}")


def test_duplicate_fields_and_unknown_metadata_fields_are_reported(api, define) -> None:
    widgets = define(of_spec({"s": STRING}))
    strict = {**DRY, "fieldValidation": "Strict"}
    twice = json.dumps(widgets.of(spec={"s": "x"})).replace('"s"', '"s": "y", "s"')
    assert 'duplicate field "spec.s"' in api.post(widgets.path(), twice, strict).at("message")
    odd = widgets.of(metadata={"name": "one", "odd": 1})
    assert 'unknown field "metadata.odd"' in api.post(widgets.path(), odd, strict).at("message")
    assert widgets.create("one", spec={}).status == 201
    assert 'unknown field "spec.u"' in widgets.merge({"spec": {"u": 1}}, fieldValidation="Strict").at("message")
    assert ".spec.u: field not declared in schema" in widgets.apply({"u": 1}, "m").at("message")


@pytest.mark.parametrize(
    ("spec", "filled"),
    [
        ({}, {"a": "x", "od": {"b": 2}}),
        ({"a": "", "od": {"b": 1}}, {"a": "", "od": {"b": 1}}),
        ({"a": None, "o": {}}, {"a": "x", "o": {"b": 1}, "od": {"b": 2}}),
        (
            {"l": [{}, {"v": "own"}], "m": {"k": {}}},
            {"a": "x", "l": [{"v": "w"}, {"v": "own"}], "m": {"k": {"v": True}}, "od": {"b": 2}},
        ),
    ],
)
def test_defaults_are_set_for_missing_fields(define, spec: Any, filled: Any) -> None:
    widgets = define(
        of_spec(
            {
                "a": {**STRING, "default": "x"},
                "o": struct({"b": {**INTEGER, "default": 1}}),
                "od": struct({"b": {**INTEGER, "default": 2}}, default={}),
                "l": {"type": "array", "items": struct({"v": {**STRING, "default": "w"}})},
                "m": struct(additionalProperties=struct({"v": {"type": "boolean", "default": True}})),
            }
        )
    )
    assert widgets.dry(spec).at("spec") == filled


def test_defaults_are_restored_and_applied_to_stored_objects(api, define) -> None:
    widgets = define(of_spec({"a": {**STRING, "default": "x"}, "gone": STRING}))
    assert widgets.create(spec={"a": "own", "gone": "bye"}).status == 201
    assert widgets.merge({"spec": {"a": None}}).at("spec") == {"a": "x", "gone": "bye"}
    widgets.redefine(version(of_spec({"a": STRING, "later": {**INTEGER, "default": 7}})))
    assert until(lambda: api.get(widgets.path("one")).at("spec", "later") == 7)
    assert api.get(widgets.path()).at("items", 0, "spec") == {"a": "x", "later": 7}


@pytest.mark.parametrize(
    ("spec", "outcome"),
    [
        ({"n": None}, {"n": None}),
        ({"s": None}, {}),
        ({"a": [None]}, {"a": [None]}),
        ({"nd": None}, {"nd": None}),
        ({"as": [None]}, 422),
    ],
)
def test_null_values_and_nullable_fields(define, spec: Any, outcome: Any) -> None:
    null = {**STRING, "nullable": True}
    widgets = define(
        of_spec(
            {
                "n": null,
                "s": STRING,
                "a": {"type": "array", "items": null},
                "as": {"type": "array", "items": STRING},
                "nd": {**null, "default": "x"},
            }
        )
    )
    reply = widgets.dry(spec)
    if isinstance(outcome, int):
        assert reply.status == outcome
    else:
        assert reply.at("spec") in (outcome, {**outcome, "nd": "x"})
        assert set(reply.at("spec")) - {"nd"} == set(outcome) - {"nd"}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({}, "spec.r.apiVersion"),
        ({"apiVersion": "v1"}, "spec.r.kind"),
        ({"apiVersion": "v1", "kind": ""}, "spec.r.kind"),
        ({"apiVersion": "a/b/c", "kind": "Pod"}, "spec.r.apiVersion"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b c"}}}, "spec.r.metadata.labels"),
    ],
)
def test_embedded_resources_are_validated(define, value: Any, fault: str) -> None:
    widgets = define(of_spec({"r": struct(**{"x-kubernetes-embedded-resource": True, KEEP: True})}))
    assert fault in [place for _, place in causes_of(widgets.dry({"r": value}))]


def test_embedded_resources_keep_kind_and_metadata(define) -> None:
    widgets = define(of_spec({"r": struct({"spec": struct({"x": STRING})}, **{"x-kubernetes-embedded-resource": True})}))
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"x": "1"}}
    reply = widgets.dry({"r": {**whole, "other": 1, "metadata": {**whole["metadata"], "odd": 1}}})
    assert reply.at("spec", "r") == whole


# ---------------------------------------------------------------- requests


def test_kind_and_api_version_must_match_the_path(api, define) -> None:
    widgets = define()
    for change, status in (({"kind": "Gadget"}, 422), ({"apiVersion": f"{widgets.group}/v2"}, 400), ({"apiVersion": "v1"}, 400)):
        reply = api.post(widgets.path(), {**widgets.of(), **change}, DRY)
        assert reply.status == status, change
    widgets.create()
    assert 'kind: Invalid value: "Gadget": must be Widget' in api.post(
        widgets.path(), {**widgets.of(), "kind": "Gadget"}, DRY
    ).at("message")


def test_put_requires_a_resource_version(api, define) -> None:
    widgets = define()
    made = widgets.create(spec={"a": 1}).json
    without = api.put(widgets.path("one"), widgets.of(spec={"a": 2}))
    assert (without.status, without.at("details", "causes", 0, "field")) == (422, "metadata.resourceVersion")
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in without.at("message")
    assert api.put(widgets.path("one"), {**made, "spec": {"a": 2}}).at("metadata", "generation") == 2
    stale = api.put(widgets.path("one"), {**made, "spec": {"a": 3}})
    assert (stale.status, stale.at("reason")) == (409, "Conflict")
    assert api.put(widgets.path("none"), {**made, "metadata": {**made["metadata"], "name": "none"}}).status in (404, 409)


def test_strategic_merge_patch_is_unsupported_for_custom_resources(api, define) -> None:
    widgets = define()
    widgets.create()
    assert api.patch(widgets.path("one"), {"spec": {}}, "application/strategic-merge-patch+json").status == 415


def test_create_get_and_delete_custom_resource(api, define) -> None:
    widgets = define()
    made = widgets.create(spec={"a": 1})
    assert (made.status, made.at("metadata", "generation")) == (201, 1)
    again = widgets.create()
    assert (again.status, again.at("message")) == (409, f'widgets.{widgets.group} "one" already exists')
    missing = api.get(widgets.path("two"))
    assert (missing.status, missing.at("message")) == (404, f'widgets.{widgets.group} "two" not found')
    deleted = api.delete(widgets.path("one"))
    assert (deleted.at("status"), deleted.at("details", "kind"), deleted.at("details", "group")) == (
        "Success",
        "widgets",
        widgets.group,
    )
    assert api.get(widgets.path("one")).status == 404


@pytest.mark.parametrize(
    ("number", "status", "shown"),
    [("1.0", 201, ""), ("1e3", 201, ""), ("1.5", 400, "1.5"), ("1e20", 400, "100000000000000000000"), ("1e21", 400, "1e+21")],
)
def test_numbers_in_metadata_are_parsed_as_int64(api, define, number: str, status: int, shown: str) -> None:
    widgets = define()
    head = f'"apiVersion":"{widgets.group}/v1","kind":"Widget"'
    reply = api.post(widgets.path(), f'{{{head},"metadata":{{"name":"one","generation":{number}}}}}')
    problem = f"json: cannot unmarshal number {shown} into Go struct field ObjectMeta.generation of type int64"
    assert (reply.status, reply.at("message", default=problem).endswith(problem)) == (status, True)


@pytest.mark.parametrize("number", ["18446744073709551615", "0xffffffffffffffff", "1_8446744073709551615"])
def test_applied_numbers_beyond_int64_become_floats(api, define, number: str) -> None:
    widgets = define()
    body = f"apiVersion: {widgets.group}/v1\nkind: Widget\nmetadata: {{name: one}}\nspec: {{a: {number}, b: 9007199254740993}}\n"
    made = api.patch(widgets.path("one"), body, "application/apply-patch+yaml", {"fieldManager": "m"})
    assert b'"spec":{"a":18446744073709552000,"b":9007199254740993}' in made.body


# ---------------------------------------------------------------- subresources


def test_status_subresource_separates_status_from_spec(api, define) -> None:
    widgets = define(ANY, version(of_spec({"a": INTEGER}), subresources={"status": {}}))
    made = widgets.create(spec={"a": 1}, status={"x": 1})
    assert "status" not in made.json
    assert widgets.merge({"spec": {"a": 2}, "status": {"x": 1}}).json.keys().isdisjoint({"status"})
    reply = widgets.merge({"spec": {"a": 9}, "status": {"x": 2}}, "status")
    assert (reply.at("spec"), reply.at("status"), reply.at("metadata", "generation")) == ({"a": 2}, {"x": 2}, 2)
    labelled = widgets.merge({"metadata": {"labels": {"l": "m"}}})
    assert labelled.at("metadata", "generation") == 2
    assert api.get(widgets.path("one", "status")).at("status") == {"x": 2}


def test_without_status_subresource_status_is_an_ordinary_field(api, define) -> None:
    widgets = define(of_spec({"a": INTEGER}))
    assert widgets.create(spec={}, status={"x": 1}).at("status") == {"x": 1}
    assert widgets.merge({"status": {"x": 2}}).at("metadata", "generation") == 2
    assert api.get(widgets.path("one", "status")).status == 404


SCALE = {
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
    "status": {},
}


def test_scale_subresource(api, define) -> None:
    widgets = define(ANY, version(of_spec({"replicas": INTEGER}), subresources=SCALE))
    widgets.create(spec={"replicas": 3})
    widgets.merge({"status": {"replicas": 2, "selector": "a=b"}}, "status")
    scale = api.get(widgets.path("one", "scale")).json
    assert (scale["kind"], scale["apiVersion"], scale["spec"], scale["status"]) == (
        "Scale",
        "autoscaling/v1",
        {"replicas": 3},
        {"replicas": 2, "selector": "a=b"},
    )
    assert api.put(widgets.path("one", "scale"), {**scale, "spec": {"replicas": 5}}).at("spec", "replicas") == 5
    assert widgets.merge({"spec": {"replicas": 6}}, "scale").at("spec") == {"replicas": 6}
    assert api.get(widgets.path("one")).at("spec", "replicas") == 6
    refused = widgets.merge({"spec": {"replicas": -1}}, "scale")
    assert (refused.status, "spec.replicas" in refused.at("message")) == (422, True)


# ---------------------------------------------------------------- versions


def test_two_versions_serve_the_same_object(api, define) -> None:
    widgets = define(
        ANY,
        version(of_spec({"a": STRING, "b": STRING})),
        version(of_spec({"a": STRING, "c": {**STRING, "default": "new"}}), "v2", storage=False),
    )
    widgets.create(spec={"a": "1", "b": "2"})
    second = api.get(widgets.path("one", version="v2"))
    assert (second.at("apiVersion"), second.at("spec")) == (f"{widgets.group}/v2", {"a": "1"})  # no defaults after a conversion
    assert api.get(widgets.path("one")).at("spec") == {"a": "1", "b": "2"}
    items = api.get(widgets.path(version="v2")).json["items"]
    assert [item["apiVersion"] for item in items] == [f"{widgets.group}/v2"]


def test_deprecated_version_warns_and_unserved_version_returns_404(api, define) -> None:
    widgets = define(
        ANY,
        version(ANY),
        version(ANY, "v1beta1", storage=False, deprecated=True),
        version(ANY, "v1alpha1", storage=False, deprecated=True, deprecationWarning="use v1"),
        version(ANY, "v0", storage=False, served=False),
    )
    warnings = {name: api.get(widgets.path(version=name)).headers.get("warning") for name in ("v1", "v1beta1", "v1alpha1")}
    assert warnings == {
        "v1": None,
        "v1beta1": f'299 - "{widgets.group}/v1beta1 Widget is deprecated; use {widgets.group}/v1 Widget"',
        "v1alpha1": '299 - "use v1"',
    }
    assert api.get(widgets.path(version="v0")).status == 404


def test_status_stored_versions_are_extended(define) -> None:
    widgets = define(ANY)
    widgets.redefine(version(ANY, storage=False), version(ANY, "v2"))
    assert until(lambda: widgets.definition().at("status", "storedVersions") == ["v1", "v2"])


# ---------------------------------------------------------------- reading


def test_selectable_fields(api, define) -> None:
    fields = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}]
    widgets = define(ANY, version(of_spec({"color": STRING, "size": INTEGER}), selectableFields=fields))
    for name, color, size in (("a", "red", 1), ("b", "blue", 1), ("c", "red", 2)):
        widgets.create(name, spec={"color": color, "size": size})
    for selector, names in (
        ("spec.color=red", "ac"),
        ("spec.size=1,spec.color!=red", "b"),
        ("metadata.name=c", "c"),
        ("spec.color=green", ""),
    ):
        items = api.get(widgets.path(), {"fieldSelector": selector}).json["items"]
        assert "".join(item["metadata"]["name"] for item in items) == names, selector
    refused = api.get(widgets.path(), {"fieldSelector": "spec.other=1"})
    assert (refused.status, refused.at("message")) == (400, "field label not supported: spec.other")


def test_printer_columns(api, define) -> None:
    columns = [
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1, "description": "how large"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    widgets = define(ANY, version(of_spec({"color": STRING, "size": INTEGER}), additionalPrinterColumns=columns))
    widgets.create("a", spec={"color": "red", "size": 5})
    widgets.create("b", spec={})
    table = api.get(widgets.path(), headers={"Accept": TABLE}).json
    assert [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", "string", 0),
        ("Color", "string", 0),
        ("Size", "integer", 1),
        ("Age", "date", 0),
    ]
    assert table["columnDefinitions"][2]["description"] == "how large"
    assert [row["cells"][:3] for row in table["rows"]] == [["a", "red", 5], ["b", None, None]]


def test_default_printer_columns_are_name_and_age(api, define) -> None:
    widgets = define()
    widgets.create("a")
    table = api.get(widgets.path(), headers={"Accept": TABLE}).json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Age"]
    assert table["rows"][0]["cells"][0] == "a"


def test_watch_custom_resources(api, define) -> None:
    widgets = define()
    start = api.get(widgets.path()).at("metadata", "resourceVersion")
    widgets.create(spec={"a": 1})
    widgets.merge({"spec": {"a": 2}})
    api.delete(widgets.path("one"))
    events = api.watch(widgets.path(), {"resourceVersion": start}, count=3)
    assert [(event["type"], event["object"]["spec"]["a"], event["object"]["kind"]) for event in events] == [
        ("ADDED", 1, "Widget"),
        ("MODIFIED", 2, "Widget"),
        ("DELETED", 2, "Widget"),
    ]


# ---------------------------------------------------------------- apply


def test_apply_merges_lists_by_list_type(api, define) -> None:
    port = struct({"port": INTEGER, "name": STRING}, required=["port"])
    widgets = define(
        of_spec(
            {
                "atomic": {"type": "array", "items": STRING},
                "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                "map": {"type": "array", "items": port, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"]},
                "s": STRING,
            }
        )
    )
    assert widgets.apply({"set": ["a"], "map": [{"port": 1, "name": "x"}], "s": "first"}, "one").status == 201
    both = widgets.apply({"set": ["b"], "map": [{"port": 2, "name": "y"}]}, "two")
    assert both.at("spec") == {"set": ["a", "b"], "map": [{"port": 1, "name": "x"}, {"port": 2, "name": "y"}], "s": "first"}
    conflict = widgets.apply({"s": "second", "atomic": ["z"]}, "two")
    assert (conflict.status, conflict.at("details", "causes", 0, "field")) == (409, ".spec.s")
    assert conflict.at("message") == 'Apply failed with 1 conflict: conflict with "one": .spec.s'
    forced = widgets.apply({"s": "second", "atomic": ["z"]}, "two", force="true")
    assert forced.at("spec") == {"atomic": ["z"], "set": ["a"], "map": [{"port": 1, "name": "x"}], "s": "second"}
    managers = [(entry["manager"], entry["operation"]) for entry in api.get(widgets.path("one")).at("metadata", "managedFields")]
    assert managers == [("one", "Apply"), ("two", "Apply")]


# ---------------------------------------------------------------- ratcheting


def test_unchanged_invalid_values_are_tolerated_on_update(define) -> None:
    widgets = define(of_spec({"a": STRING, "n": INTEGER}))
    widgets.create(spec={"a": "too long", "n": 1})
    widgets.redefine(version(of_spec({"a": {**STRING, "maxLength": 3}, "n": INTEGER})))
    assert until(lambda: widgets.create("two", DRY, spec={"a": "too long"}).status == 422)
    assert widgets.merge({"spec": {"n": 2}}).at("spec") == {"a": "too long", "n": 2}
    assert causes_of(widgets.merge({"spec": {"a": "other too long"}})) == [("FieldValueTooLong", "spec.a")]
    assert widgets.merge({"spec": {"a": "ok"}}).status == 200
    assert widgets.merge({"spec": {"a": "too long"}}).status == 422


# ---------------------------------------------------------------- deletion


def test_finalizers_delay_deletion(api, define) -> None:
    widgets = define()
    assert widgets.create(metadata={"name": "one", "finalizers": ["example.com/hold"]}).status == 201
    deleted = api.delete(widgets.path("one"))
    assert (deleted.at("kind"), deleted.at("metadata", "generation"), "deletionTimestamp" in deleted.at("metadata")) == (
        "Widget",
        2,
        True,
    )
    more = widgets.merge({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}})
    assert (more.status, more.at("details", "causes", 0, "field")) == (422, "metadata.finalizers")
    assert widgets.merge({"metadata": {"finalizers": None}}).status == 200
    assert api.get(widgets.path("one")).status == 404


def test_deleting_a_crd_deletes_its_objects(api, define) -> None:
    widgets = define()
    widgets.create("free")
    widgets.create(metadata={"name": "held", "finalizers": ["example.com/hold"]})
    assert "deletionTimestamp" in api.delete(f"{DEFINITIONS}/{widgets.name}").at("metadata")
    assert until(lambda: widgets.create("late").status == 403)
    refused = widgets.create("late")
    assert (refused.status, refused.at("reason")) == (403, "Forbidden")
    assert "create not allowed while custom resource definition is terminating" in refused.at("message")
    assert widgets.condition("Terminating")["status"] == "True"
    if api.is_ours:  # a real server deletes asynchronously, which may take minutes
        assert api.get(widgets.path("free")).status == 404
        assert "deletionTimestamp" in api.get(widgets.path("held")).at("metadata")
        assert widgets.condition("Terminating")["reason"] == "InstanceDeletionInProgress"
        assert widgets.merge({"metadata": {"finalizers": None}}, name="held").status == 200
        assert widgets.definition().status == 404
        assert api.get(widgets.path()).status == 404


def test_recreated_crd_does_not_restore_deleted_objects(api, define) -> None:
    if not api.is_ours:
        pytest.skip("a real server deletes asynchronously, which may take minutes")
    widgets = define()
    widgets.create()
    api.delete(f"{DEFINITIONS}/{widgets.name}")
    assert until(lambda: widgets.definition().status == 404)
    assert api.post(DEFINITIONS, widgets.body).status == 201
    assert until(lambda: api.get(widgets.path()).status == 200)
    assert api.get(widgets.path()).at("items") == []
