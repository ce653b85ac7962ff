"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: denials, warnings and mutations."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.behaviour.conftest import Api, Reply

ROOT = "/apis/admissionregistration.k8s.io/v1"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
DRY = {"dryRun": "All"}
MARK = "policies.example.com/mark"


def rule(resources: str = "configmaps", operations: str = "CREATE UPDATE", group: str = "") -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": operations.split(), "resources": resources.split()}


def until(done: Callable[[], bool]) -> None:
    """Poll until a condition holds: a real server observes policies, parameters and roles asynchronously."""
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def put_in_force(api: Api, kind: str, name: str, spec: dict[str, Any], bindings: list[dict[str, Any]]) -> list[str]:
    """Make a policy of the test's namespace with its bindings. The paths of what was made."""
    where = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}},
        "objectSelector": {"matchExpressions": [{"key": MARK, "operator": "DoesNotExist"}]},
    }
    spec = {**spec, "matchConstraints": {**where, "resourceRules": [rule()], **spec.get("matchConstraints", {})}}
    plural = f"{ROOT}/{kind.lower()}admissionpolic"
    made = [(f"{plural}ies", {"metadata": {"name": name}, "spec": spec})]
    for number, binding in enumerate(bindings):
        own = {"validationActions": ["Deny"]} if kind == "Validating" else {}
        made.append(
            (f"{plural}ybindings", {"metadata": {"name": f"{name}-{number}"}, "spec": {"policyName": name, **own, **binding}})
        )
    for path, obj in made:
        reply = api.post(path, obj)
        assert reply.status == 201, reply.json
    return [f"{path}/{obj['metadata']['name']}" for path, obj in made]


@contextlib.contextmanager
def policies(api: Api, kind: str, *specs: dict[str, Any], bindings: list[dict[str, Any]] | None = None) -> Iterator[list[str]]:
    """Policies, in force while the block runs; their names are `policy-0`, `policy-1` … in the test's own name."""
    paths: list[str] = []
    mark = api.name(f"{kind.lower()}-mark")
    seen = f"{mark}-seen"
    only = {"objectSelector": {"matchLabels": {MARK: mark}}}
    probe = (
        {"validations": [{"expression": "false", "message": seen}]}
        if kind == "Validating"
        else {
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {"expression": f"[JSONPatch{{op: 'add', path: '/data', value: {{'seen': '{seen}'}}}}]"},
                }
            ],
        }
    )
    try:
        for number, spec in enumerate(specs):
            paths += put_in_force(api, kind, api.name(f"policy-{number}"), spec, [{}] if bindings is None else bindings)
        paths += put_in_force(api, kind, api.name("zz-probe"), {**probe, "matchConstraints": only}, [{}])
        until(
            lambda: (
                seen in str(api.post(api.path("configmaps"), {"metadata": {"name": "probe", "labels": {MARK: mark}}}, DRY).json)
            )
        )
        yield paths
    finally:
        for path in reversed(paths):
            api.delete(path)
        if not api.is_ours:
            time.sleep(1.2)


def create(api: Api, name: str = "one", labels: dict[str, str] | None = None, **data: str) -> Reply:
    meta = {"name": name, **({"labels": labels} if labels else {})}
    return api.post(api.path("configmaps"), {"metadata": meta, "data": data}, DRY)


def denial(api: Api, message: str, number: int = 0, binding: int = 0) -> str:
    name = api.name(f"policy-{number}")
    return (
        f"configmaps \"one\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}-{binding}' denied request: "
        f"{message}"
    )


# ---------------------------------------------------------------- validation


def test_failing_validation_rejects_the_write(api: Api) -> None:
    validations = [
        {"expression": "object.data.a != 'no'"},
        {"expression": "object.data.a != 'told'", "message": "do not say told"},
        {"expression": "object.data.a != 'made'", "messageExpression": "'not ' + object.data.a", "reason": "Forbidden"},
        {"expression": "object.data.a != 'large'", "reason": "RequestEntityTooLarge"},
    ]
    with policies(api, "Validating", {"validations": validations}):
        for value, code, reason, message in (
            ("no", 422, "Invalid", "failed expression: object.data.a != 'no'"),
            ("told", 422, "Invalid", "do not say told"),
            ("made", 403, "Forbidden", "not made"),
            ("large", 413, "RequestEntityTooLarge", "failed expression: object.data.a != 'large'"),
        ):
            reply = create(api, a=value)
            assert (reply.status, reply.at("reason"), reply.at("message")) == (code, reason, denial(api, message))
            assert reply.at("details", "causes") == [{"message": denial(api, message).partition(" is forbidden: ")[2]}]
        assert create(api, a="yes").status == 201


@pytest.mark.parametrize(("failure_policy", "status"), [("Fail", 422), ("Ignore", 201)])
def test_expression_error_follows_the_failure_policy(api: Api, failure_policy: str, status: int) -> None:
    spec = {
        "failurePolicy": failure_policy,
        "variables": [{"name": "number", "expression": "int(object.data.a)"}],
        "validations": [{"expression": "variables.number < 5", "messageExpression": "string(variables.number) + ' is too much'"}],
    }
    with policies(api, "Validating", spec):
        reply = create(api, a="x")
        assert reply.status == status
        if status == 422:
            assert reply.at("message") == denial(
                api,
                "expression 'variables.number < 5' resulted in error: composited variable \"number\" fails to evaluate: "
                "type conversion error from 'string' to 'int'",
            )
        assert create(api, a="7").at("message") == denial(api, "7 is too much")


def test_policy_bindings_select_objects_and_validation_actions(api: Api) -> None:
    def only(team: str) -> dict[str, Any]:
        return {"objectSelector": {"matchLabels": {"team": team}}}

    bindings = [
        {"validationActions": ["Warn"], "matchResources": only("warned")},
        {"validationActions": ["Audit"], "matchResources": only("audited")},
        {
            "validationActions": ["Deny", "Audit"],
            "matchResources": {**only("denied"), "excludeResourceRules": [{**rule(), "resourceNames": ["two"]}]},
        },
    ]
    with policies(api, "Validating", {"validations": [{"expression": "false", "message": "no"}]}, bindings=bindings):
        warned = create(api, labels={"team": "warned"})
        assert warned.status == 201
        name = api.name("policy-0")
        assert warned.headers["warning"] == (
            f"299 - \"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}-0': no\""
        )
        audited = create(api, labels={"team": "audited"})
        assert (audited.status, audited.headers.get("warning")) == (201, None)
        assert create(api, labels={"team": "denied"}).at("message") == denial(api, "no", binding=2)
        assert create(api, "two", labels={"team": "denied"}).status == 201
        assert create(api, labels={"team": "other"}).status == 201


def test_match_conditions_of_policies(api: Api) -> None:
    conditions = [
        {"name": "not-free", "expression": "!has(object.data.free)"},
        {"name": "by-number", "expression": "int(object.data.number) > 1"},
    ]
    with policies(api, "Validating", {"matchConditions": conditions, "validations": [{"expression": "false", "message": "no"}]}):
        assert create(api, number="0").status == 201
        assert create(api, number="x", free="").status == 201
        assert create(api, number="2").at("message") == denial(api, "no")
        assert create(api, number="x").at("message") == denial(
            api, "expression 'int(object.data.number) > 1' resulted in error: type conversion error from 'string' to 'int'"
        )


def test_policy_parameters(api: Api) -> None:
    """A real server stops its informer of a built-in kind with the last policy using it: there this test passes only once."""
    api.post(api.path("configmaps"), {"metadata": {"name": "limits", "labels": {"limits": "yes"}}, "data": {"max": "1"}})
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConditions": [{"name": "judged", "expression": "!('limits' in object.metadata.?labels.orValue({}))"}],
        "validations": [
            {
                "expression": "object.data.size() <= int(params.data.max)",
                "messageExpression": "'at most ' + params.data.max + ' by ' + params.kind + ' ' + params.metadata.name",
            }
        ],
    }

    def bound(by: str, **reference: Any) -> dict[str, Any]:
        return {"paramRef": reference, "matchResources": {"objectSelector": {"matchLabels": {"by": by}}}}

    bindings = [
        bound("name", name="limits", parameterNotFoundAction="Deny"),
        bound("labels", selector={"matchLabels": {"limits": "yes"}}, parameterNotFoundAction="Deny"),
        bound("none", name="nobody", parameterNotFoundAction="Deny"),
        bound("any", name="nobody", parameterNotFoundAction="Allow"),
    ]
    with policies(api, "Validating", spec, bindings=bindings):
        until(lambda: "at most" in str(create(api, labels={"by": "name"}, a="", b="").json))
        for number, by in enumerate(("name", "labels")):
            assert create(api, labels={"by": by}, a="").status == 201
            too_many = create(api, labels={"by": by}, a="", b="")
            assert too_many.at("message") == denial(api, "at most 1 by ConfigMap limits", binding=number)
        assert create(api, labels={"by": "none"}).at("message") == denial(
            api, "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction", binding=2
        )
        assert create(api, labels={"by": "any"}, a="", b="").status == 201
        api.patch(api.path("configmaps", "limits"), {"data": {"max": "2"}}, MERGE)
        until(lambda: create(api, labels={"by": "name"}, a="", b="").status == 201)


def test_missing_param_kind_fails_the_policy(api: Api) -> None:
    spec = {"paramKind": {"apiVersion": "nobody.example.com/v1", "kind": "Nothing"}, "validations": [{"expression": "true"}]}
    with policies(api, "Validating", spec, bindings=[{"paramRef": {"name": "x", "parameterNotFoundAction": "Allow"}}]):
        assert create(api).at("message") == (
            f"configmaps \"one\" is forbidden: ValidatingAdmissionPolicy '{api.name('policy-0')}' denied request: failed to "
            "configure policy: failed to find resource referenced by paramKind: 'nobody.example.com/v1, Kind=Nothing'"
        )


def test_request_and_namespace_object_variables(api: Api) -> None:
    says = (
        "[request.operation, request.kind.kind, request.resource.resource, request.name, request.userInfo.username, "
        "string(request.dryRun), string(request.options.kind), namespaceObject.metadata.name == request.namespace ? 'here' : 'there', "
        "oldObject == null ? 'new' : 'old'].join(' ')"
    )
    deny = {"validations": [{"expression": "false", "messageExpression": says}]}
    path = api.path("configmaps")
    api.post(path, {"metadata": {"name": "kept"}})
    with policies(api, "Validating", {**deny, "matchConstraints": {"resourceRules": [rule(operations="*")]}}):
        user = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}).at("status", "userInfo", "username")
        for reply, seen in (
            (create(api), f"CREATE ConfigMap configmaps one {user} true CreateOptions here new"),
            (
                api.patch(f"{path}/kept", {"data": {"a": "1"}}, MERGE),
                f"UPDATE ConfigMap configmaps kept {user} false UpdateOptions here old",
            ),
            (api.delete(f"{path}/kept"), f"DELETE ConfigMap configmaps kept {user} false DeleteOptions here old"),
        ):
            assert reply.status == 422
            assert reply.at("message").endswith(f"denied request: {seen}")


def test_authorizer_variable(api: Api) -> None:
    checks = [
        "authorizer.requestResource.check('create').allowed()",
        "authorizer.group('').resource('configmaps').namespace(request.namespace).name('x').check('delete').allowed()",
        "authorizer.group('apps').resource('deployments').namespace(request.namespace).check('list').allowed()",
        "authorizer.path('/secret').check('get').allowed()",
        "authorizer.serviceAccount(request.namespace, 'nobody').group('').resource('pods').check('get').allowed()",
    ]
    validations = [{"expression": check, "message": str(number)} for number, check in enumerate(checks)]
    user = api.name("user")
    roles = api.path("roles", group="rbac.authorization.k8s.io/v1")
    api.post(roles, {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]})
    api.post(
        api.path("rolebindings", group="rbac.authorization.k8s.io/v1"),
        {
            "metadata": {"name": "r"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        },
    )
    body = {"metadata": {"name": "one"}}
    with policies(api, "Validating", {"validations": validations}, bindings=[{"validationActions": ["Warn"]}]):
        path, asked = api.path("configmaps"), {"Impersonate-User": user}
        until(lambda: api.post(path, body, DRY, headers=asked).status == 201)
        told = api.post(path, body, DRY, headers=asked).headers["warning"]
        assert [number for number in "01234" if f"': {number}\"" in told] == ["1", "2", "3", "4"]


def test_expression_cost_limits(api: Api) -> None:
    costly = "string(object.data.text).matches(string(object.data.pattern))"
    validations = [
        {"expression": "object.data.which != 'one' || " + " || ".join([costly] * 6)},
        *({"expression": f"object.data.which != 'all' || {' || '.join([costly] * 4)} || {n} >= 0"} for n in range(14)),
    ]
    with policies(api, "Validating", {"validations": validations}):
        body = {"text": "x" * 20_000, "pattern": "y" * 400}
        one = create(api, which="one", **body).at("message")
        assert one.endswith("resulted in error: operation cancelled: actual cost limit exceeded")
        assert create(api, which="all", **body).at("message") == denial(
            api, "validation failed due to running out of cost budget, no further validation rules will be run"
        )


def test_match_policy_equivalent_and_exact(api: Api) -> None:
    says = "request.kind.version + ' asked as ' + request.requestKind.version + ' ' + object.apiVersion"
    rules = {"resourceRules": [{**rule("horizontalpodautoscalers", group="autoscaling"), "apiVersions": ["v1"]}]}
    scaler = {
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
    }
    for match_policy, status in (("Equivalent", 422), ("Exact", 201)):
        spec = {
            "validations": [{"expression": "false", "messageExpression": says}],
            "matchConstraints": {**rules, "matchPolicy": match_policy},
        }
        with policies(api, "Validating", spec):
            reply = api.post(api.path("horizontalpodautoscalers", group="autoscaling/v2"), scaler, DRY)
            assert reply.status == status
            if status == 422:
                assert reply.at("message").endswith("v1 asked as v2 autoscaling/v1")


def test_policy_for_the_scale_subresource(api: Api) -> None:
    path = api.path("deployments", group="apps/v1")
    api.post(
        path,
        {
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            },
        },
    )
    spec = {
        "matchConstraints": {"resourceRules": [rule("deployments/scale", group="apps")]},
        "validations": [
            {
                "expression": "object.spec.replicas <= oldObject.spec.replicas",
                "messageExpression": "object.kind + ' ' + string(object.spec.replicas)",
            }
        ],
    }
    with policies(api, "Validating", spec):
        reply = api.patch(f"{path}/web/scale", {"spec": {"replicas": 3}}, MERGE)
        assert reply.at("message").endswith("denied request: Scale 3")
        assert api.patch(f"{path}/web/scale", {"spec": {"replicas": 1}}, MERGE).status == 200


# ---------------------------------------------------------------- mutation


def applied(expression: str, **spec: Any) -> dict[str, Any]:
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    return {"reinvocationPolicy": "Never", **spec, "mutations": [mutation, *spec.get("mutations", ())]}


def patched(expression: str, **spec: Any) -> dict[str, Any]:
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    return {"reinvocationPolicy": "Never", **spec, "mutations": [mutation, *spec.get("mutations", ())]}


def test_mutating_policy_apply_configuration(api: Api) -> None:
    spec = applied(
        "Object{metadata: Object.metadata{labels: {'team': 'red'}}, data: {'size': string(variables.size)}}",
        variables=[{"name": "size", "expression": "object.data.size()"}],
    )
    with policies(api, "Mutating", spec):
        reply = create(api, labels={"app": "web"}, a="1")
        assert reply.at("metadata", "labels") == {"app": "web", "team": "red"}
        assert reply.at("data") == {"a": "1", "size": "1"}
        owned = reply.at("metadata", "managedFields", 0, "fieldsV1")
        assert owned["f:data"] == {".": {}, "f:a": {}}, "what a policy sets belongs to nobody"
        fresh = api.patch(
            api.path("configmaps", "fresh"),
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fresh"}, "data": {"b": "2"}},
            APPLY,
            {"fieldManager": "m"},
        )
        assert fresh.at("data") == {"b": "2", "size": "1"}


def test_apply_configuration_merges_lists_by_key_and_sets_defaults(api: Api) -> None:
    sidecar = (
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'sidecar', image: 'side:1'}, "
        "Object.spec.containers{name: 'main', workingDir: '/tmp'}]}}"
    )
    with policies(api, "Mutating", applied(sidecar, matchConstraints={"resourceRules": [rule("pods")]})):
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "main:1"}]}}
        containers = api.post(api.path("pods"), pod, DRY).at("spec", "containers")
        assert [(c["name"], c["image"], c.get("workingDir")) for c in containers] == [
            ("sidecar", "side:1", None),
            ("main", "main:1", "/tmp"),
        ]
        assert containers[0]["imagePullPolicy"] == "IfNotPresent"


def test_mutating_policy_json_patch(api: Api) -> None:
    operations = (
        "[JSONPatch{op: 'test', path: '/data/a', value: '1'}, JSONPatch{op: 'move', from: '/data/a', path: '/data/b'}, "
        "JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}, "
        "JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('example.com/a'), value: 'yes'}]"
    )
    with policies(api, "Mutating", patched(operations)):
        reply = create(api, a="1")
        assert (reply.at("data"), reply.at("metadata", "annotations")) == ({"b": "1"}, {"example.com/a": "yes"})
        assert create(api, a="2").at("data") == {"a": "2"}, "a test that fails ends the patch"


@pytest.mark.parametrize(
    ("mutation", "status", "message"),
    [
        (
            applied("Object{data: {'a': string(object.data.none)}}"),
            403,
            "expression 'Object{data: {'a': string(object.data.none)}}' resulted in error: no such key: none",
        ),
        (
            applied("Object{nosuch: 'x'}"),
            403,
            "error applying patch: failed to convert patch object to typed object: .nosuch: field not declared in schema",
        ),
        (
            applied("Object{metadata: Object.spec{labels: {'a': 'b'}}}"),
            403,
            'type mismatch: unexpected type name "Object.spec", expected "Object.metadata", which matches field name path from root '
            "Object type",
        ),
        (
            patched("[JSONPatch{op: 'remove', path: '/data/none'}]"),
            403,
            "JSON Patch: error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value",
        ),
        (
            patched("[JSONPatch{op: 'add', path: '/data/x', value: 5}]"),
            500,
            "Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            patched("[JSONPatch{op: 'add', path: '/nosuch', value: 'x'}]"),
            500,
            'Internal error occurred: strict decoding error: unknown field "nosuch"',
        ),
    ],
)
def test_failing_mutations_are_reported(api: Api, mutation: dict[str, Any], status: int, message: str) -> None:
    with policies(api, "Mutating", mutation):
        reply = create(api, a="1")
        assert reply.status == status
        name = api.name("policy-0")
        denied = f"policy '{name}' with binding '{name}-0' denied request: " if status == 403 else ""
        assert reply.at("message") == f"{denied}{message}"
        assert reply.at("reason") == ("Invalid" if status == 403 else "InternalError")


def test_apply_configuration_cannot_change_atomic_lists(api: Api) -> None:
    spec = applied(
        "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'main', args: ['x']}]}}",
        matchConstraints={"resourceRules": [rule("pods")]},
    )
    with policies(api, "Mutating", spec):
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "main:1"}]}}
        assert (
            api.post(api.path("pods"), pod, DRY)
            .at("message")
            .endswith(
                "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
                ".spec.containers[0].args"
            )
        )


def test_failure_policy_ignore_keeps_other_mutations(api: Api) -> None:
    spec = applied("Object{data: {'b': 'set'}}", failurePolicy="Ignore")
    spec["mutations"].append({"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'swap', path: '/'}]"}})
    with policies(api, "Mutating", spec):
        assert create(api, a="1").at("data") == {"a": "1", "b": "set"}


def test_reinvocation_policy_of_mutating_policies(api: Api) -> None:
    def counting(key: str, again: str) -> dict[str, Any]:
        count = f"string(int('{key}' in object.data ? string(object.data.{key}) : '0') + 1)"
        return applied(f"Object{{data: {{'{key}': {count}}}}}", reinvocationPolicy=again)

    with policies(api, "Mutating", counting("again", "IfNeeded"), counting("once", "Never")):
        assert create(api, a="1").at("data") == {"a": "1", "again": "2", "once": "1"}


def test_validating_policies_see_mutated_objects(api: Api) -> None:
    added = patched("[JSONPatch{op: 'add', path: '/data/added', value: string(object.data.size())}]")
    validations = [{"expression": "object.data.added != '2'", "messageExpression": "'added ' + object.data.added"}]
    with policies(api, "Mutating", added), policies(api, "Validating", {"validations": validations}):
        assert create(api, a="1").at("data", "added") == "1"
        assert create(api, a="1", b="2").at("message") == denial(api, "added 2")


def test_custom_resources_are_mutated_by_their_schema(api: Api) -> None:
    plural, group = "widgets", f"{api.name('w')}.example.com"
    part = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}
    spec = {
        "type": "object",
        "properties": {
            "mode": {"type": "string", "default": "plain"},
            "parts": {"type": "array", "items": part, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        },
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert api.post(definitions, definition).status == 201
    path = api.path(plural, group=f"{group}/v1")
    body = {
        "apiVersion": f"{group}/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"parts": [{"name": "a", "size": 1}]},
    }
    resized = applied(
        "Object{spec: Object.spec{parts: [Object.spec.parts{name: 'a', size: 2}, Object.spec.parts{name: 'b'}]}}",
        matchConstraints={"resourceRules": [rule(plural, group=group)]},
    )
    try:
        with policies(api, "Mutating", resized):
            until(lambda: api.post(path, body, DRY).status == 201)
            assert api.post(path, body, DRY).at("spec") == {"mode": "plain", "parts": [{"name": "a", "size": 2}, {"name": "b"}]}
    finally:
        api.delete(f"{definitions}/{plural}.{group}")
