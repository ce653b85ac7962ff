"""Custom resources and their schemas, as random schemas met them: unchanged values that became invalid, defaults, and numbers."""

from __future__ import annotations

from typing import Any

from tests.differential.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Client
from tests.differential.definitions import CRDS, DRY, definition, make, obj, served
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.scenarios.rules_values import namespaced, workload

# fmt: off

Object = dict[str, Any]

_ANY: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_EMBEDDED: Object = {**_ANY, "x-kubernetes-embedded-resource": True}
_EXACT: Object = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
_MEMBER: Object = {"apiVersion": "v1", "kind": "K"}

#: Name: the schema of a field, what is added to it, and a value that the addition makes invalid.
_RATCHETED: dict[str, tuple[Object, Object, Any]] = {
    "embedded": (_EMBEDDED, {"maxProperties": 1}, {**_MEMBER, "metadata": {"name": "X_"}}), "bare": (_EMBEDDED, {"maxProperties": 1}, _MEMBER),
    "lacking": (_EMBEDDED, {"required": ["zz"]}, {**_MEMBER, "metadata": {"labels": {"a": "b"}}}),
    "within": (_EMBEDDED, {"properties": {"spec": {"type": "integer"}}}, {**_MEMBER, "spec": "x"}),
    "free": (_ANY, {"maxProperties": 1}, {"a": 1, "b": 2}), "nested": (_ANY, {"maxProperties": 1}, {"a": {"c": 1}, "b": [2]}),
    "open": ({"type": "object", "additionalProperties": True}, {"maxProperties": 1}, {"a": 1, "b": 2}),
    "list": ({"type": "array", "items": _ANY}, {"maxItems": 1}, [{"a": 1}, {"b": 2}]),
    "keyed": ({"type": "array", "items": obj({"n": {"type": "string"}, "v": _ANY}, required=["n"]), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}, {"maxItems": 1}, [{"n": "a", "v": {"x": 1}}, {"n": "b"}]),
    "object": (obj({"a": {"type": "integer"}, "b": {"type": "integer"}}), {"maxProperties": 1}, {"a": 1, "b": 2}),
    "map": ({"type": "object", "additionalProperties": {"type": "string"}}, {"maxProperties": 1}, {"a": "1", "b": "2"}),
    "text": ({"type": "string"}, {"not": {"enum": ["a"]}}, "a"), "kind": ({"type": "string"}, {"type": "integer"}, "a"),
}


@scenario
def unchanged_values_that_became_invalid(c: Client) -> None:
    """A value is unchanged only if the schema has all of its members; an object of any form never is."""
    body = definition(c, obj({"spec": obj({name: schema for name, (schema, _, _) in _RATCHETED.items()})}))
    with served(c, body) as path:
        for name, (_, _, value) in _RATCHETED.items():
            c.post(path, make(body, name, spec={name: value}))
        current = c.get(f"{CRDS}/{body['metadata']['name']}", silent=True).json
        properties = {name: {**schema, **more} for name, (schema, more, _) in _RATCHETED.items()}
        current["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": obj({"spec": obj({**properties, "marker": {"type": "string", "default": "x"}})})}
        c.put(f"{CRDS}/{body['metadata']['name']}", current, silent=True)
        until(lambda: "marker" in (c.get(f"{path}/free", silent=True).get("spec") or {}), 10)
        for name, (_, _, value) in _RATCHETED.items():
            c.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE, DRY)
            c.patch(f"{path}/{name}", {"spec": {"marker": "y"}}, MERGE, DRY)
            c.patch(f"{path}/{name}", make(body, name, spec={name: value}), APPLY, {**DRY, "fieldManager": "m", "force": "true"})


@scenario
def defaults_of_embedded_objects(c: Client) -> None:
    """Defaults have valid kinds and metadata, wherever they are."""
    values: tuple[Any, ...] = (
        {**_MEMBER, "kind": 1}, {"kind": "K"}, _MEMBER, {**_MEMBER, "apiVersion": "a/b/c"}, {**_MEMBER, "metadata": {"name": 1}}, {**_MEMBER, "metadata": "x"},
        {**_MEMBER, "metadata": {"name": "X_"}}, {**_MEMBER, "foo": 1, "metadata": {"labels": {"a": "b c"}}}, {"kind": 1, "foo": 2}, {**_MEMBER, "apiVersion": ["v1"], "bar": {"a": 1}},
    )
    for embedded in (_EMBEDDED, _EXACT):
        for value in values:
            for schema in (obj({"b": {**embedded, "default": value}}), obj({"b": embedded}, default={"b": value}), obj({"l": {"type": "array", "items": embedded, "default": [value]}})):
                c.post(CRDS, definition(c, obj({"spec": schema})), DRY)


@scenario
def forms_of_numbers(c: Client) -> None:
    """Bodies and patches keep the text of a number, but for applies and strategic merges, which write it anew."""
    fields: Object = {
        "n": {"type": "number", "multipleOf": 0.5}, "t": {"type": "number", "multipleOf": 0.1}, "i": {"type": "integer"}, "j": {"type": "integer", "format": "int64"},
        "x": {"x-kubernetes-int-or-string": True}, "p": {"x-kubernetes-preserve-unknown-fields": True}, "m": {"type": "integer", "multipleOf": 2, "maximum": 100},
    }
    body = definition(c, obj({"spec": obj(fields)}))
    with served(c, body) as path:
        c.post(path, make(body, spec={}))
        head = f'{{"apiVersion":"{body["spec"]["group"]}/v1","kind":"Widget","metadata":{{"name":"one"}},"spec":{{'
        for number in ("1e20", "18446744073709551616", "9223372036854775808", "1.0", "1e2", "0.3", "0.7", "-0", "123456789.123456789", "0.99999999999"):
            for name in fields:
                for ctype in ("application/json", "application/yaml"):
                    c.post(path, f'{head}"{name}":{number}}}}}'.replace("one", "two"), DRY, ctype=ctype)
                c.patch(f"{path}/one", f'{head}"{name}":{number}}}}}', APPLY, {**DRY, "fieldManager": "m"})
                c.patch(f"{path}/one", f'{{"spec":{{"{name}":{number}}}}}', MERGE, DRY)
    path = namespaced(c, "apps/v1", "deployments")
    c.post(path, workload())
    surge, cpu = '"strategy":{{"rollingUpdate":{{"maxSurge":{}}}}}', '"template":{{"spec":{{"containers":[{{"name":"c","image":"i","resources":{{"limits":{{"cpu":{}}}}}}}]}}}}'
    for number in ("1e20", "18446744073709551616", "1.0", "1e2", "1.5", "0.1e1", "1E5", "1e21", "1e-7", "-1e-6"):
        for field, place in (('"replicas":{}', "/spec/replicas"), (surge, "/spec/strategy/rollingUpdate/maxSurge"), (cpu, "/spec/template/spec/containers/0/resources")):
            patch = f'{{"spec":{{{field.format(number)}}}}}'
            for ctype in (MERGE, STRATEGIC):
                c.patch(f"{path}/a", patch, ctype, DRY)
            value = f'{{"limits":{{"cpu":{number}}}}}' if field is cpu else number
            c.patch(f"{path}/a", f'[{{"op":"add","path":"{place}","value":{value}}}]', JSON_PATCH, DRY)
            c.patch(f"{path}/a", f'{{"apiVersion":"apps/v1","kind":"Deployment",{patch[1:]}', APPLY, {**DRY, "fieldManager": "m", "force": "true"})
