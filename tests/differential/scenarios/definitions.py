"""CustomResourceDefinitions: validation, defaulting, status, names, updates, deletion, discovery and OpenAPI."""

from __future__ import annotations

import json
from typing import Any

from tests.differential import pacing
from tests.differential.client import APPLY, JSON_PATCH, MERGE, PARTIAL, STRATEGIC, TABLE, Client
from tests.differential.definitions import ANY, CRDS, DRY, condition, definition, make, note, obj, served, where
from tests.differential.pacing import until
from tests.differential.registry import scenario


def tries(client: Client, *bodies: Any, query: Any = None) -> None:
    """What the server says about creating each of these definitions, without doing it."""
    for body in bodies:
        client.post(CRDS, body, query or DRY)


def field(client: Client, schema: Any, **more: Any) -> dict[str, Any]:
    """A definition with the schema at spec.f."""
    return definition(client, obj({"spec": obj({"f": schema})}), more or None)


def fields(client: Client, *schemas: Any) -> None:
    tries(client, *(field(client, s) for s in schemas))


def named(client: Client, **names: Any) -> dict[str, Any]:
    return definition(client, names=names)


def versions(client: Client, *entries: dict[str, Any], **spec: Any) -> dict[str, Any]:
    full = [{"served": True, "storage": False, "schema": {"openAPIV3Schema": ANY}, **e} for e in entries]
    return definition(client, versions=full, **spec)


STRING = {"type": "string"}

# ---------------------------------------------------------------- the definition's own fields


@scenario
def a_minimal_definition_is_defaulted(client: Client) -> None:
    """singular, listKind, conversion and status appear; the rest stays as sent."""
    tries(
        client,
        definition(client),
        definition(client, scope="Cluster"),
        named(client, shortNames=["wd"], categories=["all", "mine"]),
        named(client, singular="wid", listKind="Wids"),
        definition(client, preserveUnknownFields=False),
        definition(client, conversion={"strategy": "None"}),
        {**definition(client), "status": {"storedVersions": ["v7"], "conditions": []}},
    )


@scenario
def the_name_is_plural_dot_group(client: Client) -> None:
    """metadata.name must equal plural.group."""
    for name in ("other", f"widget.g{client.id}.example.com", "", "UP.example.com"):
        tries(client, {**definition(client), "metadata": {"name": name}})
    tries(client, {**definition(client), "metadata": {"generateName": "generated-"}}, {**definition(client), "metadata": None})


@scenario
def the_group_is_a_domain_with_a_dot(client: Client) -> None:
    """group: required, lower case, at least two labels."""
    for group in ("", "nodot", "Upper.example.com", "under_score.example.com", "a..b", "x." + "y" * 260):
        tries(client, {**definition(client, group=group), "metadata": {"name": f"widgets.{group}"}})


@scenario
def names_are_checked(client: Client) -> None:
    """plural, singular, shortNames and categories are DNS labels; kind and listKind too, whatever their case."""
    tries(
        client,
        named(client, kind=""),
        named(client, kind="Has Space"),
        named(client, kind="1Digit"),
        named(client, listKind="Widget"),
        named(client, singular="Widget"),
        named(client, singular="wid_get"),
        named(client, shortNames=["ok", "Not_ok", ""]),
        named(client, categories=["ALL", "a b"]),
        named(client, listKind="widget-List"),
        named(client, kind="widget-Kind"),
        named(client, listKind="bad kind"),
        named(client, shortNames=["a" * 64]),
        named(client, shortNames=["same", "same"]),
    )
    tries(client, definition(client, plural="Widgets"), definition(client, plural="w"), definition(client, plural="wid.gets"))


@scenario
def the_scope_is_one_of_two(client: Client) -> None:
    """scope: Cluster or Namespaced."""
    tries(client, *(definition(client, scope=s) for s in ("", "namespaced", "Global", None)))


@scenario
def parts_of_the_spec_are_required(client: Client) -> None:
    """An empty spec names everything that is missing."""
    body = definition(client)
    tries(
        client,
        {**body, "spec": {}},
        {**body, "spec": None},
        {k: v for k, v in body.items() if k != "spec"},
        {**body, "spec": []},
        {**body, "spec": {**body["spec"], "names": {}}},
        {**body, "spec": {**body["spec"], "versions": []}},
        {**body, "apiVersion": "apiextensions.k8s.io/v1beta1"},
        {**body, "kind": "Definition"},
    )


@scenario
def one_version_is_the_storage_version(client: Client) -> None:
    """Exactly one version has storage=true; names are DNS labels and unique."""
    tries(
        client,
        versions(client, {"name": "v1"}),
        versions(client, {"name": "v1", "storage": True}, {"name": "v2", "storage": True}),
        versions(client, {"name": "v1", "storage": True}, {"name": "v1"}),
        versions(client, {"name": "V1", "storage": True}),
        versions(client, {"name": "", "storage": True}),
        versions(client, {"name": "v1.2", "storage": True}),
        versions(client, {"name": "v1", "storage": True, "served": False}),
        versions(client, {"name": "v1", "storage": "yes"}),
        versions(client, {"name": "v1beta1"}, {"name": "v2", "storage": True}, {"name": "foo"}),
    )


@scenario
def a_version_needs_a_schema(client: Client) -> None:
    """schema.openAPIV3Schema is required of every version and must be an object."""
    tries(
        client,
        definition(client, version={"schema": None}),
        definition(client, version={"schema": {}}),
        definition(client, {"type": "string"}),
        definition(client, {"properties": {}}),
        definition(client, obj(nullable=True)),
        definition(client, obj({"apiVersion": {"type": "integer"}})),
        definition(client, obj({"kind": STRING, "metadata": {"type": "string"}})),
        versions(client, {"name": "v1", "storage": True}, {"name": "v2", "schema": {}}),
    )


@scenario
def preserve_unknown_fields_is_gone(client: Client) -> None:
    """spec.preserveUnknownFields=true is refused."""
    tries(client, definition(client, preserveUnknownFields=True), definition(client, preserveUnknownFields="true"))


@scenario
def deprecation_needs_deprecated(client: Client) -> None:
    """deprecationWarning: only with deprecated, 1..256 printable characters."""
    tries(
        client,
        definition(client, version={"deprecated": True}),
        definition(client, version={"deprecationWarning": "no"}),
        definition(client, version={"deprecated": True, "deprecationWarning": "use v2"}),
        definition(client, version={"deprecated": True, "deprecationWarning": ""}),
        definition(client, version={"deprecated": True, "deprecationWarning": "x" * 257}),
        definition(client, version={"deprecated": True, "deprecationWarning": "two\nlines"}),
    )


@scenario
def a_protected_group_needs_approval(client: Client) -> None:
    """*.k8s.io and *.kubernetes.io want the annotation api-approved.kubernetes.io."""
    for group in (f"g{client.id}.k8s.io", f"g{client.id}.kubernetes.io", f"g{client.id}.x-k8s.io"):
        for value in (None, "", "nonsense", "unapproved, experimental", "https://github.com/kubernetes/kubernetes/pull/1"):
            if group.endswith("x-k8s.io") and value:
                continue
            body = definition(client, group=group)
            body["metadata"] = {
                "name": f"widgets.{group}",
                **({} if value is None else {"annotations": {"api-approved.kubernetes.io": value}}),
            }
            tries(client, body)


# ---------------------------------------------------------------- structural schemas


@scenario
def every_value_has_a_type(client: Client) -> None:
    """type is required everywhere and must be known."""
    fields(
        client,
        {},
        {"type": ""},
        {"type": "str"},
        {"type": "null"},
        {"description": "only"},
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "object", "properties": {"g": {}}},
        {"type": "object", "additionalProperties": {}},
        {"type": "object", "additionalProperties": True},
        {"type": "object", "additionalProperties": False},
        {"type": ["string", "null"]},
    )


@scenario
def properties_and_additional_properties_exclude_each_other(client: Client) -> None:
    """additionalProperties and properties are mutually exclusive; unknown keywords are dropped with a warning."""
    fields(
        client,
        obj({"a": STRING}, additionalProperties=STRING),
        obj(additionalProperties=STRING),
        {"type": "string", "properties": {"a": STRING}},
        {"type": "array", "items": [STRING]},
        {"type": "array", "items": STRING, "additionalItems": STRING},
        {"type": "string", "maxLenght": 3},
    )


@scenario
def some_keywords_are_not_supported(client: Client) -> None:
    """$ref, definitions, dependencies, patternProperties, uniqueItems=true, readOnly … are forbidden or ignored."""
    fields(
        client,
        {"$ref": "#/definitions/x"},
        {"type": "object", "$ref": "x"},
        obj(definitions={"x": STRING}),
        obj(dependencies={"a": ["b"]}),
        obj(patternProperties={"^x": STRING}),
        {"type": "array", "items": STRING, "uniqueItems": True},
        {"type": "string", "id": "x"},
        {"type": "string", "$schema": "http://json-schema.org/draft-04/schema#"},
        {"type": "string", "readOnly": True},
        {"type": "string", "externalDocs": {"url": "http://x"}},
        {"type": "string", "example": "e", "title": "t", "description": "d"},
    )


@scenario
def logic_holds_no_structure(client: Client) -> None:
    """Within anyOf, oneOf, allOf and not: no type, default, description, nullable, additionalProperties."""
    fields(
        client,
        {"type": "string", "anyOf": [{"type": "string"}]},
        {"type": "string", "allOf": [{"default": "x"}]},
        {"type": "string", "oneOf": [{"description": "d"}]},
        {"type": "string", "not": {"nullable": True}},
        obj({"a": STRING}, allOf=[{"properties": {"b": {"minLength": 1}}}]),
        obj({"a": STRING}, anyOf=[{"properties": {"a": {"type": "string"}}}]),
        obj(additionalProperties=STRING, not_=1) | {"not": {"additionalProperties": {"minLength": 2}}},
        {"type": "string", "not": {"title": "t"}},
        {"type": "array", "items": STRING, "anyOf": [{"items": {"minLength": 1}}]},
        {"type": "string", "oneOf": [{"x-kubernetes-preserve-unknown-fields": True}]},
        obj({"a": STRING}, oneOf=[{"required": ["a"]}, {"not": {"required": ["b"]}}]),
        {"type": "string", "anyOf": []},
    )


@scenario
def patterns_and_bounds_are_checked(client: Client) -> None:
    """Patterns must compile; odd bounds and formats are looked at or not."""
    fields(
        client,
        {"type": "string", "pattern": "("},
        {"type": "string", "pattern": "^(?=a)"},
        {"type": "integer", "minimum": 5, "maximum": 1},
        {"type": "string", "minLength": -1},
        {"type": "string", "minLength": 1.5},
        {"type": "string", "enum": []},
        {"type": "string", "enum": [1]},
        {"type": "string", "format": "nonsense"},
        {"type": "number", "multipleOf": 0},
        {"type": "integer", "format": "int32", "exclusiveMinimum": True},
        {"type": "string", "enum": ["a", "a"]},
        obj(required=["nope"]),
        {"type": "integer", "maximum": "5"},
    )


@scenario
def preserve_unknown_fields_in_a_schema(client: Client) -> None:
    """x-kubernetes-preserve-unknown-fields: true or absent, on objects only (or untyped)."""
    key = "x-kubernetes-preserve-unknown-fields"
    fields(
        client,
        {key: True},
        {"type": "object", key: False},
        {"type": "string", key: True},
        {"type": "array", "items": {key: True}},
        {"type": "object", key: "yes"},
    )


@scenario
def int_or_string_in_a_schema(client: Client) -> None:
    """x-kubernetes-int-or-string: no type, and anyOf only in the two blessed forms."""
    key, both = "x-kubernetes-int-or-string", [{"type": "integer"}, {"type": "string"}]
    fields(
        client,
        {key: True},
        {key: False},
        {key: True, "type": "string"},
        {key: True, "anyOf": both},
        {key: True, "anyOf": both[::-1]},
        {key: True, "allOf": [{"anyOf": both}, {"pattern": "^x"}]},
        {key: True, "pattern": "^x", "maximum": 3},
        {key: True, "anyOf": [*both, {"pattern": "x"}]},
        {key: True, "default": 1.5},
        {key: True, "default": "x"},
    )


@scenario
def embedded_resources_in_a_schema(client: Client) -> None:
    """x-kubernetes-embedded-resource: an object with apiVersion, kind and metadata."""
    key = "x-kubernetes-embedded-resource"
    fields(
        client,
        obj(**{key: True}),
        obj(**{key: True, "x-kubernetes-preserve-unknown-fields": True}),
        {"type": "string", key: True},
        obj({"spec": obj({"a": STRING})}, **{key: True}),
        obj({"apiVersion": STRING, "kind": STRING, "metadata": obj()}, **{key: True}),
        obj({"metadata": obj({"name": {"type": "string", "pattern": "x"}})}, **{key: True}),
        obj({"metadata": obj({"labels": obj()})}, **{key: True}),
        obj({"kind": {"type": "integer"}}, **{key: True}),
    )
    tries(
        client,
        definition(client, obj({"metadata": obj({"name": {"type": "string", "maxLength": 5}})})),
        definition(client, obj({"metadata": obj({"labels": obj(additionalProperties=STRING)})})),
        definition(client, obj({"metadata": obj({"generateName": {"type": "string", "pattern": "^a"}})})),
        definition(client, obj({"metadata": obj(minProperties=1)})),
        definition(client, obj({"metadata": {"type": "object", "description": "d"}})),
    )


@scenario
def list_types_in_a_schema(client: Client) -> None:
    """x-kubernetes-list-type: atomic, set or map; map wants keys that exist and are required or defaulted; sets want scalars."""
    lt, lk = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
    item = obj({"k": STRING, "n": {"type": "integer", "default": 1}, "o": obj()}, required=["k"])

    def arr(items: Any, **more: Any) -> dict[str, Any]:
        return {"type": "array", "items": items, **more}

    fields(
        client,
        arr(STRING, **{lt: "bag"}),
        arr(STRING, **{lt: "set"}),
        arr(obj(), **{lt: "set"}),
        arr(obj(**{"x-kubernetes-map-type": "atomic"}), **{lt: "set"}),
        arr(arr(STRING), **{lt: "set"}),
        arr(arr(STRING, **{lt: "atomic"}), **{lt: "set"}),
        arr(STRING, **{lt: "map", lk: ["k"]}),
        arr(item, **{lt: "map"}),
        arr(item, **{lt: "map", lk: []}),
        arr(item, **{lt: "map", lk: ["k"]}),
        arr(item, **{lt: "map", lk: ["k", "n"]}),
        arr(item, **{lt: "map", lk: ["zz"]}),
        arr(item, **{lt: "map", lk: ["o"]}),
        arr(item, **{lt: "map", lk: ["k", "k"]}),
        arr(item, **{lk: ["k"]}),
        arr(item, **{lt: "set", lk: ["k"]}),
        {"type": "string", lt: "set"},
        arr(obj({"k": STRING}), **{lt: "map", lk: ["k"]}),
        arr({"type": "string", "nullable": True}, **{lt: "set"}),
        arr(obj({"k": {"type": "string", "nullable": True}}, required=["k"]), **{lt: "map", lk: ["k"]}),
    )


@scenario
def map_types_in_a_schema(client: Client) -> None:
    """x-kubernetes-map-type: granular or atomic, on objects."""
    key = "x-kubernetes-map-type"
    fields(
        client,
        obj(**{key: "atomic"}),
        obj(**{key: "granular"}),
        obj(**{key: "sparse"}),
        {"type": "string", key: "atomic"},
        {"type": "array", "items": STRING, key: "atomic"},
    )


@scenario
def defaults_must_fit_their_schema(client: Client) -> None:
    """A default is pruned, validated and refused when it does not fit."""
    fields(
        client,
        {"type": "string", "default": 1},
        {"type": "integer", "default": "1"},
        {"type": "integer", "default": 1.5},
        {"type": "integer", "maximum": 3, "default": 4},
        obj({"a": STRING}, default={"b": 1}),
        obj({"a": STRING}, default={"a": 1}),
        obj({"a": STRING}, required=["a"], default={}),
        {"type": "string", "default": None},
        {"type": "string", "nullable": True, "default": None},
        {"type": "string", "enum": ["a"], "default": "b"},
        {"type": "array", "items": STRING, "default": ["x", 1]},
        {"type": "string", "format": "date-time", "default": "now"},
        obj({"a": {"type": "integer", "default": 2}}, default={}),
        {"type": "string", "pattern": "^a", "default": "b"},
        {"type": "array", "items": STRING, "x-kubernetes-list-type": "set", "default": ["a", "a"]},
    )
    tries(
        client,
        definition(client, obj({"spec": obj()}, default={"spec": {}})),
        definition(client, obj({"metadata": obj(default={"name": "x"})})),
    )
    fields(client, obj({"metadata": obj(default={"name": "A"})}, **{"x-kubernetes-embedded-resource": True}))


# ---------------------------------------------------------------- rules in CEL


def rules(client: Client, schema: Any, *entries: Any) -> None:
    for entry in entries:
        fields(client, {**schema, "x-kubernetes-validations": entry if isinstance(entry, list) else [entry]})


@scenario
def rules_that_do_not_compile(client: Client) -> None:
    """The compiler's own words about syntax, unknown names, types."""
    rules(
        client,
        {"type": "string", "maxLength": 10},
        *(
            {"rule": r}
            for r in (
                "",
                " ",
                "self",
                "self ==",
                "self == 1",
                "self.foo",
                "size(self) > 'a'",
                "unknown(self)",
                "x == self",
                "self.startsWith(1)",
                "1 + 1",
                "has(self)",
                "self == 'a' && ",
                "'abc",
                "self in ['a', 1]",
                "self.matches('(')",
                "true ? self : 1",
                "[1,2].map(x, x)",
                'self == "\\q"',
                "duration(self) > 1",
            )
        ),
    )


@scenario
def rules_about_unknown_fields_do_not_compile(client: Client) -> None:
    """Fields that the schema does not show are undefined."""
    schema = obj(
        {
            "a": STRING,
            "p": ANY,
            "n": {"type": "integer", "nullable": True},
            "ios": {"x-kubernetes-int-or-string": True},
            "my-key": STRING,
            "namespace": STRING,
        }
    )
    rules(
        client,
        schema,
        *(
            {"rule": r}
            for r in (
                "self.b == 'x'",
                "self.p.anything == 1",
                "self.a.b",
                "self.n == null",
                "self.ios == 1",
                "self.ios == 'x'",
                "self.my-key == 'x'",
                "self.my__dash__key == 'x'",
                "self.namespace == 'x'",
                "self.__namespace__ == 'x'",
                "self == oldSelf",
                "has(self.zz)",
                "self.metadata.name == 'x'",
            )
        ),
    )


@scenario
def the_other_fields_of_a_rule(client: Client) -> None:
    """message, messageExpression, reason, fieldPath and optionalOldSelf each have limits."""
    schema = obj(
        {"a": {"type": "string", "maxLength": 5}, "l": {"type": "array", "items": STRING}, "m": obj(additionalProperties=STRING)}
    )
    ok = {"rule": "has(self.a)"}
    rules(
        client,
        schema,
        {**ok, "message": "m"},
        {**ok, "message": ""},
        {**ok, "message": "   "},
        {**ok, "message": "a\nb"},
        {**ok, "message": "x" * 2049},
        {"rule": "has(self.a) \n&& true"},
        {"rule": "has(self.a) \n&& true", "message": "m"},
        {**ok, "messageExpression": ""},
        {**ok, "messageExpression": "1"},
        {**ok, "messageExpression": "'a' + self.a"},
        {**ok, "messageExpression": "self.zz"},
        {**ok, "messageExpression": "'x", "message": "m"},
        {**ok, "reason": "FieldValueInvalid"},
        {**ok, "reason": "FieldValueForbidden"},
        {**ok, "reason": "Nope"},
        {**ok, "reason": ""},
        {**ok, "fieldPath": ".a"},
        {**ok, "fieldPath": "a"},
        {**ok, "fieldPath": ".zz"},
        {**ok, "fieldPath": ".l[0]"},
        {**ok, "fieldPath": ".m['key']"},
        {**ok, "fieldPath": ".m.key"},
        {**ok, "fieldPath": ""},
        {**ok, "fieldPath": "['a']"},
        {**ok, "fieldPath": ".a\n"},
        {**ok, "optionalOldSelf": True},
        {"rule": "oldSelf.hasValue() || has(self.a)", "optionalOldSelf": True},
        [ok, ok],
        [ok, {"rule": "self.a =="}, {"rule": "self.b"}],
        {"message": "no rule"},
    )


@scenario
def transition_rules_need_correlated_values(client: Client) -> None:
    """oldSelf cannot be used under atomic or set lists; under maps and map lists it can."""
    item = obj(
        {"k": {"type": "string", "maxLength": 5}}, required=["k"], **{"x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    )
    for kind in (
        {},
        {"x-kubernetes-list-type": "atomic"},
        {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    ):
        fields(client, {"type": "array", "maxItems": 5, "items": item, **kind})
    scalar = {"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    fields(
        client,
        {"type": "array", "maxItems": 5, "items": scalar, "x-kubernetes-list-type": "set"},
        obj(additionalProperties=scalar, maxProperties=5),
        {
            "type": "array",
            "maxItems": 5,
            "items": {
                "type": "string",
                "x-kubernetes-validations": [{"rule": "self == oldSelf.orValue('')", "optionalOldSelf": True}],
            },
        },
    )


@scenario
def rules_may_not_cost_too_much(client: Client) -> None:
    """The estimate multiplies by every unbounded list, map and string."""
    expensive = {"x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x != y || x == y))"}]}
    fields(
        client,
        {"type": "array", "items": STRING, **expensive},
        {"type": "array", "items": {"type": "string", "maxLength": 10}, "maxItems": 10, **expensive},
        {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self.contains('x')"}]}},
        },
        {"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('^a+$')"}]},
        obj(
            additionalProperties={
                "type": "string",
                "x-kubernetes-validations": [{"rule": "self.matches('^a+$')", "messageExpression": "self + self"}],
            }
        ),
        {
            "type": "array",
            "items": obj(
                {"s": STRING}, **{"x-kubernetes-validations": [{"rule": "self.s.matches('x')"}, {"rule": "self.s.contains('y')"}]}
            ),
        },
    )


# ---------------------------------------------------------------- columns, selectors, subresources, conversion


@scenario
def printer_columns_are_checked(client: Client) -> None:
    """name, type and jsonPath are required; types, formats and paths come from fixed sets."""
    good = {"name": "A", "type": "string", "jsonPath": ".spec.a"}
    for change in (
        {},
        {"name": ""},
        {"type": ""},
        {"type": "object"},
        {"type": "date"},
        {"jsonPath": ""},
        {"jsonPath": "spec.a"},
        {"jsonPath": ".spec["},
        {"jsonPath": ".spec.a[0].b"},
        {"jsonPath": ".spec.list[?(@.x==1)].y"},
        {"jsonPath": "{.spec.a}"},
        {"jsonPath": ".spec..a"},
        {"format": "name"},
        {"format": "int32"},
        {"format": "weird"},
        {"priority": 7},
        {"priority": -1},
        {"priority": "1"},
        {"description": "d"},
        {"jsonPath": ".metadata.labels.x\\.y"},
    ):
        tries(client, definition(client, version={"additionalPrinterColumns": [{**good, **change}]}))
    tries(
        client,
        definition(client, version={"additionalPrinterColumns": [good, good, {"name": "B"}]}),
        definition(client, version={"additionalPrinterColumns": []}),
    )


@scenario
def selectable_fields_are_checked(client: Client) -> None:
    """Simple paths to strings, integers and booleans of the schema; at most eight, no repeats, not metadata."""
    schema = obj(
        {
            "spec": obj(
                {
                    "s": STRING,
                    "i": {"type": "integer"},
                    "b": {"type": "boolean"},
                    "n": {"type": "number"},
                    "o": obj(),
                    "l": {"type": "array", "items": STRING},
                    "e": {"type": "string", "enum": ["x"]},
                    "m": obj(additionalProperties=STRING),
                    **{f"s{i}": STRING for i in range(9)},
                }
            )
        }
    )
    for paths in (
        [".spec.s"],
        [".spec.i", ".spec.b", ".spec.e"],
        [".spec.n"],
        [".spec.o"],
        [".spec.l"],
        [".spec.l[0]"],
        [".spec.m.x"],
        [".spec.zz"],
        ["spec.s"],
        [""],
        [".metadata.name"],
        [".kind"],
        [".spec.s", ".spec.s"],
        [f".spec.s{i}" for i in range(9)],
        [".spec['s']"],
        [".status.x"],
    ):
        tries(client, definition(client, schema, {"selectableFields": [{"jsonPath": p} for p in paths]}))
    tries(
        client,
        definition(client, schema, {"selectableFields": [{}]}),
        definition(client, version={"selectableFields": [{"jsonPath": ".spec.s"}]}),
    )


@scenario
def scale_paths_are_checked(client: Client) -> None:
    """specReplicasPath under .spec, statusReplicasPath under .status, labelSelectorPath under either; no arrays."""
    good = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    for change in (
        {},
        {"specReplicasPath": ""},
        {"specReplicasPath": "spec.replicas"},
        {"specReplicasPath": ".status.replicas"},
        {"specReplicasPath": ".spec.list[0]"},
        {"statusReplicasPath": ""},
        {"statusReplicasPath": ".spec.replicas"},
        {"labelSelectorPath": ".status.selector"},
        {"labelSelectorPath": ".spec.selector"},
        {"labelSelectorPath": ".metadata.labels"},
        {"labelSelectorPath": ""},
        {"specReplicasPath": ".spec"},
        {"specReplicasPath": ".spec.a b"},
    ):
        tries(client, definition(client, version={"subresources": {"scale": {**good, **change}}}))
    tries(
        client,
        definition(client, version={"subresources": {"scale": {}}}),
        definition(client, version={"subresources": {"status": {}}}),
        definition(client, version={"subresources": {}}),
        definition(client, version={"subresources": {"status": {"x": 1}, "logs": {}}}),
    )


@scenario
def conversion_settings_are_checked(client: Client) -> None:
    """strategy, clientConfig (url or service) and conversionReviewVersions."""
    hook = {"clientConfig": {"url": "https://example.com/convert"}, "conversionReviewVersions": ["v1"]}

    def conv(**webhook: Any) -> dict[str, Any]:
        return definition(client, conversion={"strategy": "Webhook", "webhook": {**hook, **webhook}})

    tries(
        client,
        definition(client, conversion={"strategy": "Other"}),
        definition(client, conversion={}),
        definition(client, conversion={"strategy": "Webhook"}),
        definition(client, conversion={"strategy": "None", "webhook": hook}),
        conv(),
        conv(conversionReviewVersions=[]),
        conv(conversionReviewVersions=["v9"]),
        conv(conversionReviewVersions=["v1", "v1"]),
        conv(conversionReviewVersions=["V_1", "v1"]),
        conv(conversionReviewVersions=["v1beta1"]),
        conv(clientConfig=None),
        conv(clientConfig={}),
        *(
            conv(clientConfig={"url": u})
            for u in (
                "http://x.com",
                "https://x.com?a=b",
                "https://u:p@x.com",
                "https://x.com#f",
                "x.com",
                "https://",
                "https://x.com:99999/a",
            )
        ),
        conv(clientConfig={"url": "https://x.com", "service": {"namespace": "a", "name": "b"}}),
        *(
            conv(clientConfig={"service": s})
            for s in (
                {"namespace": "a", "name": "b"},
                {},
                {"namespace": "a", "name": "b", "port": 0},
                {"namespace": "a", "name": "b", "port": 70000},
                {"namespace": "a", "name": "b", "path": "/ok/x"},
                {"namespace": "a", "name": "b", "path": "no"},
                {"namespace": "a", "name": "b", "path": "//x"},
            )
        ),
        conv(clientConfig={"url": "https://x.com", "caBundle": "!!"}),
        conv(clientConfig={"url": "https://x.com", "caBundle": "aGk="}),
    )


@scenario
def unknown_fields_of_a_definition(client: Client) -> None:
    """Strict refuses, Warn warns, Ignore keeps quiet."""
    body = definition(client, obj({"spec": obj({"f": {"type": "string", "maxlength": 3}})}), {"storag": True}, shape="x")
    for mode in ("Strict", "Warn", "Ignore", "Odd"):
        tries(client, body, query={**DRY, "fieldValidation": mode})
    tries(
        client,
        json.dumps(definition(client)).replace('"scope":', '"scope": "Cluster", "scope":'),
        query={**DRY, "fieldValidation": "Strict"},
    )


# ---------------------------------------------------------------- life


@scenario
def a_definition_becomes_established(client: Client) -> None:
    """status after creation, then after the controllers have looked."""
    body = definition(client, names={"shortNames": ["wi"], "categories": ["all"]})
    name = body["metadata"]["name"]
    with served(client, body, silent=False):
        client.get(f"{CRDS}/{name}")
        client.get(f"{CRDS}/{name}/status")
        client.post(CRDS, body)
        client.get(CRDS, {"fieldSelector": f"metadata.name={name}"})
        client.get(CRDS, {"fieldSelector": f"metadata.name={name}"}, headers={"Accept": TABLE})
        client.get(f"{CRDS}/{name}", headers={"Accept": PARTIAL})
        client.get(CRDS, {"fieldSelector": "spec.group=x"})
        client.get(f"{CRDS}/{name}/scale")


@scenario
def discovery_lists_the_resource(client: Client) -> None:
    """/apis/GROUP and /apis/GROUP/VERSION with names, short names, categories, verbs and subresources; gone after deletion."""
    fixed = "discovery.example.com"  # the storage version hash hangs on the group's name
    body = definition(
        client,
        group=fixed,
        names={"shortNames": ["wi", "wg"], "categories": ["all", "mine"], "singular": "wid"},
        version={"subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}}},
    )
    body["spec"]["versions"] += [
        {"name": n, "served": n != "v3", "storage": False, "schema": {"openAPIV3Schema": ANY}}
        for n in ("v2beta1", "v3", "v10", "foo", "v2alpha1", "v2")
    ]
    body["metadata"]["name"] = f"widgets.{fixed}"
    until(lambda: client.get(f"/apis/{fixed}", silent=True).status == 404)
    group = f"/apis/{body['spec']['group']}"
    client.get(group)
    with served(client, body):
        until(lambda: len(client.get(group, silent=True).get("versions", default=[])) == 6)
        client.get(group)
        until(lambda: client.get(f"{group}/v2alpha1", silent=True).status == 200)
        for version in ("v1", "v2", "v3", "v2beta1", "foo", "v9"):
            client.get(f"{group}/{version}")
        client.get(f"{group}/v1/wi")
        client.get(f"{group}/v1/nothing")
        client.get(f"{group}/v3/widgets")
    until(lambda: client.get(group, silent=True).status == 404)
    client.get(group)
    client.get(f"{group}/v1")
    client.get(f"{group}/v1/widgets")


@scenario
def openapi_shows_the_schema(client: Client) -> None:
    """OpenAPI v3 has the kind, its list and its paths; v2 has a pruned form."""
    schema = obj(
        {
            "spec": obj(
                {
                    "s": {"type": "string", "default": "d", "description": "a string", "enum": ["d", "e"]},
                    "p": ANY,
                    "i": {"x-kubernetes-int-or-string": True},
                    "n": {"type": "string", "nullable": True},
                    "o": {"type": "string", "oneOf": [{"maxLength": 3}, {"pattern": "x"}]},
                    "l": {
                        "type": "array",
                        "items": obj({"k": STRING}, required=["k"]),
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["k"],
                    },
                    "e": obj(**{"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}),
                },
                **{"x-kubernetes-validations": [{"rule": "self.s != 'x'"}]},
            ),
            "status": obj({"d": {"type": "string", "format": "date-time"}}),
        },
        description="a widget",
    )
    body = definition(client, schema, {"subresources": {"status": {}}, "selectableFields": [{"jsonPath": ".spec.s"}]})
    group = body["spec"]["group"]
    with served(client, body):
        path = f"/openapi/v3/apis/{group}/v1"
        until(lambda: client.get(path, silent=True).status == 200, 20)
        spec = client.get(path, silent=True)
        mine = {k: v for k, v in spec.get("components", "schemas", default={}).items() if k.startswith("com.example")}
        note(client, "schemas of the kind", mine)
        note(client, "other schemas", sorted(k for k in spec.get("components", "schemas", default={}) if k not in mine))
        note(
            client,
            "paths",
            {
                p: {
                    m: (
                        v
                        if not isinstance(v, dict)
                        else {
                            x: v.get(x)
                            for x in (
                                "operationId",
                                "tags",
                                "description",
                                "x-kubernetes-action",
                                "x-kubernetes-group-version-kind",
                            )
                        }
                        | {"parameters": [q.get("name") for q in v.get("parameters", [])]}
                    )
                    for m, v in item.items()
                    if m != "parameters"
                }
                for p, item in spec.get("paths", default={}).items()
            },
        )
        until(lambda: any(group in p for p in client.get("/openapi/v2", silent=True).get("paths", default={})), 20)
        old = client.get("/openapi/v2", silent=True)
        note(client, "v2 definitions", {k: v for k, v in old.get("definitions", default={}).items() if f"g{client.id}" in k})
        note(client, "v2 paths", sorted(p for p in old.get("paths", default={}) if group in p))


def rivals(client: Client, second: dict[str, Any]) -> None:
    """Create the second definition while the first has its names, then let the first go."""
    name = second["metadata"]["name"]
    try:
        with served(client, definition(client, names={"shortNames": ["sh"]})):
            client.post(CRDS, second, silent=True)
            until(lambda: condition(client, name, "NamesAccepted") != "")
            pacing.sleep(1.2)
            client.get(f"{CRDS}/{name}")
            client.get(where(client, second))
            client.delete(f"{CRDS}/widgets.g{client.id}.example.com", silent=True)
            until(lambda: condition(client, name, "Established") == "True")
            client.get(f"{CRDS}/{name}")
    finally:
        client.delete(f"{CRDS}/{name}", silent=True)


@scenario
def a_taken_short_name_is_not_accepted(client: Client) -> None:
    """The second one's names are not accepted until the first is gone."""
    rivals(client, definition(client, plural="others", kind="Other", names={"shortNames": ["sh"]}))


@scenario
def a_taken_kind_is_not_accepted(client: Client) -> None:
    """The kind and the singular of another definition are taken."""
    rivals(client, definition(client, plural="thirds"))


@scenario
def a_taken_list_kind_is_not_accepted(client: Client) -> None:
    """The list kind of another definition is taken, and its plural too as a short name."""
    rivals(
        client, definition(client, plural="fourths", kind="Fourth", names={"listKind": "WidgetList", "shortNames": ["widgets"]})
    )


@scenario
def names_cannot_change_once_established(client: Client) -> None:
    """group, scope, plural and kind are fixed; short names and categories may change, and the accepted names follow."""
    body = definition(client)
    path = f"{CRDS}/{body['metadata']['name']}"
    with served(client, body):
        for change in (
            {"scope": "Cluster"},
            {"group": "other.example.com"},
            {"names": {"kind": "Gadget", "listKind": "GadgetList"}},
            {"names": {"plural": "gadgets"}},
            {"versions": []},
            {"versions": None},
            {"preserveUnknownFields": True},
            {"names": {"singular": None, "listKind": None}},
        ):
            client.patch(path, {"spec": change}, MERGE)
        client.patch(path, {"spec": {"names": {"shortNames": ["ww"], "categories": ["all"]}}}, MERGE)
        until(lambda: client.get(path, silent=True).get("status", "acceptedNames", "shortNames") == ["ww"])
        client.get(path)


@scenario
def stored_versions_grow_and_must_stay(client: Client) -> None:
    """The storage version is added to status.storedVersions; a stored version cannot be dropped before status lets go of it."""
    body = versions(client, {"name": "v1", "storage": True}, {"name": "v2"})
    path = f"{CRDS}/{body['metadata']['name']}"
    with served(client, body):
        two = [{**body["spec"]["versions"][0], "storage": False}, {**body["spec"]["versions"][1], "storage": True}]
        client.patch(path, {"spec": {"versions": two}}, MERGE)
        until(lambda: condition(client, body["metadata"]["name"], "Established") == "True")
        client.get(path)
        client.patch(path, {"spec": {"versions": two[1:]}}, MERGE)
        client.patch(f"{path}/status", {"status": {"storedVersions": []}}, MERGE)
        client.patch(f"{path}/status", {"status": {"storedVersions": ["v1"]}}, MERGE)
        client.patch(f"{path}/status", {"status": {"storedVersions": ["v9", "v2"]}}, MERGE)
        client.patch(f"{path}/status", {"status": {"storedVersions": ["v2"]}, "spec": {"scope": "Cluster"}}, MERGE)
        client.patch(path, {"spec": {"versions": two[1:]}}, MERGE)


@scenario
def patches_of_a_definition(client: Client) -> None:
    """JSON patch, merge patch, strategic merge patch and apply; generation counts changes of spec."""
    body = definition(client)
    path = f"{CRDS}/{body['metadata']['name']}"
    with served(client, body):
        client.patch(
            path,
            [
                {
                    "op": "add",
                    "path": "/spec/versions/0/additionalPrinterColumns",
                    "value": [{"name": "A", "type": "string", "jsonPath": ".a"}],
                }
            ],
            JSON_PATCH,
        )
        client.patch(path, [{"op": "test", "path": "/spec/scope", "value": "Cluster"}], JSON_PATCH)
        client.patch(path, {"metadata": {"labels": {"a": "b"}}}, STRATEGIC)
        client.patch(path, {"spec": {"versions": [{"name": "v1", "deprecated": True}]}}, STRATEGIC)
        client.patch(path, {"spec": {"names": {"categories": ["x"]}}}, MERGE)
        until(lambda: client.get(path, silent=True).get("status", "acceptedNames", "categories") == ["x"])
        client.patch(path, body, APPLY, {"fieldManager": "m"})
        client.patch(path, body, APPLY, {"fieldManager": "m", "force": "true"})
        client.patch(
            path,
            {**body, "spec": {**body["spec"], "names": {**body["spec"]["names"], "shortNames": ["zz"]}}},
            APPLY,
            {"fieldManager": "n"},
        )
        until(lambda: client.get(path, silent=True).get("status", "acceptedNames", "shortNames") == ["zz"])
        client.put(path, body)
        client.delete(CRDS, None, {"labelSelector": f"nobody={client.id}"})


@scenario
def deletion_waits_for_the_instances(client: Client) -> None:
    """An instance with a finalizer holds its definition in Terminating; nothing can be created meanwhile."""
    body = definition(client)
    name = body["metadata"]["name"]
    with served(client, body) as path:
        client.post(path, make(body, metadata={"name": "held", "finalizers": ["example.com/hold"]}))
        client.post(path, make(body, "free"))
        client.delete(f"{CRDS}/{name}")
        until(lambda: condition(client, name, "Terminating") == "True")
        until(lambda: client.get(f"{path}/free", silent=True).status == 404)
        pacing.sleep(0.5)
        client.get(f"{CRDS}/{name}")
        client.get(path)
        client.post(path, make(body, "late"))
        client.patch(f"{path}/held", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        client.delete(f"{CRDS}/{name}")
        client.patch(f"{path}/held", {"metadata": {"finalizers": None}}, MERGE)
        until(lambda: client.get(f"{CRDS}/{name}", silent=True).status == 404, 20)
        client.get(f"{CRDS}/{name}")
        until(lambda: client.get(path, silent=True).body.startswith(b"404"))
        client.get(path)
        client.get(f"{path}/held")


@scenario
def a_definition_can_come_back(client: Client) -> None:
    """After deletion the same name starts afresh, without the old objects."""
    body = definition(client)
    name = body["metadata"]["name"]
    with served(client, body) as path:
        client.post(path, make(body, spec={"a": 1}))
        client.delete(f"{CRDS}/{name}", {"propagationPolicy": "Foreground"})
        until(lambda: client.get(f"{CRDS}/{name}", silent=True).status == 404, 20)
    changed = definition(client, obj({"spec": obj({"b": {"type": "integer", "default": 5}})}))
    with served(client, changed) as path:
        client.get(path)
        client.get(f"{path}/one")
        client.post(path, make(changed, spec={"a": 1}))
        client.delete(f"{CRDS}/{name}", None, {"dryRun": "All"})
        client.get(f"{path}/one")


@scenario
def a_watch_shows_the_conditions_come(client: Client) -> None:
    """Watch one definition being created, labelled and deleted."""
    body = definition(client)
    name = body["metadata"]["name"]

    def story() -> None:
        client.post(CRDS, body, silent=True)
        until(lambda: condition(client, name, "Established") == "True")
        client.patch(f"{CRDS}/{name}", {"metadata": {"labels": {"x": "y"}}}, MERGE, silent=True)
        client.delete(f"{CRDS}/{name}", silent=True)
        until(lambda: client.get(f"{CRDS}/{name}", silent=True).status == 404)

    client.watch(
        CRDS,
        {"fieldSelector": f"metadata.name={name}", "resourceVersion": client.get(CRDS, silent=True).rv},
        then=story,
        quiet=1.0,
    )
