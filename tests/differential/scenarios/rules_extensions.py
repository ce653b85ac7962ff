"""The rules of definitions and of the objects that they define."""

from __future__ import annotations

import functools
from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.registry import scenario
from tests.differential.rule_tables import each, tell
from tests.differential.steps import until

# fmt: off

tell_of = functools.partial(tell, module="rules_extensions")

Edit = dict[str, Any]
DRY = {"dryRun": "All"}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMA: Edit = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}}}}, "status": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
CRD: Edit = {"metadata": {"name": "widgets.rules.example.com"}, "spec": {"group": "rules.example.com", "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}, "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}]}}
V = "spec.versions[0]"
S = f"{V}.schema.openAPIV3Schema"
A, L = f"{S}.properties.spec.properties.a", f"{S}.properties.spec.properties.l"


DEFINITIONS: list[Edit] = [
    {}, {"metadata.name": "other.rules.example.com"}, *each("spec.group", "", "A_", "a"), *each("spec.scope", "", "Nope", "Cluster"), *each("spec.names.plural", "", "A_", "a.b"), *each("spec.names.kind", "", "a_b", "1"), *each("spec.names.listKind", "Widget", "a_b"), *each("spec.names.singular", "A_"), *each("spec.names.shortNames", ["A_"], ["w"]), *each("spec.names.categories", ["A_"], ["all"]), {"spec.preserveUnknownFields": True},
    *each("spec.versions", [], [{"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": SCHEMA}}], [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}] * 2, [{"name": "A_", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}]), {f"{V}.schema": None}, {f"{V}.schema": {}}, *each(S, {"type": "string"}, {}, {"type": "object", "$ref": "x"}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"type": "object", "nullable": True}, {"type": "object", "x-kubernetes-embedded-resource": True}),
    *each(f"{V}.deprecationWarning", "", "x", "x" * 257, "a\nb"), {f"{V}.deprecated": True, f"{V}.deprecationWarning": "x" * 257}, {f"{V}.deprecated": True, f"{V}.deprecationWarning": ""}, {f"{V}.deprecated": True, f"{V}.deprecationWarning": "a\tb"},
    *each(f"{V}.subresources", {"status": {}}, {"scale": {}}, {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}, {"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".y"}}, {"scale": {"specReplicasPath": "spec", "statusReplicasPath": ".status[0]"}}, {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".x"}}, {"scale": {"specReplicasPath": ".spec.l[0]", "statusReplicasPath": ".status['a']"}}),
    *each(f"{V}.additionalPrinterColumns", [{}], [{"name": "a", "type": "nope", "jsonPath": ".a"}], [{"name": "a", "type": "string", "jsonPath": "a"}], [{"name": "a", "type": "string", "format": "nope", "jsonPath": ".a"}], [{"name": "a", "type": "integer", "jsonPath": "{"}]),
    *each(f"{V}.selectableFields", [{"jsonPath": ".spec.a"}], [{"jsonPath": ""}], [{"jsonPath": ".spec.nope"}], [{"jsonPath": ".spec.l"}], [{"jsonPath": ".metadata.name"}], [{"jsonPath": ".spec.a"}] * 2, [{"jsonPath": "a"}], [{"jsonPath": f".spec.a{n}"} for n in range(9)], [{"jsonPath": ".spec.l[0]"}]), {f"{V}.selectableFields": [{"jsonPath": ".spec.a"}], f"{V}.schema": None}, {f"{V}.selectableFields": [{"jsonPath": ".spec.a"}], f"{A}.type": None},
    *each("spec.conversion", {"strategy": "Nope"}, {"strategy": ""}, {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}, {"strategy": "Webhook"}, {"strategy": "Webhook", "webhook": {"conversionReviewVersions": []}}, *({"strategy": "Webhook", "webhook": {"conversionReviewVersions": versions, "clientConfig": client}} for versions, client in ((["v1"], {}), (["v9"], {"url": "https://a"}), (["v1", "v1"], {"url": "https://a"}), (["A_"], {"url": "https://a"}), (["v1"], {"url": "http://a"}), (["v1"], {"url": "https://a", "service": {"name": "a", "namespace": "b"}}), (["v1"], {"service": {"name": "", "namespace": "", "path": "x", "port": 0}}), (["v1"], {"url": "https://a", "caBundle": "eA=="}))), {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://a"}}}),
    *({f"{V}.subresources": {"status": {}}, S: {**SCHEMA, **root}} for root in ({"nullable": True}, {"enum": [{}]}, {"maxProperties": 1}, {"required": ["spec"]}, {"title": "x"}, {"default": {}}, {"additionalProperties": True}, {"not": {}}, {"x-kubernetes-validations": [{"rule": "true"}]}, {"type": "array"}, {"minimum": 1}, {"x-kubernetes-int-or-string": True})),
]
A_SCHEMAS: list[Edit] = [
    *({"type": "string", **more} for more in ({}, {"type": ""}, {"type": "nope"}, {"type": "null"}, {"nullable": True}, {"minimum": 1}, {"maximum": 0, "minimum": 1, "type": "integer"}, {"pattern": "("}, {"pattern": "a"}, {"minLength": -1}, {"maxLength": -1}, {"enum": []}, {"enum": [1]}, {"enum": ["a", "a"]}, {"format": "nope"}, {"format": "date"}, {"default": "x"}, {"default": 1}, {"default": None}, {"multipleOf": 0, "type": "integer"}, {"uniqueItems": True}, {"items": {"type": "string"}}, {"properties": {"b": {"type": "string"}}}, {"additionalProperties": {"type": "string"}}, {"x-kubernetes-list-type": "set"}, {"x-kubernetes-list-type": "nope"}, {"x-kubernetes-map-type": "nope"}, {"x-kubernetes-map-type": "atomic"}, {"x-kubernetes-list-map-keys": ["a"]}, {"x-kubernetes-int-or-string": True}, {"x-kubernetes-embedded-resource": True}, {"x-kubernetes-preserve-unknown-fields": True}, {"x-kubernetes-preserve-unknown-fields": False}, {"$ref": "x"}, {"discriminator": "a"}, {"readOnly": True}, {"id": "x"}, {"definitions": {}}, {"dependencies": {"a": ["b"]}}, {"patternProperties": {"a": {"type": "string"}}}, {"additionalItems": True}, {"deprecated": True})),
    *({"type": "object", **more} for more in ({"properties": {"x": {"type": "string"}}, "additionalProperties": {"type": "string"}}, {"additionalProperties": False}, {"additionalProperties": True}, {"required": ["a", "a"]}, {"x-kubernetes-embedded-resource": True}, {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}, {"properties": {"x": {}}}, {"not": {"type": "string"}}, {"anyOf": [{"type": "string"}]}, {"allOf": [{"properties": {"z": {"type": "string"}}}]}, {"oneOf": [{"required": ["a"]}]}, {"anyOf": [{"default": 1}]}, {"allOf": [{"description": "x"}]}, {"oneOf": [{"nullable": True}]}, {"allOf": [{"x-kubernetes-preserve-unknown-fields": True}]}, {"properties": {"a": {"type": "string"}}, "allOf": [{"properties": {"b": {"minLength": 1}}}]}, {"allOf": [{"additionalProperties": True}]}, {"properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": "a"}}}}}, {"minProperties": -1, "maxProperties": -1}, {"default": {"a": 1}}, {"x-kubernetes-map-type": "granular"})),
    *({"x-kubernetes-int-or-string": True, **more} for more in ({}, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"anyOf": [{"type": "string"}]}, {"type": "integer"}, {"allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]}, {"default": 1}, {"default": True})),
    *({"type": "string", "x-kubernetes-validations": rules} for rules in ([{"rule": "true"}], [{}], [{"rule": " "}], [{"rule": "nope("}], [{"rule": "1"}], [{"rule": "self.x"}], [{"rule": "oldSelf == self"}], [{"rule": "true", "message": " "}], [{"rule": "true", "message": "a\nb"}], [{"rule": "tr\nue"}], [{"rule": "true", "messageExpression": "1"}], [{"rule": "true", "messageExpression": " "}], [{"rule": "true", "messageExpression": "nope("}], [{"rule": "true", "reason": "Nope"}], [{"rule": "true", "fieldPath": ".x"}], [{"rule": "true", "fieldPath": "x"}], [{"rule": "self.matches('a{0,1000}{0,1000}')"}], [{"rule": "true", "optionalOldSelf": True}], [{"rule": "oldSelf == self", "optionalOldSelf": True}], [{"rule": "true"}, {"rule": "true"}])),
    *({"type": "object", "x-kubernetes-validations": [{"rule": rule}], **more} for rule, more in (("has(self.x)", {}), ("self.x > 1", {"properties": {"x": {"type": "string"}}}), ("self.all(k, k == 'a')", {"additionalProperties": {"type": "string"}}), ("true", {"x-kubernetes-preserve-unknown-fields": True, "properties": {"x": {}}}))),
    {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self.contains('x')"}]}}}}},
]
LISTS: list[Edit] = [{"type": "array", **more} for more in (
    {}, {"items": {"type": "string"}}, {"items": [{"type": "string"}]}, {"items": {"type": "object"}, "x-kubernetes-list-type": "set"}, {"items": {"type": "array", "items": {"type": "string"}}, "x-kubernetes-list-type": "set"}, {"items": {"type": "object", "x-kubernetes-map-type": "atomic"}, "x-kubernetes-list-type": "set"}, {"items": {"type": "string"}, "x-kubernetes-list-type": "nope"}, {"items": {"type": "string"}, "x-kubernetes-list-type": "map"}, {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}, {"items": [{"type": "object"}], "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}, {"items": {"type": "string"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    *({"items": {"type": "object", "properties": {"k": {"type": "string", "default": "x"}, "o": {"type": "object"}, "p": {"type": "string"}}, **own}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys} for own, keys in (({}, ["k"]), ({}, ["k", "k"]), ({}, ["z"]), ({}, ["o"]), ({}, ["p"]), ({"required": ["p"]}, ["p"]), ({"nullable": True}, ["k"]), ({}, []))), {"items": {"type": "string"}, "x-kubernetes-list-map-keys": ["k"]}, {"items": {"type": "string"}, "x-kubernetes-list-type": "set", "default": ["a", "a"]}, {"items": {"type": "string", "nullable": True}, "x-kubernetes-list-type": "set"}, {"items": {"type": "string"}, "minItems": -1, "maxItems": -1}, {"items": {"type": "string"}, "uniqueItems": True},
)]
tell_of("definitions", "apiextensions.k8s.io/v1/*customresourcedefinitions", CRD, create=[*DEFINITIONS, *each(A, *A_SCHEMAS), *each(L, *LISTS)])
APPROVAL = "metadata.annotations[api-approved.kubernetes.io]"


@scenario
def approvals(c: Client) -> None:
    """A definition of a protected group says who approved it, and its condition tells of that."""
    from tests.differential.rule_tables import edited

    for number, annotation in enumerate((None, "unapproved, for a test", "https://github.com/kubernetes/kubernetes/pull/78458", "nope", "//x", "%")):
        plural = f"widgets{number}"
        name = f"{plural}.d{c.id}.k8s.io"
        body = edited(CRD, {"metadata.name": name, "spec.group": f"d{c.id}.k8s.io", "spec.names": {"plural": plural, "singular": f"widget{number}", "kind": f"Widget{number}", "listKind": f"Widget{number}List"}, **({APPROVAL: annotation} if annotation is not None else {})})
        reply = c.post(CRDS, body)
        if reply.status == 201:
            until(lambda n=name: any(one["type"] == "Established" and one["status"] == "True" for one in c.get(f"{CRDS}/{n}", silent=True).get("status", "conditions") or ()), 10)
            c.get(f"{CRDS}/{name}")
            c.delete(f"{CRDS}/{name}", silent=True)


@scenario
def lives_of_definitions(c: Client) -> None:
    """What the conditions tell: names that are taken, a bundle that is none, objects that are removed."""
    from tests.differential.rule_tables import edited

    group, path = f"l{c.id}.example.com", f"/apis/l{c.id}.example.com/v1/namespaces/{c.ns}/widgets"
    body = edited(CRD, {"metadata.name": f"widgets.{group}", "spec.group": group})
    c.post(CRDS, body, silent=True)
    until(lambda: c.get(path, silent=True).status == 200, 10)
    for finalizers in (["a"], ["a.b"], ["a.b/c"], ["a b"], ["orphan"]):
        c.post(path, {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": finalizers}}, DRY)
    c.post(path, {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["a.b/c"]}}, silent=True)
    stored = c.get(f"{path}/w", silent=True).json
    for meta in ({"generation": 0}, {"generation": 9}, {"finalizers": ["a"]}, {"uid": "x"}):
        c.put(f"{path}/w", {**stored, "metadata": {**stored["metadata"], **meta}}, DRY)
    clash = edited(CRD, {"metadata.name": f"others.{group}", "spec.group": group, "spec.names.plural": "others", "spec.names.shortNames": ["widget"]})
    c.post(CRDS, clash, silent=True)
    until(lambda: c.get(f"{CRDS}/others.{group}", silent=True).get("status", "conditions"), 10)
    c.get(f"{CRDS}/others.{group}")
    c.delete(f"{CRDS}/others.{group}", silent=True)
    c.delete(f"{CRDS}/widgets.{group}", silent=True)
    until(lambda: any(one["type"] == "Terminating" for one in c.get(f"{CRDS}/widgets.{group}", silent=True).get("status", "conditions") or ()), 10)
    c.get(f"{CRDS}/widgets.{group}")
    c.post(path, {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "x"}})
    c.patch(f"{path}/w", {"metadata": {"finalizers": None}}, MERGE, silent=True)


OBJECTS = {**SCHEMA["properties"]["spec"]["properties"], "i": {"type": "integer", "minimum": 1, "maximum": 5, "multipleOf": 2}, "x": {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 5, "exclusiveMaximum": True}, "f": {"type": "number"}, "b": {"type": "boolean"}, "s": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^a"}, "e": {"type": "string", "enum": ["a", "b"]}, "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, "map": {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "minItems": 1, "maxItems": 2}, "o": {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "string"}}, "r": {"type": "object", "required": ["q"], "properties": {"q": {"type": "string"}}}, "any": {"x-kubernetes-preserve-unknown-fields": True, "anyOf": [{"required": ["p"]}, {"required": ["q"]}]}, "one": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "oneOf": [{"required": ["p"]}, {"required": ["q"]}]}, "not": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "not": {"required": ["p"]}}, "all": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "allOf": [{"required": ["p"]}, {"required": ["q"]}]}, "is": {"x-kubernetes-int-or-string": True}, "em": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}, "nu": {"type": "string", "nullable": True}, "i32": {"type": "integer", "format": "int32"}, "i64": {"type": "integer", "format": "int64"}, "cel": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "message": "too small"}, {"rule": "self < 9", "reason": "FieldValueForbidden"}, {"rule": "oldSelf <= self", "messageExpression": "'was ' + string(oldSelf)"}]}, **{name.replace("-", ""): {"type": "string", "format": name} for name in ("date", "date-time", "duration", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "hostname", "email", "uri", "byte", "password", "isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "bsonobjectid", "k8s-short-name", "k8s-long-name")}}
VALUES: list[tuple[str, Any]] = [
    *(("i", value) for value in (0, 2, 3, 6, "x", 1.5, True, None)), *(("x", value) for value in (1, 2, 5)), *(("f", value) for value in (1, 1.5, "x")), *(("b", value) for value in (True, "x", 0)), *(("s", value) for value in ("a", "aa", "aaaa", "ba", 1)), ("e", "c"), ("set", ["a", "a"]), *(("map", value) for value in ([], [{"k": "a"}], [{"k": "a"}, {"k": "a"}], [{}], [{"k": "a"}, {"k": "b"}, {"k": "c"}], [None])), *(("o", value) for value in ({}, {"a": "b"}, {"a": 1}, {"a": "b", "c": "d", "e": "f"})), *(("r", value) for value in ({}, {"q": "x"}, {"q": None}, [])), *((name, value) for name in ("any", "one", "not", "all") for value in ({}, {"p": 1}, {"p": 1, "q": 2})), *(("is", value) for value in (1, "a", True, 1.5)),
    *(("em", value) for value in ({}, {"kind": "A"}, {"apiVersion": "v1", "kind": "A"}, {"apiVersion": "a/b/c", "kind": "A_"}, {"apiVersion": "v1", "kind": "A", "metadata": {"name": "A_", "labels": {"a b": "c"}}}, {"apiVersion": "v1", "kind": "A", "metadata": []})), ("nu", None), ("a", None), *(("i32", value) for value in (2**31, -(2**31))), *(("i64", value) for value in (2**63 - 1, 2**63)), *(("cel", value) for value in (1, 5, 9)),
    *((name, value) for name, values in {"date": ("2026-01-01", "x"), "datetime": ("2026-01-01T00:00:00Z", "x"), "duration": ("1h", "x"), "ipv4": ("1.2.3.4", "x"), "ipv6": ("::1", "x"), "cidr": ("1.0.0.0/8", "x"), "mac": ("00:00:00:00:00:00", "x"), "uuid": ("6fa459ea-ee8a-3ca4-894e-db77e160355e", "x"), "uuid3": ("6fa459ea-ee8a-3ca4-894e-db77e160355e", "x"), "uuid4": ("6fa459ea-ee8a-4ca4-894e-db77e160355e", "6fa459ea-ee8a-3ca4-894e-db77e160355e"), "uuid5": ("6fa459ea-ee8a-5ca4-894e-db77e160355e", "x"), "hostname": ("a.b", "a_b", ""), "email": ("a@b.c", "x"), "uri": ("http://a", "a"), "byte": ("eA==", "?"), "password": ("x",), "isbn": ("0321751043", "x"), "isbn10": ("0321751043", "x"), "isbn13": ("9780321751041", "x"), "creditcard": ("4111111111111111", "x"), "ssn": ("111-11-1111", "111 11 1111", "x"), "hexcolor": ("#fff", "x"), "rgbcolor": ("rgb(1,2,3)", "rgb(1,2,999)"), "bsonobjectid": ("507f1f77bcf86cd799439011", "x"), "k8sshortname": ("a", "A_"), "k8slongname": ("a.b", "A_")}.items() for value in values),
]


@scenario
def objects(c: Client) -> None:
    """What each keyword and format says of a value."""
    from tests.differential.rule_tables import edited

    group, path = f"o{c.id}.example.com", f"/apis/o{c.id}.example.com/v1/namespaces/{c.ns}/widgets"
    body = edited(CRD, {"metadata.name": f"widgets.{group}", "spec.group": group, f"{S}.properties.spec.properties": OBJECTS, f"{V}.subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}})
    c.post(CRDS, body, silent=True)
    until(lambda: c.get(path, silent=True).status == 200, 10)
    meta = {"apiVersion": f"{group}/v1", "kind": "Widget"}
    for name, value in VALUES:
        c.post(path, {**meta, "metadata": {"name": "w"}, "spec": {name: value}}, DRY)
    c.post(path, {**meta, "metadata": {"name": "w"}, "spec": {"cel": 5, "n": 1, "i": 2}}, silent=True)
    stored = c.get(f"{path}/w", silent=True).json
    for name, value in (("cel", 4), ("cel", 6), ("cel", 10), ("i", 9), ("unknown", 1)):
        c.put(f"{path}/w", {**stored, "spec": {**stored["spec"], name: value}}, DRY)
    c.put(f"{path}/w/status", {**stored, "status": {"n": "x"}}, DRY)
    scale = c.get(f"{path}/w/scale", silent=True).json
    for replicas in (-1, 3):
        c.put(f"{path}/w/scale", {**scale, "spec": {"replicas": replicas}}, DRY)
    for wrong in ({**meta, "metadata": {"name": "w"}, "spec": []}, {**meta, "metadata": {"name": "A_"}}, {**meta, "metadata": []}, {**meta, "kind": "Other", "metadata": {"name": "w"}}, {"metadata": {"name": "w"}}, {**meta, "metadata": {"name": "w", "labels": {"a b": "c"}}}):
        c.post(path, wrong, DRY)
    c.delete(f"{path}/w", silent=True)
    c.delete(f"{CRDS}/widgets.{group}", silent=True)
