"""Random stories of admission: policies that validate and mutate, with parameters, and webhooks that answer wrongly."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.definitions import DRY
from tests.differential.generators.expressions import Expressions
from tests.differential.random_stories import Steady
from tests.differential.scenarios import webhooks
from tests.differential.steps import (
    anchored,
    applied,
    collection,
    config_map,
    maps,
    on,
    patched,
    policed,
    policy,
    policy_binding,
    settled,
)

# fmt: off

Object = dict[str, Any]

OF_REQUESTS = {
    "bool": ["request.dryRun", "oldObject == null", "has(object.data.a)"], "int": ["size(object.data)"],
    "string": ["object.metadata.name", "object.data.a", "object.data['b']", "request.operation", "request.userInfo.username", "request.namespace", "namespaceObject.metadata.name", "variables.one", "request.kind.kind", "request.resource.resource"],
    "list": ["request.userInfo.groups", "variables.many", "object.metadata.finalizers"], "map": ["object.data", "object.metadata.labels", "namespaceObject.metadata.labels", "object.metadata.?annotations.orValue({'a': 'b'})"],
    "any": ["object.data.a", "object.data.c", "object.metadata.labels", "oldObject.data", "request.options", "request.name", "object.metadata.nope", "params.data", "request.subResource", "authorizer.group('').resource('pods').check('get').allowed()", "authorizer.requestResource.check('get').reason()"],
}
OF_PARAMS = {**OF_REQUESTS, "string": [*OF_REQUESTS["string"], "params.data.limit", "params.metadata.name"], "map": [*OF_REQUESTS["map"], "params.data"]}
_REASONS = ("Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge", "Nope")


def _conditions(rng: Steady, drawn: Expressions) -> Object:
    names = ["a", "b.c/d", "a", "Not Valid"] if rng.random() < 0.1 else ["a", "b.c/d"]
    return {"matchConditions": [{"name": name, "expression": drawn.of("bool")} for name in names[: rng.choice([1, 1, 2])]]} if rng.random() < 0.35 else {}


def _variables(rng: Steady, drawn: Expressions) -> Object:
    return {"variables": [{"name": "one", "expression": drawn.of("string")}, {"name": "many", "expression": drawn.of("list")}]} if rng.random() < 0.8 else {}


def _parameters(rng: Steady) -> Object:
    return {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}} if rng.random() < 0.35 else {}


def validating(rng: Steady) -> Object:
    """The spec of a policy that validates."""
    spec: Object = {**_parameters(rng)}
    drawn = Expressions(rng, OF_PARAMS if spec else OF_REQUESTS)
    spec |= {**_conditions(rng, drawn), **_variables(rng, drawn)}
    validations = []
    for _ in range(rng.choice([1, 1, 2])):
        one: Object = {"expression": drawn.of("bool")}
        if rng.random() < 0.4:
            one["message"] = rng.choice(["wrong", "two\nlines", " ", "é"])
        if rng.random() < 0.4:
            one["messageExpression"] = drawn.of("string")
        if rng.random() < 0.3:
            one["reason"] = rng.choice(_REASONS)
        validations.append(one)
    spec["validations"] = validations
    if rng.random() < 0.3:
        spec["auditAnnotations"] = [{"key": rng.choice(["k", "k", "Not Valid"]), "valueExpression": drawn.of("string")}]
    if rng.random() < 0.4:
        spec["failurePolicy"] = rng.choice(["Fail", "Ignore"])
    return spec


def _value(rng: Steady, drawn: Expressions) -> str:
    return rng.choice([drawn.of("string"), drawn.of("string"), drawn.of("any"), "'x'"])


def mutating(rng: Steady) -> Object:
    """The spec of a policy that mutates config maps."""
    spec: Object = {**_parameters(rng)}
    drawn = Expressions(rng, OF_PARAMS if spec else OF_REQUESTS)
    spec |= {**_conditions(rng, drawn), **_variables(rng, drawn)}
    mutations = []
    for _ in range(rng.choice([1, 1, 2])):
        value = _value(rng, drawn)
        if rng.random() < 0.5:
            mutations.append(applied(rng.choice([
                f"Object{{data: {{'x': {value}}}}}", f"Object{{metadata: Object.metadata{{labels: {{'l': {value}}}}}}}", f"Object{{data: {{{value}: 'x'}}}}", f"Object{{metadata: Object.metadata{{name: {value}}}}}", "Object{}", f"Object{{nope: {value}}}",
                f"Object{{metadata: Object.metadata{{finalizers: [{value}]}}}}", f"has(object.data) ? Object{{data: {{'y': {value}}}}} : Object{{}}", f"Object{{immutable: {drawn.of('bool')}}}", f"{{'data': {{'x': {value}}}}}", f"Object{{metadata: Object.metadata{{ownerReferences: [Object.metadata.ownerReferences{{name: {value}}}]}}}}",
            ])))
        else:
            path = rng.choice(["'/data/x'", "'/data/' + jsonpatch.escapeKey('a/b~c')", "'/metadata/labels'", "'/metadata/labels/l'", "'/data/nope'", "'nope'", "''", "'/metadata/name'", "'/metadata/annotations'", f"'/data/' + {drawn.of('string')}"])
            op = rng.choice(["'add'", "'add'", "'replace'", "'remove'", "'test'", "'copy'", "'move'", "'nope'"])
            more = f", value: {value}" if op in ("'add'", "'replace'", "'test'") else ", from: '/data/a'" if op in ("'copy'", "'move'") else ""
            mutations.append(patched(f"[JSONPatch{{op: {op}, path: {path}{more}}}]" if rng.random() < 0.9 else rng.choice(["[]", "JSONPatch{op: 'test'}", "['x']", "[JSONPatch{op: 'add', path: '/data', value: {'a': 'b'}}]"])))
    spec["mutations"] = mutations
    if rng.random() < 0.4:
        spec["failurePolicy"] = rng.choice(["Fail", "Ignore"])
    if rng.random() < 0.3:
        spec["reinvocationPolicy"] = rng.choice(["IfNeeded", "Never"])
    return spec


def _binding(rng: Steady, kind: str, with_parameters: bool) -> Object:
    out: Object = {}
    if kind == "Validating":
        out["validationActions"] = rng.choice([["Deny"], ["Deny"], ["Warn"], ["Audit"], ["Warn", "Audit"], ["Deny", "Audit"]])
    if with_parameters and rng.random() < 0.9:
        out["paramRef"] = rng.choice([{"name": "limits"}, {"name": "absent"}, {"selector": {"matchLabels": {"role": "limits"}}}, {"selector": {}}, {"selector": {"matchLabels": {"role": "none"}}}, {"name": "limits", "namespace": "default"}])
        out["paramRef"] = {**out["paramRef"], "parameterNotFoundAction": rng.choice(["Allow", "Deny"])}
    if rng.random() < 0.2:
        out["matchResources"] = rng.choice([{"objectSelector": {"matchLabels": {"team": "a"}}}, {"excludeResourceRules": [on("configmaps", "UPDATE")]}, {"resourceRules": [on("configmaps", "CREATE")]}, {"matchPolicy": "Exact"}])
    return out


_TRIES = 5


def _tell_policies(client: Client, rng: Steady, kind: str) -> None:
    """Draws policies; those that are accepted are put in force, each for the objects that bear its name, and asked."""
    for name, limit in (("limits", "3"), ("more", "abc")):
        client.post(maps(client), {**config_map(name, {"role": "limits"}), "data": {"limit": limit}}, silent=True)
    anchored(client)
    operations = "CREATE UPDATE" if kind == "Mutating" else "CREATE UPDATE DELETE"
    specs: dict[str, Object] = {}
    for number in range(12):
        name = f"p{number}"
        spec = validating(rng) if kind == "Validating" else mutating(rng)
        spec["matchConstraints"] = {"resourceRules": [on("configmaps", operations, resourceNames=[name])]}
        if client.post(collection(kind), policy(client, kind, client.name(name), spec), DRY).status == 201 and len(specs) < _TRIES:
            specs[name] = spec
    with contextlib.ExitStack() as stack:
        for name, spec in specs.items():
            bindings = [_binding(rng, kind, "paramKind" in spec) for _ in range(rng.choice([1, 1, 2]) if kind == "Validating" else 1)]  # bindings that mutate come in any order
            stack.enter_context(policed(client, spec, *bindings, kind=kind, suffix=name, wait=False))
        settled(client, kind)
        for name in specs:
            path = f"{maps(client)}/{name}"
            for _ in range(2):
                body = {**config_map(name, {"team": rng.choice("ab")} if rng.random() < 0.6 else None), "data": rng.choice([{"a": "1", "b": "x"}, {"a": "abc"}, {"b": "5s", "c": "1Gi"}, {}])}
                client.post(maps(client), body, DRY if rng.random() < 0.5 else None)
            client.post(maps(client), {**config_map(name), "data": {"a": "zz"}})
            client.patch(path, {"data": {"a": rng.choice(["2", "xyz"])}}, MERGE)
            client.delete(path, None, DRY)
    for name in specs:
        client.delete(f"{maps(client)}/{name}", silent=True)


def tell_validating(client: Client, rng: Steady) -> None:
    """Policies that validate."""
    _tell_policies(client, rng, "Validating")


def tell_mutating(client: Client, rng: Steady) -> None:
    """Policies that mutate."""
    _tell_policies(client, rng, "Mutating")


def tell_bindings(client: Client, rng: Steady) -> None:
    """Policies and bindings with odd matches and parameters, as objects."""
    for _ in range(10):
        kind = rng.choice(["Validating", "Mutating"])
        body = policy_binding(client, kind, client.name("b"), {"policyName": rng.choice(["p", "", "Not Valid"]), **_binding(rng, kind, True)})
        if rng.random() < 0.4:
            body["spec"]["validationActions"] = rng.choice([["Deny", "Warn"], ["Deny", "Deny"], [], ["Nope"], None])
        if rng.random() < 0.5:
            body["spec"]["paramRef"] = rng.choice([{}, {"name": "a", "selector": {}}, {"name": ""}, {"name": "a"}, {"name": "a", "parameterNotFoundAction": "Nope"}, {"selector": {"matchLabels": {"a b": "c"}}, "parameterNotFoundAction": "Deny"}, None])
        client.post(collection(kind, True), body, DRY)


def _responses(rng: Steady, review: Object) -> Any:
    """What a webhook answers: rarely what it should."""
    uid = review["request"]["uid"]
    whole = {"apiVersion": review["apiVersion"], "kind": review["kind"]}

    def said(**response: Any) -> Object:
        return {**whole, "response": {"uid": uid, "allowed": True, **response}}

    def patch(document: Any, kind: str = "JSONPatch") -> Object:
        text = document if isinstance(document, str) else json.dumps(document)
        return {"patchType": kind, "patch": base64.b64encode(text.encode()).decode()}

    return rng.choice([
        said(), said(), said(uid="other"), said(uid=""), said(allowed=False), said(allowed=False, status={}), said(allowed=False, status={"message": "no"}), said(allowed=False, status={"reason": "Conflict"}), said(allowed=False, status={"code": 418, "message": "tea"}),
        said(allowed=False, status={"code": 200}), said(allowed=False, status={"code": 404, "reason": "NotFound", "message": "gone", "details": {"name": "x", "causes": [{"message": "m"}]}}), said(allowed=False, status={"metadata": {}, "status": "Success", "message": "odd"}), said(status={"message": "ignored"}),
        said(warnings=["careful"]), said(warnings=["a" * 300, "two\nlines", ""]), said(warnings=["x"] * 20), said(allowed=False, warnings=["and warned"]), said(auditAnnotations={"k": "v"}), said(auditAnnotations={"Not Valid": "v"}),
        said(**patch([{"op": "add", "path": "/data/x", "value": "y"}])), said(**patch([{"op": "replace", "path": "/data/nope", "value": "y"}])), said(**patch([{"op": "add", "path": "/data/x", "value": 5}])), said(**patch([{"op": "test", "path": "/data/a", "value": "0"}])),
        said(**patch([{"op": "replace", "path": "/metadata/name", "value": "other"}])), said(**patch([{"op": "add", "path": "/nope", "value": 1}])), said(**patch([{"op": "replace", "path": "/kind", "value": "Secret"}])), said(**patch("nope")), said(**patch("{}")), said(**patch("[]")), said(**patch([])), said(**patch([{"op": "nope"}])),
        said(**patch([{"op": "remove", "path": "/metadata"}])), said(**patch([{"op": "replace", "path": "/metadata/namespace", "value": "x"}])), said(**patch([{"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}])), said(**patch([{"op": "add", "path": "", "value": None}])), said(**patch([{"op": "replace", "path": "/data", "value": None}])),
        said(**patch([], "MergePatch")), said(**patch([], "")), said(patch="!!"), said(patchType="JSONPatch"), said(patch=base64.b64encode(b"[]").decode()), {}, [], "x", None, {"response": {"uid": uid, "allowed": True}}, {**whole, "kind": "Nope", "response": {"uid": uid, "allowed": True}},
        {**whole, "apiVersion": "admission.k8s.io/v1beta1", "response": {"uid": uid, "allowed": True}}, {**whole, "apiVersion": "v1", "response": {"uid": uid, "allowed": True}}, whole, {**whole, "response": None}, {**whole, "response": {"allowed": True}}, {**whole, "response": {"uid": uid}}, {**whole, "response": {"uid": uid, "allowed": "yes"}},
        {**whole, "response": "x"}, (500, b"broken"), (500, json.dumps(said()).encode()), (404, b""), (301, b""), (200, b""), (200, b"{"), (200, b"\x00\xff"), (201, json.dumps(said()).encode()), (302, b"x"), (429, b"slow down"), (400, b'{"kind":"Status","message":"bad"}'), (503, b'{"kind":"Status","apiVersion":"v1","message":"away","reason":"ServiceUnavailable","code":503}'), (204, b""),
    ])


def tell_webhooks(client: Client, rng: Steady) -> None:
    """One or two webhooks that answer what they should not."""
    kind = rng.choice(["Validating", "Mutating"])
    turns = {"n": 0}
    seed = rng.random()

    def answer(path: str, review: Object) -> Any:
        return _responses(Steady(f"{seed} {turns['n']} {path}"), review)

    entries = []
    for _ in range(rng.choice([1, 1, 2]) if kind == "Mutating" else 1):  # of several that validate, the fastest is told
        entry: Object = {"failurePolicy": rng.choice(["Fail", "Fail", "Ignore"])}
        if rng.random() < 0.2:
            entry["sideEffects"] = "NoneOnDryRun"
        if rng.random() < 0.15:
            entry["admissionReviewVersions"] = ["v1beta1", "v1"]
        if rng.random() < 0.25:
            entry["matchConditions"] = [{"name": "a", "expression": rng.choice(["object.metadata.name != 'skip'", "object.data.nope == 'x'", "request.operation == 'CREATE'", "'x' in request.userInfo.groups"])}]
        if rng.random() < 0.2 and kind == "Mutating":
            entry["reinvocationPolicy"] = "IfNeeded"
        entries.append(entry)
    with webhooks.hooked(client, kind, answer, *entries):
        for number in range(14):
            turns["n"] = number
            client.post(maps(client), config_map(rng.choice(["one", "skip", "two"])), DRY if rng.random() < 0.6 else None)
            turns["n"] = number + 100
            if rng.random() < 0.4:
                client.patch(f"{maps(client)}/one", {"data": {"a": str(number)}}, MERGE, DRY)
            if rng.random() < 0.15:
                client.delete(f"{maps(client)}/one", None, DRY)
