"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: what they match, what their expressions see, what they say and do.

Policies and bindings are put in place silently, and a scenario waits until they are in force. Only one policy speaks
about an object at a time where the order in which several are asked would show: that order is not defined.
"""

from __future__ import annotations

import json
from typing import Any

from tests.differential.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, TABLE, Client
from tests.differential.definitions import ANY, CRDS, DRY, definition, make, note, obj, served
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.steps import (
    ALICE,
    accounts,
    anchored,
    applied,
    collection,
    config_map,
    deployment,
    grant,
    maps,
    on,
    only,
    patched,
    pod,
    policed,
    policed_each,
    policy,
    policy_binding,
    robot,
    rule,
    settled,
    unfinalize,
)
from tests.differential.transports import Reply

SAYS = "request.operation + ' ' + request.kind.kind + ' ' + request.resource.resource + (has(request.subResource) ? '/' + request.subResource : '') + ' ' + (has(request.name) ? request.name : 'unnamed')"
WARN = {"validationActions": ["Warn"]}


def denying(message: str = SAYS, **spec: Any) -> dict[str, Any]:
    """A policy's spec that denies whatever it matches and says what it saw."""
    return {"validations": [{"expression": "false", "messageExpression": message}], **spec}


def telling(*parts: str, **constraints: Any) -> dict[str, Any]:
    """A policy's spec that fails once for each expression and says its value."""
    return {
        "validations": [
            {"expression": "false", "messageExpression": f"'{i}: ' + string({part})", "message": f"{i} errs"}
            for i, part in enumerate(parts)
        ],
        **({"matchConstraints": constraints} if constraints else {}),
    }


def answers(client: Client, what: str, *replies: Reply) -> None:
    """Note in one line how requests that differ in a detail were answered."""
    note(client, what, [[r.status, r.get("message"), r.headers.get("warning")] for r in replies])


# ---------------------------------------------------------------- what a policy matches


@scenario
def rules_choose_resources(client: Client) -> None:
    """resourceRules: groups, versions, operations, resources with wildcards and names, scope; what no rule names passes."""
    path = maps(client)
    for i, rules in enumerate(
        (
            [on("configmaps", "CREATE")],
            [on("*", "UPDATE", resourceNames=["kept", "two"])],
            [on("configmaps", "*", versions="v2")],
            [on("configmaps", "*", group="apps")],
            [on("configmaps", "CREATE", resourceNames=["one", "three"])],
            [on("*", "*", group="*", versions="*", scope="Cluster", resourceNames=["kept", "one", "two"])],
            [on("configmaps", "*", scope="Namespaced")],
            [on("configmaps", "DELETE"), on("configmaps", "CREATE", resourceNames=["two"])],
            [on("secrets configmaps", "*", group="apps,", versions="v1 v2")],
        )
    ):
        client.post(path, config_map("kept"), silent=True)
        with policed(client, denying(matchConstraints={"resourceRules": rules}), suffix=f"r{i}"):
            client.post(path, config_map("one"), DRY)
            answers(
                client,
                json.dumps(rules),
                client.post(path, config_map("two"), DRY, silent=True),
                client.put(f"{path}/kept", config_map("kept", a="2"), DRY, silent=True),
                client.delete(f"{path}/kept", None, DRY, silent=True),
            )


@scenario
def exclusions_win(client: Client) -> None:
    """excludeResourceRules take away what resourceRules gave: by operation, name and resource; without resourceRules all the rest matches."""
    path = maps(client)
    client.post(path, config_map("kept"), silent=True)
    for i, constraints in enumerate(
        (
            {"excludeResourceRules": [on("configmaps", "UPDATE")]},
            {"excludeResourceRules": [on("*", "*", resourceNames=["one"])]},
            {"excludeResourceRules": [on("configmaps", "*", versions="v9"), on("secrets", "*")]},
            {
                "resourceRules": [on("*", "*", group="*", versions="*", scope="Namespaced")],
                "excludeResourceRules": [on("leases", "*", "coordination.k8s.io", "*"), on("configmaps", "CREATE DELETE")],
            },
            {"excludeResourceRules": [on("*", "*", group="*", versions="*")]},
        )
    ):
        with policed(client, denying(matchConstraints=constraints), suffix=f"x{i}"):
            client.patch(f"{path}/kept", {"data": {"b": "2"}}, MERGE, DRY)
            answers(
                client,
                json.dumps(constraints),
                client.post(path, config_map("one"), DRY, silent=True),
                client.post(path, config_map("two"), DRY, silent=True),
                client.post(f"/api/v1/namespaces/{client.ns}/secrets", {"metadata": {"name": "s"}}, DRY, silent=True),
            )


@scenario
def labels_of_objects_choose(client: Client) -> None:
    """objectSelector looks at the new object and at the old one; either is enough; a deleted object's labels count."""
    path = maps(client)
    client.post(path, config_map("plain"), silent=True)
    client.post(path, config_map("marked", {"team": "red"}), silent=True)
    with policed(client, denying(matchConstraints=only(team="red"))):
        client.post(path, config_map("new"), DRY)
        client.post(path, config_map("new", {"team": "red"}), DRY)
        client.patch(f"{path}/plain", {"metadata": {"labels": {"team": "red"}}}, MERGE, DRY)
        client.patch(f"{path}/plain", {"metadata": {"labels": {"team": "blue"}}}, MERGE, DRY)
        client.patch(f"{path}/marked", {"metadata": {"labels": {"team": None}}}, MERGE, DRY)
        client.delete(f"{path}/plain", None, DRY)
        client.delete(f"{path}/marked", None, DRY)
        client.delete(path, None, {**DRY, "labelSelector": "team=red"})
    expressions = {
        "matchExpressions": [
            {"key": "team", "operator": "NotIn", "values": ["red", "blue"]},
            {"key": "free", "operator": "DoesNotExist"},
        ]
    }
    with policed(client, denying(matchConstraints={"objectSelector": expressions}), suffix="expressions"):
        for labels in (None, {"team": "red"}, {"team": "green"}, {"free": ""}, {"team": "blue", "free": "x"}):
            client.post(path, config_map("new", labels), DRY)


@scenario
def namespaces_choose(client: Client) -> None:
    """namespaceSelector reads the namespace's labels as they are now; a Namespace itself is matched by its own labels; other cluster-wide objects always."""
    other = client.name("other")
    client.post("/api/v1/namespaces", {"metadata": {"name": other, "labels": {"tier": client.id}}}, silent=True)
    selector = {"matchLabels": {"tier": client.id}}
    node = {"metadata": {"name": client.name("node"), "labels": {"tier": client.id}}}
    try:
        with policed(
            client,
            denying(
                matchConstraints={
                    "namespaceSelector": selector,
                    "resourceRules": [on("configmaps namespaces nodes", "*")],
                    "excludeResourceRules": [on("nodes", "*")],
                }
            ),
        ):
            client.post(maps(client), config_map(), DRY)
            client.post(maps(client, other), config_map(), DRY)
            client.post("/api/v1/namespaces", {"metadata": {"name": client.name("third")}}, DRY)
            client.post("/api/v1/namespaces", {"metadata": {"name": client.name("third"), "labels": {"tier": client.id}}}, DRY)
            client.patch(f"/api/v1/namespaces/{other}", {"metadata": {"annotations": {"a": "b"}}}, MERGE, DRY)
            client.post("/api/v1/nodes", node, DRY)
            client.patch(f"/api/v1/namespaces/{client.ns}", {"metadata": {"labels": {"tier": client.id}}}, MERGE)
        settled(client)
        client.patch(f"/api/v1/namespaces/{client.ns}", {"metadata": {"labels": {"tier": client.id}}}, MERGE, silent=True)
        with policed(
            client,
            denying(matchConstraints={"namespaceSelector": selector, "resourceRules": [on("configmaps", "*")]}),
            suffix="again",
        ):
            until(lambda: client.post(maps(client), config_map(), DRY, silent=True).status != 201)
            client.post(maps(client), config_map(), DRY)
        with policed(
            client,
            denying(
                matchConstraints={"namespaceSelector": selector, **only(tier=client.id), "resourceRules": [on("nodes", "*")]}
            ),
            suffix="nodes",
        ):
            client.post("/api/v1/nodes", node, DRY)
    finally:
        client.delete(f"/api/v1/namespaces/{other}", silent=True)


@scenario
def other_versions_are_equivalent(client: Client) -> None:
    """matchPolicy Equivalent, the default, converts to the version of the rule and shows it as kind; requestKind and requestResource say what was asked; Exact passes by."""
    target = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}
    says = "request.kind.version + ' ' + request.resource.version + ' asked as ' + request.requestKind.version + ' ' + request.requestResource.version + ' ' + object.apiVersion + (has(object.spec.targetCPUUtilizationPercentage) ? ' percentage' : '') + (has(object.spec.metrics) ? ' metrics' : '')"
    scalers = f"namespaces/{client.ns}/horizontalpodautoscalers"
    for versions in ("v1", "v2"):
        for match in ("Equivalent", "Exact"):
            with policed(
                client,
                denying(
                    says,
                    matchConstraints={
                        "matchPolicy": match,
                        "resourceRules": [on("horizontalpodautoscalers", "CREATE", "autoscaling", versions)],
                    },
                ),
                suffix=f"{match.lower()}-{versions}",
            ):
                client.post(
                    f"/apis/autoscaling/v1/{scalers}",
                    {
                        "apiVersion": "autoscaling/v1",
                        "kind": "HorizontalPodAutoscaler",
                        "metadata": {"name": "h"},
                        "spec": {**target, "targetCPUUtilizationPercentage": 50},
                    },
                    DRY,
                )
                client.post(
                    f"/apis/autoscaling/v2/{scalers}",
                    {
                        "apiVersion": "autoscaling/v2",
                        "kind": "HorizontalPodAutoscaler",
                        "metadata": {"name": "h"},
                        "spec": {
                            **target,
                            "metrics": [
                                {
                                    "type": "Resource",
                                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                                }
                            ],
                        },
                    },
                    DRY,
                )
    event = {"metadata": {"name": "e"}, "reason": "R", "action": "A", "type": "Normal"}
    with policed(
        client,
        denying(says.split(" + (", maxsplit=1)[0], matchConstraints={"resourceRules": [on("events", "CREATE", "events.k8s.io")]}),
        suffix="events",
    ):
        client.post(
            f"/api/v1/namespaces/{client.ns}/events",
            {
                **event,
                "involvedObject": {"namespace": client.ns, "kind": "Pod", "name": "p"},
                "reportingComponent": "example.com/c",
                "reportingInstance": "i",
            },
            DRY,
        )
        client.post(
            f"/apis/events.k8s.io/v1/namespaces/{client.ns}/events",
            {
                **event,
                "regarding": {"namespace": client.ns},
                "eventTime": "2026-01-01T00:00:00.000000Z",
                "reportingController": "example.com/c",
                "reportingInstance": "i",
                "note": "n",
            },
            DRY,
        )


@scenario
def bindings_narrow(client: Client) -> None:
    """A binding's matchResources narrow the policy's; several bindings are all asked; without a binding, or without its policy, nothing happens."""
    path = maps(client)
    client.post(path, config_map("kept", {"by": "update"}), silent=True)
    spec = denying("'denied ' + request.name")
    bindings = (
        {"matchResources": {**only(by="create"), "resourceRules": [on("configmaps", "CREATE")]}},
        {"matchResources": {**only(by="update"), "excludeResourceRules": [on("configmaps", "CREATE")]}},
        {"matchResources": {**only(by="name"), "resourceRules": [on("configmaps", "*", resourceNames=["this"])]}},
        {"matchResources": {**only(by="secret"), "resourceRules": [on("secrets", "*")]}},
        {"matchResources": {**only(by="nowhere"), "namespaceSelector": {"matchLabels": {"no": "such"}}}},
        {"matchResources": {**only(by="warned")}, **WARN},
    )
    with policed(client, spec, *bindings):
        for by in ("create", "update", "name", "secret", "nowhere", "warned", "nothing"):
            client.post(path, config_map("this", {"by": by}), DRY)
            client.post(path, config_map("that", {"by": by}), DRY)
        client.patch(f"{path}/kept", {"data": {"z": "1"}}, MERGE, DRY)
        client.delete(f"{path}/kept", None, DRY)
    client.post(collection("Validating"), policy(client, "Validating", client.name("alone"), spec), silent=True)
    client.post(
        collection("Validating", True),
        policy_binding(client, "Validating", client.name("early"), {"policyName": client.name("late")}),
        silent=True,
    )
    settled(client)
    client.post(path, config_map("this"), DRY)
    client.post(collection("Validating"), policy(client, "Validating", client.name("late"), spec), silent=True)
    settled(client)
    client.post(path, config_map("this"), DRY)
    client.delete(f"{collection('Validating', True)}/{client.name('early')}", silent=True)
    settled(client)
    client.post(path, config_map("this"), DRY)
    for name in ("alone", "late"):
        client.delete(f"{collection('Validating')}/{client.name(name)}", silent=True)


@scenario
def conditions_come_first(client: Client) -> None:
    """matchConditions: all must hold; one that is false decides even beside one that errs; an error alone is the failure policy's; they have no variables."""
    conditions = [
        {"name": "labelled", "expression": "has(object.metadata.labels)"},
        {"name": "says-so", "expression": "object.metadata.labels['go'] == 'yes'"},
        {"name": "not-alice", "expression": "request.userInfo.username != 'alice'"},
    ]
    for failure in ("Fail", "Ignore"):
        with policed(client, {**denying(), "matchConditions": conditions, "failurePolicy": failure}, suffix=failure.lower()):
            for labels in (None, {"go": "yes"}, {"go": "no"}, {"stop": "yes"}):
                client.post(maps(client), config_map("one", labels), DRY)
    for expressions in (
        ["variables.x"],
        ["object.data"],
        ["'text'"],
        ["true", "true"],
        ["params.x == 1"],
        ["authorizer.path('/x').check('get').allowed()"],
        ["namespaceObject.metadata.name == 'x'"],
    ):
        client.post(
            collection("Validating"),
            policy(
                client,
                "Validating",
                client.name("bad"),
                {
                    **denying(),
                    "variables": [{"name": "x", "expression": "true"}],
                    "matchConditions": [{"name": f"c{i}", "expression": e} for i, e in enumerate(expressions)],
                },
            ),
            DRY,
        )
    with policed(
        client,
        {
            **denying(),
            "matchConditions": [
                {
                    "name": "rights",
                    "expression": "authorizer.group('').resource('secrets').namespace(request.namespace).check('get').allowed()",
                }
            ],
        },
        suffix="rights",
    ):
        client.post(maps(client), config_map(), DRY)
        grant(client, f"poor-{client.id}", rule("create", "configmaps"))
        client.post(maps(client), config_map(), DRY, headers={"Impersonate-User": f"poor-{client.id}"})


# ---------------------------------------------------------------- what expressions say


@scenario
def variables_are_lazy(client: Client) -> None:
    """A variable is computed when it is first needed and once; one that nobody needs may err; one that errs fails each expression that needs it."""
    variables = [
        {"name": "size", "expression": "object.data.size()"},
        {"name": "double", "expression": "variables.size * 2"},
        {"name": "broken", "expression": "int(object.data.number)"},
        {"name": "deep", "expression": "variables.broken + variables.double"},
        {"name": "unused", "expression": "object.spec.nothing.at.all"},
        {"name": "names", "expression": "object.data.map(k, k + '=' + object.data[k])"},
    ]
    validations = [
        {"expression": "variables.size < 3", "messageExpression": "'size is ' + string(variables.size)"},
        {
            "expression": "!('number' in object.data) || variables.broken > 5",
            "messageExpression": "'number is ' + string(variables.broken) + ', together ' + string(variables.deep)",
        },
        {"expression": "!('deep' in object.data) || variables.deep == 0", "message": "deep"},
        {
            "expression": "!('list' in object.data)",
            "messageExpression": "variables.names.filter(n, n.startsWith('list')).join(', ')",
        },
        {
            "expression": "!('odd' in object.data)",
            "messageExpression": "string(variables.unused)",
            "message": "the message when its expression errs",
        },
    ]
    for failure in ("Fail", "Ignore"):
        with policed(
            client, {"variables": variables, "validations": validations, "failurePolicy": failure}, suffix=failure.lower()
        ):
            for data in (
                {"a": "1"},
                {"a": "1", "b": "2", "c": "3"},
                {"number": "7"},
                {"number": "3"},
                {"number": "x"},
                {"deep": "1"},
                {"deep": "1", "number": "-4"},
                {"list": "mine"},
                {"odd": "1"},
            ):
                client.post(maps(client), config_map("one", None, **data), DRY)


@scenario
def messages_and_reasons(client: Client) -> None:
    """message, messageExpression and the expression itself as message; what an expression may not give; each reason's code."""
    cases: dict[str, dict[str, Any]] = {
        "none": {},
        "message": {"message": "simply no"},
        "both": {"message": "not shown", "messageExpression": "'shown'"},
        "blank": {"message": "instead of blanks", "messageExpression": "'  '"},
        "newline": {"message": "instead of lines", "messageExpression": "'a\\nb'"},
        "trimmed": {"messageExpression": "'  trimmed  '"},
        "errs": {"message": "instead of an error", "messageExpression": "string(object.data.absent)"},
        "errsalone": {"messageExpression": "string(object.data.absent)"},
        "long": {"message": "instead of a long one", "messageExpression": "string(object.data.text) + string(object.data.text)"},
        "short": {"messageExpression": "string(object.data.text)"},
        "Forbidden": {"reason": "Forbidden", "message": "forbidden it is"},
        "Invalid": {"reason": "Invalid"},
        "RequestEntityTooLarge": {
            "reason": "RequestEntityTooLarge",
            "messageExpression": "'too large by ' + string(object.data.size() - 1)",
        },
        "spaces": {"expression": "  object.data.which   !=   'spaces'  "},
    }
    with policed(
        client, {"validations": [{"expression": f"object.data.which != '{name}'", **case} for name, case in cases.items()]}
    ):
        for name in cases:
            client.post(
                maps(client),
                config_map("one", None, which=name, **({"text": "x" * 3000} if name in ("long", "short") else {})),
                DRY,
            )
    for validation in (
        {"reason": "NotFound"},
        {"reason": "Unauthorized"},
        {"reason": ""},
        {"messageExpression": "object.data.text"},
        {"messageExpression": "1"},
        {"messageExpression": "  "},
        {"message": "a\nb"},
        {"message": "  "},
        {"message": "x" * 5000},
        {"messageExpression": "params.x"},
        {"messageExpression": "authorizer.path('/').check('get').reason()"},
    ):
        client.post(
            collection("Validating"),
            policy(client, "Validating", client.name("bad"), {"validations": [{"expression": "true", **validation}]}),
            DRY,
        )


@scenario
def the_first_failure_is_told(client: Client) -> None:
    """All validations are computed; the first failure makes the answer, every failure a warning; errors count as failures in their place."""
    validations = [
        {"expression": "object.data.a == '1'", "message": "a must be 1", "reason": "Forbidden"},
        {"expression": "int(object.data.b) == 2", "message": "b must be 2"},
        {"expression": "object.data.c == '3'", "messageExpression": "'c is ' + object.data.c", "reason": "RequestEntityTooLarge"},
    ]
    for failure in ("Fail", "Ignore"):
        with policed(
            client,
            {"validations": validations, "failurePolicy": failure},
            {"validationActions": ["Warn", "Audit"], "matchResources": only(act="warn")},
            {"validationActions": ["Deny", "Audit"], "matchResources": only(act="deny")},
            suffix=failure.lower(),
        ):
            for act in ("warn", "deny"):
                for data in (
                    {"a": "1", "b": "2", "c": "3"},
                    {"a": "0", "b": "0", "c": "0"},
                    {"a": "1", "b": "x", "c": "0"},
                    {"b": "2"},
                    {"a": "1", "b": "2", "c": "0"},
                ):
                    client.post(maps(client), config_map("one", {"act": act}, **data), DRY)


@scenario
def errors_in_their_words(client: Client) -> None:
    """What a failing expression says: missing keys, null, division, indexes, conversions, overflow, bad patterns and types found late."""
    cases = {
        "key": "object.data.absent == 'x'",
        "field": "object.spec.x == 1",
        "null": "oldObject.data.size() > 0",
        "zero": "10 / (object.data.size() - 1) > 0",
        "modulo": "10 % (object.data.size() - 1) > 0",
        "index": "[1, 2][object.data.size() + 4] == 1",
        "convert": "int(object.data.which) == 1",
        "overflow": "9223372036854775807 + object.data.size() > 0",
        "pattern": "object.data.which.matches('[' + object.data.which)",
        "late": "dyn(object.data.which) > 5",
        "duration": "duration(object.data.which) == duration('1s')",
        "time": "timestamp(object.data.which) == timestamp('2026-01-01T00:00:00Z')",
        "quantity": "quantity(object.data.which).isLessThan(quantity('1'))",
        "url": "url(object.data.which).getHost() == ''",
        "map": "{'a': 1}[object.data.which] == 1",
        "ip": "ip(object.data.which).family() == 4",
        "list": "object.data.map(k, int(k)).sum() > 0",
        "optional": "object.?spec.x.value() == 1",
        "all": "['1', string(object.data.which)].all(x, int(x) > 0)",
        "exists": "[string(object.data.which), '1'].exists(x, int(x) > 0)",
    }
    validations = [
        {"expression": f"object.data.which != '{name}' || {expression}", "message": "not the error"}
        for name, expression in cases.items()
    ]
    for failure in ("Fail", "Ignore"):
        with policed(client, {"validations": validations, "failurePolicy": failure}, suffix=failure.lower()):
            for name in cases if failure == "Fail" else ("key", "exists"):
                client.post(maps(client), config_map("one", None, which=name), DRY)
    for expression in ("dyn(1)", "object.data.which", "object", "1"):
        client.post(
            collection("Validating"),
            policy(client, "Validating", client.name("bad"), {"validations": [{"expression": expression}]}),
            DRY,
        )


@scenario
def actions_deny_warn_audit(client: Client) -> None:
    """Deny, Warn and Audit alone and together, on every verb, real and dry; a warning is given even when another binding denies."""
    path = maps(client)
    actions = {
        "deny": ["Deny"],
        "warn": ["Warn"],
        "audit": ["Audit"],
        "warnaudit": ["Warn", "Audit"],
        "denyaudit": ["Deny", "Audit"],
    }
    spec = {
        "validations": [
            {
                "expression": "oldObject == null && object.data.a != '1' || oldObject != null && object != null && object.data.size() > 1",
                "messageExpression": "'no ' + request.operation",
            }
        ],
        "auditAnnotations": [
            {"key": "who", "valueExpression": "request.userInfo.username"},
            {"key": "nothing", "valueExpression": "null"},
        ],
    }
    with policed(client, spec, *({"validationActions": a, "matchResources": only(act=n)} for n, a in actions.items())):
        for name in actions:
            client.post(path, config_map(name, {"act": name}))
            client.post(path, config_map(name, {"act": name}, a="2"), silent=True)
            client.put(f"{path}/{name}", config_map(name, {"act": name}), DRY)
            client.patch(f"{path}/{name}", {"data": {"b": "1"}}, MERGE)
            client.delete(f"{path}/{name}")
    with policed(
        client,
        {"validations": [{"expression": "false"}]},
        {"validationActions": ["Warn"]},
        {"validationActions": ["Deny"], "matchResources": only(x="y")},
        suffix="two",
    ):
        client.post(path, config_map("both", {"x": "y"}))
        client.post(path, config_map("one"))


@scenario
def annotations_for_the_audit_can_fail(client: Client) -> None:
    """An audit annotation that errs denies under Fail even when the binding only warns, and is left out under Ignore."""
    for failure in ("Fail", "Ignore"):
        spec = {
            "failurePolicy": failure,
            "auditAnnotations": [
                {"key": "number", "valueExpression": "string(int(object.data.a))"},
                {"key": "maybe", "valueExpression": "'b' in object.data ? string(object.data.b) : ''"},
                {"key": "never", "valueExpression": "null"},
            ],
        }
        with policed(client, spec, {"validationActions": ["Warn"]}, suffix=failure.lower()):
            for data in ({"a": "1"}, {"a": "x"}, {"b": "1"}, {"a": "2", "b": ""}):
                client.post(maps(client), config_map("one", None, **data), DRY)


# ---------------------------------------------------------------- parameters


def limits(client: Client, name: str, most: str, labels: dict[str, str] | None = None) -> None:
    client.post(maps(client), config_map(name, {"limits": "yes", **(labels or {})}, max=most), silent=True)


LIMIT = {
    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "matchConstraints": {"objectSelector": {"matchExpressions": [{"key": "limits", "operator": "DoesNotExist"}]}},
    "validations": [
        {
            "expression": "object.data.size() <= int(params.data.max)",
            "messageExpression": "'at most ' + params.data.max + ' says ' + params.metadata.name",
        }
    ],
}


def sized(size: int, **labels: str) -> dict[str, Any]:
    return config_map("sized", labels or None, **{f"k{i}": "v" for i in range(size)})


@scenario
def parameters_by_name(client: Client) -> None:
    """paramRef.name, with a namespace and in the namespace of the request; missing ones with Deny and Allow; changed and deleted ones; no paramRef leaves params null."""
    anchored(client)
    limits(client, "two", "2")
    refs: dict[str, Any] = {
        "named": {"name": "two", "namespace": client.ns, "parameterNotFoundAction": "Deny"},
        "near": {"name": "two", "parameterNotFoundAction": "Deny"},
        "far": {"name": "two", "namespace": "default", "parameterNotFoundAction": "Deny"},
        "allowed": {"name": "three", "parameterNotFoundAction": "Allow"},
    }

    def post(by: str, size: int, silent: bool = False) -> Reply:
        return client.post(maps(client), sized(size, by=by), DRY, silent=silent)

    with policed(
        client,
        LIMIT,
        *({"paramRef": ref, "matchResources": only(by=by)} for by, ref in refs.items()),
        {"matchResources": only(by="none")},
    ):
        until(
            lambda: (
                "at most" in str(post("named", 3, True).get("message")) and "at most" in str(post("near", 3, True).get("message"))
            )
        )
        for by in (*refs, "none", "other"):
            post(by, 1)
            post(by, 3)
        limits(client, "three", "1")
        until(lambda: post("allowed", 3, True).status != 201)
        post("allowed", 1)
        post("allowed", 3)
        client.patch(f"{maps(client)}/two", {"data": {"max": "5"}}, MERGE, silent=True)
        until(lambda: post("named", 3, True).status == 201)
        post("named", 3)
        post("named", 6)
        client.patch(f"{maps(client)}/two", {"data": {"max": "many"}}, MERGE, silent=True)
        until(
            lambda: (
                "many" not in str(post("named", 6, True).get("message"))
                and "at most 5" not in str(post("named", 6, True).get("message"))
            )
        )
        post("named", 3)
        client.delete(f"{maps(client)}/two", silent=True)
        until(lambda: "no params" in str(post("named", 3, True).get("message")))
        post("named", 3)
        post("near", 3)
        client.delete(f"{maps(client)}/three", silent=True)
        until(lambda: post("allowed", 3, True).status == 201)
        post("allowed", 3)


@scenario
def parameters_by_selector(client: Client) -> None:
    """A selector takes every parameter that it matches, and each is asked; the empty selector takes all of the namespace; no match is a missing parameter."""
    anchored(client)
    for name, most, tier in (("big", "9", "gold"), ("small", "2", "tin"), ("tiny", "1", "clay")):
        limits(client, name, most, {"tier": tier})
    refs: dict[str, Any] = {
        "gold": {"matchLabels": {"tier": "gold"}},
        "either": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold", "tin"]}]},
        "absent": {"matchLabels": {"tier": "none"}},
        "every": {"matchLabels": {"limits": "yes"}},
    }
    with policed(
        client,
        LIMIT,
        *(
            {
                "paramRef": {
                    "selector": s,
                    "namespace": client.ns,
                    "parameterNotFoundAction": "Deny" if by == "absent" else "Allow",
                },
                "matchResources": only(by=by),
            }
            for by, s in refs.items()
        ),
        {
            "paramRef": {"selector": {"matchLabels": {"tier": "none"}}, "parameterNotFoundAction": "Allow"},
            "matchResources": only(by="allowed"),
        },
    ):
        until(lambda: all(client.post(maps(client), sized(10, by=by), DRY, silent=True).status != 201 for by in refs))
        for by in (*refs, "allowed"):
            for size in (1, 2) if by == "every" else (1, 3):
                client.post(maps(client), sized(size, by=by), DRY)
        client.patch(f"{maps(client)}/small", {"metadata": {"labels": {"tier": "gold"}}}, MERGE, silent=True)
        until(lambda: client.post(maps(client), sized(3, by="gold"), DRY, silent=True).status != 201)
        client.post(maps(client), sized(3, by="gold"), DRY)


@scenario
def parameters_of_ones_own_kind(client: Client) -> None:
    """A custom resource as parameter: typed values; cluster-wide parameters may not have a namespace in the reference; an unknown kind is a configuration error."""
    schema = obj(
        {
            "spec": obj(
                {
                    "max": {"type": "integer"},
                    "names": {"type": "array", "items": {"type": "string"}},
                    "mode": {"type": "string", "default": "strict"},
                }
            )
        }
    )
    near, wide = (
        definition(client, schema, plural="limits", kind="Limit"),
        definition(client, schema, plural="widelimits", kind="WideLimit", scope="Cluster"),
    )
    validations = [
        {
            "expression": "object.data.size() <= params.spec.max",
            "messageExpression": "'at most ' + string(params.spec.max) + ' ' + params.spec.mode + ' by ' + params.kind + ' ' + params.apiVersion.split('/')[1]",
        },
        {
            "expression": "!has(params.spec.names) || object.metadata.name in params.spec.names",
            "messageExpression": "'one of ' + params.spec.names.join(', ')",
        },
    ]
    group = near["spec"]["group"]
    with served(client, near) as path, served(client, wide) as wide_path:
        client.post(path, make(near, spec={"max": 2}), silent=True)
        client.post(wide_path, make(wide, "all", spec={"max": 1, "names": ["sized", "other"], "mode": "lax"}), silent=True)
        for kind, ref in (
            ("Limit", {"name": "one", "namespace": client.ns}),
            ("WideLimit", {"name": "all"}),
            ("WideLimit", {"name": "all", "namespace": client.ns}),
            ("WideLimit", {"selector": {}}),
            ("Limit", {"selector": {"matchLabels": {"no": "such"}}}),
            ("Absent", {"name": "one"}),
        ):
            with policed(
                client,
                {"paramKind": {"apiVersion": f"{group}/v1", "kind": kind}, "validations": validations},
                {"paramRef": {**ref, "parameterNotFoundAction": "Deny"}},
                suffix="own",
            ):
                if kind != "Absent":  # the server looks for new kinds every half minute
                    until(
                        lambda: (
                            "failed to find resource"
                            not in str(client.post(maps(client), sized(5), DRY, silent=True).get("message"))
                        ),
                        45,
                    )
                until(lambda: "not yet synced" not in str(client.post(maps(client), sized(5), DRY, silent=True).get("message")))
                for size in (1, 3):
                    client.post(maps(client), sized(size), DRY)
                client.post(maps(client), config_map("stranger"), DRY)
        for failure in ("Fail", "Ignore"):
            with policed(
                client,
                {
                    "paramKind": {"apiVersion": f"{group}/v9", "kind": "Limit"},
                    "validations": validations,
                    "failurePolicy": failure,
                },
                {"paramRef": {"name": "one", "parameterNotFoundAction": "Allow"}},
                suffix=f"v9{failure.lower()}",
            ):
                client.post(maps(client), sized(1), DRY)


@scenario
def parameters_of_cluster_wide_objects(client: Client) -> None:
    """A namespaced parameter without a namespace cannot serve a request that has none; with one it can."""
    anchored(client)
    limits(client, "two", "2")
    for i, (ref, failure) in enumerate(
        (
            ({"name": "two"}, "Fail"),
            ({"name": "two", "namespace": client.ns}, "Fail"),
            ({"name": "two"}, "Ignore"),
            ({"selector": {}}, "Fail"),
        )
    ):
        spec = {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "failurePolicy": failure,
            "validations": [{"expression": "false", "messageExpression": "'found ' + params.data.max"}],
            "matchConstraints": {**only(owner=client.id), "namespaceSelector": {}, "resourceRules": [on("nodes", "CREATE")]},
        }
        with policed(client, spec, {"paramRef": {**ref, "parameterNotFoundAction": "Deny"}}, suffix=f"p{i}"):
            if "namespace" in ref:
                until(
                    lambda: (
                        "found"
                        in str(
                            client.post(
                                "/api/v1/nodes",
                                {"metadata": {"name": client.name("n"), "labels": {"owner": client.id}}},
                                DRY,
                                silent=True,
                            ).get("message")
                        )
                    )
                )
            client.post("/api/v1/nodes", {"metadata": {"name": client.name("n"), "labels": {"owner": client.id}}}, DRY)


# ---------------------------------------------------------------- what expressions see


@scenario
def the_request_can_be_read(client: Client) -> None:
    """request in CEL: operation, kinds and resources, name, namespace, user with groups and extra, dry run, options."""
    parts = [
        "request.operation",
        "request.name",
        "request.namespace",
        "request.dryRun",
        "request.subResource",
        "request.kind.group + '|' + request.kind.version + '|' + request.kind.kind",
        "request.requestResource.resource",
        "request.userInfo.username",
        "request.userInfo.groups.join('+')",
        "has(request.userInfo.extra) ? request.userInfo.extra.map(k, k + ':' + request.userInfo.extra[k].join('+')).join(';') : 'none'",
        "has(request.userInfo.uid) ? request.userInfo.uid : 'none'",
        "has(request.options) && request.options != null ? request.options.kind + (has(request.options.fieldManager) ? ' ' + request.options.fieldManager : '') : 'none'",
        "has(request.requestSubResource) ? request.requestSubResource : 'none'",
    ]
    path = maps(client)
    with policed(client, telling(*parts), WARN):
        client.post(path, config_map(), {"fieldManager": "me"})
        client.post(path, {"metadata": {"generateName": "generated-"}}, DRY)
        client.put(f"{path}/one", config_map(a="2"), {"fieldValidation": "Strict"})
        client.patch(f"{path}/one", {"data": {"b": "1"}}, MERGE, {"fieldManager": "m"})
        client.patch(
            f"{path}/one",
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"c": "1"}},
            APPLY,
            {"fieldManager": "applier", "force": "true"},
        )
        client.patch(f"{path}/fresh", config_map("fresh"), APPLY, {"fieldManager": "applier"})
        client.post(
            path,
            config_map("two"),
            headers={
                "Impersonate-User": "bob",
                "Impersonate-Group": "system:masters",
                "Impersonate-Uid": "u-1",
                "Impersonate-Extra-Scopes": "view",
            },
        )
        client.delete(f"{path}/one", {"propagationPolicy": "Background", "gracePeriodSeconds": 0})
        client.delete(path, None, {"labelSelector": "no=such"})
        client.delete(path)


@scenario
def old_new_and_namespace(client: Client) -> None:
    """object is null in deletions, oldObject in creations; namespaceObject shows the namespace's labels and annotations; changes can be compared."""
    path = maps(client)
    client.patch(
        f"/api/v1/namespaces/{client.ns}",
        {"metadata": {"labels": {"tier": "gold"}, "annotations": {"note": "here"}}},
        MERGE,
        silent=True,
    )
    parts = [
        "object == null ? 'null' : object.kind + ' ' + object.metadata.name",
        "oldObject == null ? 'null' : oldObject.data.a",
        "object != null && oldObject != null ? object.data.filter(k, !(k in oldObject.data) || object.data[k] != oldObject.data[k]).map(k, string(k)).sort().join('+') : '-'",
        "namespaceObject.metadata.name",
        "namespaceObject.metadata.labels['tier']",
        "namespaceObject.metadata.annotations['note']",
        "object != null ? string(has(object.metadata.uid)) + string(has(object.metadata.creationTimestamp)) + string(has(object.metadata.managedFields)) + string(has(object.metadata.resourceVersion)) + string(has(object.metadata.generation)) : '-'",
        "string(has(namespaceObject.status)) + string(has(namespaceObject.spec))",
    ]
    with policed(client, telling(*parts), WARN):
        until(lambda: "gold" in client.post(path, config_map(), DRY, silent=True).headers.get("warning", ""))
        client.post(path, config_map())
        client.put(f"{path}/one", config_map(a="2", b="3"))
        client.patch(f"{path}/one", {"metadata": {"finalizers": ["example.com/hold"]}}, MERGE)
        client.delete(f"{path}/one")
        client.patch(f"{path}/one", {"metadata": {"finalizers": None}}, MERGE)
        client.patch(f"{path}/none", {"data": {}}, MERGE)
        client.put(f"{path}/one", config_map(a="7"))
    with policed(
        client,
        denying(
            "string(namespaceObject == null)",
            matchConstraints={
                **only(owner=client.id),
                "namespaceSelector": {},
                "resourceRules": [on("nodes namespaces", "CREATE")],
            },
        ),
        suffix="wide",
    ):
        client.post("/api/v1/nodes", {"metadata": {"name": client.name("n"), "labels": {"owner": client.id}}}, DRY)
        client.post("/api/v1/namespaces", {"metadata": {"name": client.name("n"), "labels": {"owner": client.id}}}, DRY)


@scenario
def the_authorizer_can_be_asked(client: Client) -> None:
    """authorizer: resources with group, namespace, name and subresource, paths, service accounts, selectors; reason, error; requestResource."""
    parts = [
        "authorizer.group('').resource('secrets').namespace(request.namespace).check('get').allowed()",
        "authorizer.group('').resource('configmaps').namespace(request.namespace).name('one').check('update').allowed()",
        "authorizer.group('').resource('configmaps').namespace(request.namespace).name('two').check('update').allowed()",
        "authorizer.group('apps').resource('deployments').subresource('scale').namespace(request.namespace).check('patch').allowed()",
        "authorizer.path('/healthz').check('get').allowed()",
        "authorizer.path('/metrics').check('get').allowed()",
        "authorizer.serviceAccount(request.namespace, 'nobody').group('').resource('pods').namespace(request.namespace).check('get').allowed()",
        "authorizer.serviceAccount(request.namespace, 'robot').group('').resource('configmaps').namespace(request.namespace).check('create').allowed()",
        "authorizer.requestResource.check('create').allowed()",
        "authorizer.requestResource.check('delete').allowed()",
        "authorizer.group('').resource('pods').check('list').reason() == ''",
        "authorizer.group('').resource('pods').check('list').errored()",
        "authorizer.group('').resource('pods').check('list').error() == ''",
        "authorizer.group('').resource('configmaps').namespace(request.namespace).fieldSelector('metadata.name=one').check('update').allowed()",
        "authorizer.group('').resource('configmaps').labelSelector('a in (b').check('list').errored()",
        "authorizer.requestResource.check('create').reason().startsWith('RBAC: allowed by RoleBinding \"')",
    ]
    rich = [rule("create", "configmaps"), rule("update", "configmaps", names="one"), rule("patch", "deployments/scale", "apps")]
    grant(client, f"some-{client.id}", *rich)
    bot = robot(client)
    grant(client, f"system:serviceaccount:{client.ns}:robot", *rich, name="robot")
    with policed(client, {"validations": [{"expression": part, "message": f"{i} no"} for i, part in enumerate(parts)]}, WARN):
        client.post(maps(client), config_map(), DRY)
        client.post(maps(client), config_map(), DRY, headers={"Impersonate-User": f"some-{client.id}"})
        bot.post(maps(client), config_map(), DRY)
    for expression in (
        "authorizer.resource('x')",
        "authorizer.group('').check('get')",
        "authorizer.group('').resource('x').check('get')",
        "authorizer.serviceAccount('A B', 'x').path('/').check('get').allowed()",
        "authorizer.path('/x').namespace('y').check('get').allowed()",
    ):
        client.post(
            collection("Validating"),
            policy(client, "Validating", client.name("bad"), {"validations": [{"expression": expression}]}),
            DRY,
        )
    with policed(
        client,
        {"validations": [{"expression": "authorizer.serviceAccount('A B', 'x').path('/').check('get').allowed()"}]},
        suffix="badname",
    ):
        client.post(maps(client), config_map(), DRY)


@scenario
def libraries_are_there(client: Client) -> None:
    """Lists, sets, strings, formats, quantities, addresses, URLs, semantic versions, optionals and two-variable comprehensions in policies."""
    parts = [
        "quantity('1.5Gi').add(quantity('512Mi')).compareTo(quantity('2Gi'))",
        "ip('192.168.0.1').family()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        "url('https://example.com:8080/p?q=1').getPort()",
        "'a1b22'.findAll('[0-9]+').join('|')",
        "[3, 1, 2].sort() == [1, 2, 3]",
        "[1, 2, 2].max() + [1, 2].sum()",
        "sets.intersects([1, 2], [2, 3])",
        "format.dns1123Label().validate('Bad_Name').hasValue()",
        "format.named('uuid').hasValue()",
        "semver('1.2.3').isLessThan(semver('1.10.0'))",
        "isSemver('v1')",
        "'%s-%d'.format(['x', 5])",
        "'Hello'.lowerAscii().replace('l', 'L').substring(1)",
        "object.?data['nope'].orValue('default')",
        "optional.none().hasValue()",
        "'a,b'.split(',').size()",
        "[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6]",
        "object.data.all(k, k.size() > 0)",
        "timestamp('2026-01-02T03:04:05Z').getDayOfWeek()",
        "duration('90m').getHours()",
        "math.greatest(1, 5, 3)",
        "['a', 'b'].transformList(i, v, string(i) + v).join()",
        "{'a': 1, 'b': 2}.transformMap(k, v, v + 1)['b']",
        "base64.encode(b'hi')",
        "'x'.charAt(0) + ' y '.trim() + 'abc'.reverse()",
        "lists.range(3).size()",
        "type(1) == int",
        "string(1.5) + string(2u) + string(true)",
        "[[1], [2, 3]].flatten().size()",
    ]
    good = []
    for part in parts:
        reply = client.post(
            collection("Validating"),
            policy(client, "Validating", client.name("one"), {"validations": [{"expression": f"string({part}) == ''"}]}),
            DRY,
            silent=True,
        )
        note(client, part, [reply.status, reply.get("message")])
        good += [part] if reply.status == 201 else []
    with policed(client, telling(*good), WARN):
        client.post(maps(client), config_map(), DRY)


@scenario
def costs_are_bounded(client: Client) -> None:
    """Too costly an expression fails as the failure policy says: one alone, all of a policy together, its match conditions, its variables, its messages."""
    costly = "string(object.data.text).matches(string(object.data.pattern))"  # 200,000 of the 1,000,000 that one expression may cost, and of the 10,000,000 of a policy
    four = " || ".join([costly] * 4)
    cases: dict[str, dict[str, Any]] = {
        "fine": {"validations": [{"expression": four, "message": "affordable"}]},
        "one": {"validations": [{"expression": " || ".join([costly] * 6), "message": "no"}]},
        "sum": {"validations": [{"expression": f"{four} || {i} >= 0"} for i in range(14)]},
        "condition": {
            "matchConditions": [
                {"name": "heavy", "expression": " || ".join(["!" + costly] + [costly] * 6)},
                {"name": "more", "expression": " || ".join([costly] * 6)},
            ],
            "validations": [{"expression": "false", "message": "reached"}],
        },
        "variable": {
            "variables": [{"name": "v", "expression": " || ".join([costly] * 6)}],
            "validations": [{"expression": "!variables.v"}],
        },
        "shared": {
            "variables": [{"name": "v", "expression": four}],
            "validations": [{"expression": f"!variables.v && {i} >= 0"} for i in range(14)],
        },
        "message": {
            "validations": [
                {"expression": "false", "messageExpression": f"{' && '.join([costly] * 6)} ? 'yes' : 'no'", "message": "plain"}
            ]
        },
        "messages": {
            "validations": [
                {"expression": f"!({four}) && {i} > 20", "messageExpression": f"{four} ? 'yes {i}' : 'no {i}'"} for i in range(11)
            ]
        },
    }
    for failure in ("Fail", "Ignore"):
        with policed_each(
            client, {f"{name}-{failure.lower()}": {**spec, "failurePolicy": failure} for name, spec in cases.items()}
        ):
            for name in cases:
                reply = client.post(
                    maps(client),
                    config_map(f"{name}-{failure.lower()}", None, text="x" * 20000, pattern="y" * 400),
                    DRY,
                    silent=True,
                )
                note(client, f"{name} {failure}", [reply.status, reply.get("reason"), reply.get("message")])


# ---------------------------------------------------------------- the policies themselves


@scenario
def controlled_types_are_checked(client: Client) -> None:
    """status.typeChecking warns of fields that the matched kinds do not have, in expressions and messages, for each kind; a controller writes it: a bare API server leaves the status empty."""

    def known(path: str) -> bool:
        reply = client.get(path, silent=True)
        return reply.get("status", "observedGeneration") == reply.get("metadata", "generation")

    def check(suffix: str, spec: dict[str, Any], wait: float = 10) -> None:
        with policed(client, spec, {"policyName": client.name("nobody")}, suffix=suffix, wait=False) as path:
            until(lambda: known(path), wait)
            client.get(path)
            client.patch(
                path,
                {
                    "spec": {
                        "validations": [
                            {
                                "expression": "object.metadata.nme == 'x'",
                                "messageExpression": "string(object.metadata.name) + string(oldObject.kid)",
                            }
                        ]
                    }
                },
                MERGE,
                silent=True,
            )
            until(lambda: known(path), wait)
            note(client, "after a change", client.get(path, silent=True).get("status"))

    apps = {"matchConstraints": {"resourceRules": [on("deployments replicasets", "CREATE", "apps")]}}
    check(
        "field",
        {
            **apps,
            "validations": [
                {"expression": "object.spec.replcas < 5"},
                {
                    "expression": "object.spec.strategy.type == 'Recreate'",
                    "messageExpression": "'has ' + string(object.spec.template.spec.nodNam)",
                },
            ],
        },
        10 if "controllers" in client.features else 0.5,
    )
    if "controllers" not in client.features:
        return
    check("good", {**apps, "validations": [{"expression": "object.spec.replicas < 5"}]})
    check(
        "maps",
        {
            "validations": [
                {"expression": "object.data.a == '1' && object.binaryDate.size() == 0"},
                {"expression": "object.data['x'].size() > 0"},
            ]
        },
    )
    check(
        "any",
        {
            "matchConstraints": {"resourceRules": [on("*", "CREATE", "apps")]},
            "validations": [{"expression": "object.spec.replcas < 5"}],
        },
    )
    check(
        "unknown",
        {
            "matchConstraints": {"resourceRules": [on("things", "CREATE", "nosuch.example.com")]},
            "validations": [{"expression": "object.spec.replcas < 5"}],
        },
    )
    check(
        "subresource",
        {
            "matchConstraints": {"resourceRules": [on("deployments/scale", "UPDATE", "apps")]},
            "validations": [{"expression": "object.spec.replcas < 5"}],
        },
    )
    check(
        "params",
        {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "validations": [{"expression": "params.dta.size() < 5 && object.data.size() < 5"}],
        },
    )
    check(
        "variables",
        {
            "variables": [{"name": "v", "expression": "object.data.size()"}, {"name": "w", "expression": "object.dta.size()"}],
            "validations": [{"expression": "variables.v < 5"}, {"expression": "variables.w < 5"}],
        },
    )
    body = definition(client, obj({"spec": obj({"size": {"type": "integer"}})}))
    with served(client, body):
        until(
            lambda: (
                f"apis/{body['spec']['group']}/v1" in (client.get("/openapi/v3", silent=True).get("paths", default=None) or {})
            ),
            10,
        )
        check(
            "custom",
            {
                "matchConstraints": {"resourceRules": [on("widgets", "CREATE", body["spec"]["group"])]},
                "validations": [{"expression": "object.spec.size < 5"}, {"expression": "object.spec.sze < 5"}],
            },
        )


@scenario
def policies_as_objects(client: Client) -> None:
    """Generation, the status subresource, tables, apply, updates that break a policy, what may not be changed, selectors."""
    path = collection("Validating")
    name = client.name("object")
    client.post(path, policy(client, "Validating", name, denying()))
    client.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE, silent=True)
    note(client, "generation after a label", client.get(f"{path}/{name}", silent=True).get("metadata", "generation"))
    client.patch(f"{path}/{name}", {"spec": {"failurePolicy": "Ignore"}}, MERGE, silent=True)
    note(client, "generation after the spec", client.get(f"{path}/{name}", silent=True).get("metadata", "generation"))
    client.patch(f"{path}/{name}", {"spec": {"validations": [{"expression": "object."}]}}, MERGE)
    client.patch(f"{path}/{name}", {"status": {"conditions": [{"type": "Seen"}]}}, MERGE)
    client.patch(
        f"{path}/{name}/status",
        {
            "spec": {"failurePolicy": "Fail"},
            "status": {
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "R",
                        "message": "m",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ]
            },
        },
        MERGE,
    )
    client.patch(
        f"{path}/{name}/status",
        {
            "status": {
                "conditions": [{"type": "a b", "status": "Perhaps"}],
                "typeChecking": {"expressionWarnings": [{"fieldRef": "", "warning": ""}]},
            }
        },
        MERGE,
    )
    client.patch(f"{path}/{name}/status", {"status": None}, MERGE)
    client.get(path, {"fieldSelector": f"metadata.name={name}"}, headers={"Accept": TABLE})
    client.get(collection("Mutating"), {"fieldSelector": f"metadata.name={name}"}, headers={"Accept": TABLE})
    for bindings in (False, True):
        for kind in ("Validating", "Mutating"):
            client.get(collection(kind, bindings), {"labelSelector": "no=such"})
    client.patch(
        f"{path}/{client.name('applied')}",
        policy(client, "Validating", client.name("applied"), denying()),
        APPLY,
        {"fieldManager": "m"},
    )
    client.patch(
        f"{path}/{client.name('applied')}",
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "spec": {"validations": [{"expression": "true"}]},
        },
        APPLY,
        {"fieldManager": "other"},
    )
    client.post(collection("Validating", True), policy_binding(client, "Validating", client.name("b"), {"policyName": name}))
    client.patch(f"{collection('Validating', True)}/{client.name('b')}", {"spec": {"policyName": "other"}}, MERGE)
    client.patch(f"{collection('Validating', True)}/{client.name('b')}", {"spec": {"validationActions": ["Warn", "Deny"]}}, MERGE)
    client.get(collection("Validating", True), {"fieldSelector": f"metadata.name={client.name('b')}"}, headers={"Accept": TABLE})
    client.delete(f"{collection('Validating', True)}/{client.name('b')}", silent=True)
    client.delete(f"{path}/{client.name('applied')}")
    client.delete(f"{path}/{name}")


@scenario
def constraints_are_checked(client: Client) -> None:
    """What matchConstraints and matchResources must be: rules, wildcards, selectors, names, match policy."""

    def post(constraints: Any, **spec: Any) -> None:
        client.post(
            collection("Validating"),
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": client.name("c")},
                "spec": {"validations": [{"expression": "true"}], "matchConstraints": constraints, **spec},
            },
            DRY,
        )

    for constraints in (
        {"resourceRules": []},
        {"resourceRules": [on("configmaps")], "matchPolicy": "Perhaps"},
        {"resourceRules": [on("configmaps", "CREATE *")]},
        {"resourceRules": [on("configmaps", "CONNECT")]},
        {"resourceRules": [on("configmaps", "create")]},
        {"resourceRules": [on("configmaps *")]},
        {"resourceRules": [on("pods pods/*")]},
        {"resourceRules": [on("pods/status pods/*")]},
        {"resourceRules": [on("*/*")]},
        {"resourceRules": [on("*/* pods")]},
        {"resourceRules": [on("pods/")]},
        {"resourceRules": [on("configmaps", scope="Everywhere")]},
        {"resourceRules": [on("configmaps", resourceNames=["a", "a"])]},
        {"resourceRules": [on("configmaps", resourceNames=["*"])]},
        {"resourceRules": [on("configmaps", resourceNames=["a/b", ""])]},
        {"resourceRules": [{}]},
        {"excludeResourceRules": [{"resources": ["pods"]}], "resourceRules": [on("pods")]},
        {"resourceRules": [on("pods")], "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        {"resourceRules": [on("pods")], "objectSelector": {"matchLabels": {"-": "x"}}},
        {"resourceRules": [on("pods", group="*,apps")]},
        {"resourceRules": [on("pods", versions="* v1")]},
    ):
        post(constraints)
    post({"resourceRules": [on("pods")]}, validations=None)
    post({"resourceRules": [on("pods")]}, validations=None, auditAnnotations=[{"key": "a", "valueExpression": "'x'"}])
    post(
        {"resourceRules": [on("pods")]},
        auditAnnotations=[{"key": "a" * 64, "valueExpression": "'x'"}, {"key": "", "valueExpression": ""}],
    )
    post({"resourceRules": [on("pods")]}, validations=[{"expression": f"{i} == {i}"} for i in range(65)])
    post({"resourceRules": [on("pods")]}, matchConditions=[{"name": f"c{i}", "expression": "true"} for i in range(65)])
    post({"resourceRules": [on("pods")]}, paramKind={"apiVersion": "v1", "kind": "bad kind"})
    for spec in (
        {"policyName": "p", "validationActions": ["Warn"], "matchResources": {"resourceRules": [on("configmaps *")]}},
        {"policyName": "p", "validationActions": ["Warn"], "matchResources": {"matchPolicy": "X"}},
        {"policyName": "p", "validationActions": ["Warn"], "paramRef": {"parameterNotFoundAction": "Deny"}},
        {"policyName": "p", "validationActions": ["Warn"], "paramRef": {"name": "A b", "parameterNotFoundAction": "Deny"}},
        {
            "policyName": "p",
            "validationActions": ["Warn"],
            "paramRef": {"selector": {"matchLabels": {"-": ""}}, "parameterNotFoundAction": "Allow"},
        },
        {"policyName": "P p", "validationActions": ["Audit"]},
        {"policyName": "p", "validationActions": []},
    ):
        client.post(
            collection("Validating", True),
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": client.name("c")},
                "spec": spec,
            },
            DRY,
        )


# ---------------------------------------------------------------- where policies are asked


@scenario
def subresources_are_asked(client: Client) -> None:
    """Rules name subresources apart: scale, status, binding, eviction, tokens, ephemeral containers, finalize; the object is the one of the subresource."""
    ns = f"/api/v1/namespaces/{client.ns}"
    client.post(f"/apis/apps/v1/namespaces/{client.ns}/deployments", deployment(), silent=True)
    client.post(
        f"{ns}/pods",
        pod(containers=[{"name": "main", "image": "example.com/main:1", "resources": {"requests": {"cpu": "100m"}}}]),
        silent=True,
    )
    client.post(accounts(client), {"metadata": {"name": "sa"}}, silent=True)
    web = f"/apis/apps/v1/namespaces/{client.ns}/deployments/web"
    says = "request.operation + ' ' + request.kind.kind + '.' + request.kind.group + ' ' + request.resource.resource + (has(request.subResource) ? '/' + request.subResource : '') + ' ' + request.name + (object == null ? '' : ' ' + object.kind)"

    def requests() -> None:
        client.patch(web, {"spec": {"replicas": 2}}, MERGE, DRY)
        client.patch(f"{web}/scale", {"spec": {"replicas": 3}}, MERGE, DRY)
        client.patch(f"{web}/status", {"status": {"observedGeneration": 1}}, MERGE, DRY)
        client.patch(f"{ns}/pods/p/status", {"status": {"message": "m"}}, MERGE, DRY)
        client.post(
            f"{ns}/pods/p/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
            DRY,
        )
        client.post(f"{ns}/pods/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}, DRY)
        client.post(f"{accounts(client)}/sa/token", {"spec": {"audiences": ["x"]}}, DRY, silent=True)
        client.patch(
            f"{ns}/pods/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}, STRATEGIC, DRY
        )
        client.patch(
            f"{ns}/pods/p/resize",
            {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}},
            STRATEGIC,
            DRY,
        )

    for i, resources in enumerate(
        (("deployments pods serviceaccounts", ""), ("*/scale */status", ""), ("pods/* deployments/* serviceaccounts/*", ""))
    ):
        with policed(client, denying(says, matchConstraints={"resourceRules": [on(resources[0], "*", "apps,")]}), suffix=f"s{i}"):
            requests()
    with policed(
        client,
        denying(
            "object.spec.replicas > 1 ? 'at most 1, was ' + string(oldObject.spec.replicas) : 'few'",
            matchConstraints={"resourceRules": [on("deployments/scale", "UPDATE", "apps")]},
        ),
        suffix="scale",
    ):
        client.put(
            f"{web}/scale",
            {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "web", "namespace": client.ns},
                "spec": {"replicas": 4},
            },
            DRY,
        )
    with policed(
        client,
        denying(
            "object.kind + ' ' + (has(object.spec.audiences) ? object.spec.audiences.join(',') : '')",
            matchConstraints={"resourceRules": [on("serviceaccounts/token", "CREATE")]},
        ),
        suffix="token",
    ):
        client.post(f"{accounts(client)}/sa/token", {"spec": {"audiences": ["x", "y"]}})


@scenario
def connections_are_asked(client: Client) -> None:
    """CONNECT: exec, attach, portforward and proxy of pods and services; the object is the options; a denial comes before anything is looked up."""
    ns = f"/api/v1/namespaces/{client.ns}"
    client.post(f"{ns}/pods", pod(nodeName="nowhere"), silent=True)
    with policed(
        client,
        denying(
            "request.operation + ' ' + request.kind.kind + ' ' + request.resource.resource + '/' + request.subResource + ' ' + request.name + ' ' + (has(object.command) ? object.command.join(' ') : '') + (has(object.path) ? object.path : '')",
            matchConstraints={
                "resourceRules": [on("pods/exec pods/attach pods/portforward pods/proxy services/proxy", "CONNECT")]
            },
        ),
    ):
        for method, path, query in (
            ("GET", "pods/p/exec", {"command": ["ls", "-l"], "stdout": "true"}),
            ("POST", "pods/p/exec", {"command": "id"}),
            ("GET", "pods/p/attach", {"stdin": "true"}),
            ("POST", "pods/p/portforward", {"ports": "80"}),
            ("GET", "pods/p/proxy/a/b", None),
            ("POST", "pods/p/proxy", None),
            ("DELETE", "services/s:80/proxy/x", None),
            ("GET", "pods/none/exec", {"command": "x"}),
        ):
            client.request(method, f"{ns}/{path}", None, query)
        client.get(f"{ns}/pods/p/log")
    with policed(
        client,
        denying(
            matchConstraints={
                "resourceRules": [on("nodes/proxy", "CONNECT", resourceNames=[client.name("n")])],
                "namespaceSelector": {},
            }
        ),
        suffix="nodes",
    ):
        client.get(f"/api/v1/nodes/{client.name('n')}/proxy/metrics")


@scenario
def deletions_are_asked(client: Client) -> None:
    """DELETE with the old object, one by one in a collection, with finalizers and preconditions; a denied one stops the rest; namespaces too."""
    path = maps(client)
    for name in ("a", "b", "keep", "z"):
        client.post(path, config_map(name, {"set": "one"} if name != "z" else None), silent=True)
    with policed(
        client,
        {
            "validations": [
                {
                    "expression": "oldObject.metadata.name != 'keep'",
                    "messageExpression": "'keep ' + oldObject.metadata.name + ' of ' + request.namespace",
                    "reason": "Forbidden",
                }
            ],
            "matchConstraints": {"resourceRules": [on("configmaps", "DELETE")]},
        },
    ):
        client.delete(f"{path}/keep")
        client.delete(f"{path}/keep", {"dryRun": ["All"]})
        client.delete(f"{path}/keep", {"preconditions": {"uid": "wrong"}})
        client.delete(f"{path}/none")
        client.delete(f"{path}/a", {"propagationPolicy": "Orphan"})
        reply = client.delete(path, None, {"labelSelector": "set=one"}, silent=True)
        note(client, "collection", [reply.status, reply.get("message"), reply.get("reason"), reply.get("details")])
        note(client, "left", "keep" in [i["metadata"]["name"] for i in client.get(path, silent=True).get("items", default=[])])
        client.delete(path, None, {"fieldSelector": "metadata.name=z"})
        client.patch(f"{path}/keep", {"metadata": {"finalizers": ["example.com/hold"]}}, MERGE, silent=True)
        client.delete(f"{path}/keep")
    settled(client)
    client.delete(f"{path}/keep")
    unfinalize(client, f"{path}/keep")
    other = client.name("other")
    client.post("/api/v1/namespaces", {"metadata": {"name": other, "labels": {"owner": client.id}}}, silent=True)
    with policed(
        client,
        denying(
            "request.operation + ' ' + request.name + ' in ' + request.namespace",
            matchConstraints={**only(owner=client.id), "namespaceSelector": {}, "resourceRules": [on("namespaces", "DELETE")]},
        ),
        suffix="namespaces",
    ):
        client.delete(f"/api/v1/namespaces/{other}")
    settled(client)
    client.delete(f"/api/v1/namespaces/{other}", silent=True)


@scenario
def every_way_to_write(client: Client) -> None:
    """Create, put, the four patches, apply to new and old objects, generated names, real and dry: the policy sees the result of the patch, and nothing is written when it denies."""
    path = maps(client)
    client.post(path, config_map("old"), silent=True)
    with policed(
        client,
        {
            "validations": [
                {
                    "expression": "!object.data.exists(k, object.data[k] == 'bad')",
                    "messageExpression": "'bad value in ' + object.data.filter(k, object.data[k] == 'bad').join(',')",
                }
            ]
        },
    ):
        client.post(path, config_map("new", a="bad"))
        client.post(path, {"metadata": {"generateName": "new-"}, "data": {"a": "bad"}})
        client.put(f"{path}/old", config_map("old", b="bad"))
        client.put(f"{path}/new", config_map("new", b="bad"))
        client.patch(f"{path}/old", {"data": {"c": "bad"}}, MERGE)
        client.patch(f"{path}/old", {"data": {"d": "bad"}}, STRATEGIC, DRY)
        client.patch(f"{path}/old", [{"op": "add", "path": "/data/e", "value": "bad"}], JSON_PATCH)
        client.patch(f"{path}/old", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"f": "bad"}}, APPLY, {"fieldManager": "m"})
        client.patch(f"{path}/fresh", config_map("fresh", g="bad"), APPLY, {"fieldManager": "m"})
        client.get(path)
        client.patch(
            f"{path}/old", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"f": "good"}}, APPLY, {"fieldManager": "m"}
        )
        client.post(path, config_map("Bad Name", a="bad"))
        client.post(path, {**config_map("x", a="bad"), "immutable": "maybe"})
        client.post(path, config_map("old", a="bad"))
        client.patch(f"{path}/old", {"metadata": {"resourceVersion": "1"}, "data": {"a": "bad"}}, MERGE)


@scenario
def custom_resources_are_asked(client: Client) -> None:
    """Policies on custom resources, after pruning and defaulting and before the schema speaks; status and scale apart; other versions converted."""
    schema = obj(
        {"spec": obj({"size": {"type": "integer", "default": 3, "maximum": 50}, "name": {"type": "string"}}), "status": ANY}
    )
    body = definition(
        client,
        schema,
        {"subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}},
    )
    body["spec"]["versions"].append({"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}})
    group = body["spec"]["group"]
    spec = {
        "matchConstraints": {"resourceRules": [on("widgets", "*", group)]},
        "validations": [
            {
                "expression": "object == null || object.spec.size < 10",
                "messageExpression": "object.apiVersion.split('/')[1] + ' size ' + string(object.spec.size) + (has(object.spec.extra) ? ' extra' : '')",
            },
            {"expression": "object == null || !has(object.spec.name) || object.spec.name != 'bad'"},
        ],
    }
    with served(client, body) as path:
        with policed(client, spec):
            for fields in (
                {"spec": {}},
                {"spec": {"size": 12}},
                {"spec": {"size": 12, "extra": 1}},
                {"spec": {"size": 60}},
                {"spec": {"size": "x"}},
                {"spec": {"name": "bad"}},
                {},
            ):
                client.post(path, make(body, **fields), DRY)
            client.post(path.replace("/v1/", "/v2/"), make(body, "two", "v2", spec={"size": 20}), DRY)
            client.post(path, make(body, spec={"size": 1}), silent=True)
            client.patch(f"{path}/one/scale", {"spec": {"replicas": 20}}, MERGE, DRY)
            client.patch(f"{path}/one/status", {"status": {"size": 20}}, MERGE, DRY)
            client.patch(f"{path}/one", {"spec": {"size": 20}}, MERGE, DRY)
            client.delete(f"{path}/one", None, DRY)
        with policed(
            client,
            denying(
                "object.kind + ' ' + string(object.spec.replicas)",
                matchConstraints={"resourceRules": [on("widgets/scale", "*", group)]},
            ),
            suffix="scale",
        ):
            client.patch(f"{path}/one/scale", {"spec": {"replicas": 20}}, MERGE, DRY)
            client.patch(f"{path}/one/status", {"status": {"size": 20}}, MERGE, DRY)
        with policed(
            client,
            denying("string(object.status.size)", matchConstraints={"resourceRules": [on("widgets/status", "*", group)]}),
            suffix="status",
        ):
            client.patch(f"{path}/one/status", {"status": {"size": 20}}, MERGE, DRY)
    with policed(
        client,
        denying(
            "object.kind + ' ' + object.spec.names.kind",
            matchConstraints={
                "namespaceSelector": {},
                "resourceRules": [
                    on("customresourcedefinitions", "CREATE", "apiextensions.k8s.io", resourceNames=[body["metadata"]["name"]])
                ],
            },
        ),
        suffix="definitions",
    ):
        client.post(CRDS, body, DRY)


@scenario
def some_things_are_not_asked(client: Client) -> None:
    """Reviews of access and tokens, and policies and webhook configurations, pass every policy by; reads do, too."""
    marked = {"metadata": {"name": client.name("x"), "labels": {"owner": client.id}}}
    spec = {"policyName": "p", "validationActions": ["Audit"]}
    with policed(
        client,
        denying(matchConstraints={**only(owner=client.id), "namespaceSelector": {}, "resourceRules": [on("*", "*", "*", "*")]}),
    ):
        client.post(collection("Validating", True), {**marked, "spec": spec}, DRY)
        client.post(
            f"{collection('Validating').rsplit('/', 1)[0]}/validatingwebhookconfigurations", {**marked, "webhooks": []}, DRY
        )
        client.post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"metadata": {"labels": {"owner": client.id}}, "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}},
        )
        client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {"metadata": {"labels": {"owner": client.id}}})
        client.post(
            "/apis/authentication.k8s.io/v1/tokenreviews", {"metadata": {"labels": {"owner": client.id}}, "spec": {"token": "x"}}
        )
        client.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", {**marked, "rules": []}, DRY)
        client.post("/api/v1/nodes", marked, DRY)
        client.get(maps(client))
        client.post(
            f"/apis/authorization.k8s.io/v1/namespaces/{client.ns}/localsubjectaccessreviews",
            {
                "metadata": {"namespace": client.ns, "labels": {"owner": client.id}},
                "spec": {"user": "u", "resourceAttributes": {"namespace": client.ns, "verb": "get", "resource": "pods"}},
            },
        )


@scenario
def policies_change(client: Client) -> None:
    """A changed policy or binding takes effect; a deleted one ends; a policy made again under its name is asked again."""
    path = maps(client)
    with policed(client, {"validations": [{"expression": "object.data.a == '1'", "message": "first"}]}) as where_:
        client.post(path, config_map("one", None, a="2"), DRY)
        client.patch(
            where_, {"spec": {"validations": [{"expression": "object.data.a == '2'", "message": "second"}]}}, MERGE, silent=True
        )
        settled(client)
        client.post(path, config_map("one", None, a="2"), DRY)
        client.post(path, config_map("one", None, a="1"), DRY)
        client.patch(
            f"{collection('Validating', True)}/{client.name('policy')}-0",
            {"spec": {"validationActions": ["Warn"]}},
            MERGE,
            silent=True,
        )
        settled(client)
        client.post(path, config_map("one", None, a="1"), DRY)
        client.delete(where_, silent=True)
        settled(client)
        client.post(path, config_map("one", None, a="1"), DRY)
        client.post(
            collection("Validating"),
            policy(
                client,
                "Validating",
                client.name("policy"),
                {"validations": [{"expression": "object.data.a == '3'", "message": "third"}]},
            ),
            silent=True,
        )
        settled(client)
        client.post(path, config_map("one", None, a="1"), DRY)
        client.post(path, config_map("one", None, a="3"), DRY)


# ---------------------------------------------------------------- mutating policies


def mutating(*mutations: Any, **spec: Any) -> dict[str, Any]:
    """A policy's spec with mutations; plain text is an apply configuration."""
    return {"mutations": [applied(m) if isinstance(m, str) else m for m in mutations], **spec}


def labelling(name: str, value: str = "'yes'", **spec: Any) -> dict[str, Any]:
    return mutating(f"Object{{metadata: Object.metadata{{labels: {{'{name}': {value}}}}}}}", **spec)


@scenario
def mutations_apply(client: Client) -> None:
    """ApplyConfiguration merges as an apply does: maps by key, lists by their key, sets as sets; without what is atomic; then defaults."""
    deployments = f"/apis/apps/v1/namespaces/{client.ns}/deployments"
    cases = {
        "labels": "Object{metadata: Object.metadata{labels: {'team': 'red', 'app': string(object.metadata.name)}, annotations: {'seen': 'yes'}}}",
        "replicas": "Object{spec: Object.spec{replicas: object.spec.replicas + 1}}",
        "sidecar": "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'sidecar', image: 'example.com/side:1'}]}}}}",
        "same": "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'main', imagePullPolicy: 'Always', env: [Object.spec.template.spec.containers.env{name: 'A', value: 'b'}]}]}}}}",
        "each": "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{name: c.name, image: string(c.image) + '-patched'})}}}}",
        "finalizer": "Object{metadata: Object.metadata{finalizers: ['example.com/hold']}}",
        "nothing": "Object{}",
        "empty": "Object{spec: Object.spec{}}",
        "optional": "Object{spec: Object.spec{?minReadySeconds: object.spec.replicas > 5 ? optional.of(7) : optional.none()}}",
        "conditional": "has(object.metadata.labels) ? Object{} : Object{metadata: Object.metadata{labels: {'had': 'none'}}}",
    }
    with policed_each(
        client, {name: mutating(expression) for name, expression in cases.items()}, "Mutating", "CREATE", "deployments", "apps"
    ):
        for name in cases:
            client.post(deployments, deployment(name), DRY)
            if name in ("sidecar", "same", "optional"):
                client.post(deployments, deployment(name, 9, env=[{"name": "A", "value": "a"}]), DRY)


@scenario
def mutations_that_cannot_apply(client: Client) -> None:
    """Atomic lists and maps, unknown fields, wrong types, wrong names, errors while computing: what is said, under Fail and Ignore, and when the policy is stored."""
    cases = {
        "atomic": "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'main', args: ['x']}]}}",
        "atomicmap": "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}",
        "unknown": "Object{spec: Object.spec{nosuch: 'x'}}",
        "type": "Object{spec: Object.spec{priority: 'high'}}",
        "names": "Object{spec: Object.metadata{labels: {'a': 'b'}}}",
        "deepnames": "Object{spec: Object.spec{containers: [Object.spec.wrong{name: 'main'}]}}",
        "nokey": "Object{spec: Object.spec{containers: [Object.spec.containers{image: 'x'}]}}",
        "error": "Object{metadata: Object.metadata{labels: {'a': string(object.metadata.labels['none'])}}}",
        "invalid": "Object{metadata: Object.metadata{labels: {'a b': 'c d'}}}",
        "rename": "Object{metadata: Object.metadata{name: 'other'}}",
        "kind": "Object{kind: 'Service'}",
        "mixed": "Object{metadata: Object.metadata{labels: {'n': string(1)}, generation: 5, resourceVersion: '7', uid: 'x'}}",
        "restart": "Object{spec: Object.spec{restartPolicy: 'Sometimes'}}",
    }
    specs = {name: mutating(expression) for name, expression in cases.items()} | {
        f"{name}-ignore": mutating(cases[name], failurePolicy="Ignore") for name in ("atomic", "unknown", "error", "type")
    }
    with policed_each(client, specs, "Mutating", "CREATE", "pods"):
        for name in specs:
            client.post(f"/api/v1/namespaces/{client.ns}/pods", pod(name), DRY)
    for expression in (
        "{'metadata': 1}",
        "Object",
        "'x'",
        "Object{metadata: {'labels': {}}}",
        "object",
        "Object.metadata{}",
        "variables.x",
        "Object{spec: Object.spec{a: params.b}}",
        "",
        "Object{1: 2}",
        "Object.spec.template{}",
        "dyn(Object{})",
    ):
        client.post(collection("Mutating"), policy(client, "Mutating", client.name("bad"), mutating(expression)), DRY)


@scenario
def mutations_patch(client: Client) -> None:
    """JSONPatch: add, replace, remove, test, move, copy; values of every type and objects; escaped keys; a failing test changes nothing; other failures are errors."""
    cases = {
        "add": "[JSONPatch{op: 'add', path: '/data/new', value: 'x'}]",
        "replace": "[JSONPatch{op: 'replace', path: '/data/a', value: string(object.data.a) + '!'}]",
        "remove": "[JSONPatch{op: 'remove', path: '/data/a'}]",
        "tested": "[JSONPatch{op: 'test', path: '/data/a', value: '1'}, JSONPatch{op: 'replace', path: '/data/a', value: 'tested'}]",
        "untested": "[JSONPatch{op: 'add', path: '/data/z', value: 'z'}, JSONPatch{op: 'test', path: '/data/a', value: 'other'}]",
        "move": "[JSONPatch{op: 'move', from: '/data/a', path: '/data/moved'}]",
        "copy": "[JSONPatch{op: 'copy', from: '/data/a', path: '/data/copied'}]",
        "escaped": "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}, JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('example.com/a~b'), value: 'e'}]",
        "object": "[JSONPatch{op: 'add', path: '/metadata/labels', value: Object.metadata.labels{team: 'red'}}]",
        "map": "[JSONPatch{op: 'replace', path: '/data', value: {'x': 'y'}}]",
        "none": "[JSONPatch{op: 'remove', path: '/data'}].filter(p, false)",
        "many": "object.data.map(k, JSONPatch{op: 'replace', path: '/data/' + string(k), value: string(k)})",
        "condition": "'b' in object.data ? [] : [JSONPatch{op: 'add', path: '/data/b', value: 'b'}]",
        "absent": "[JSONPatch{op: 'remove', path: '/data/nope'}]",
        "noparent": "[JSONPatch{op: 'add', path: '/metadata/labels/x', value: 'y'}]",
        "number": "[JSONPatch{op: 'add', path: '/data/n', value: 5}]",
        "unknown": "[JSONPatch{op: 'add', path: '/nosuch', value: 'x'}]",
        "op": "[JSONPatch{op: 'swap', path: '/data'}]",
        "path": "[JSONPatch{op: 'add', path: 'data/x', value: 'y'}]",
        "novalue": "[JSONPatch{op: 'add', path: '/data/x'}]",
        "kind": "[JSONPatch{op: 'replace', path: '/kind', value: 'Secret'}]",
        "quoted": "[JSONPatch{op: 'add', path: '/data/q', value: 'say \"hi\" \\n'}]",
        "name": "[JSONPatch{op: 'replace', path: '/metadata/name', value: 'renamed'}]",
        "bool": "[JSONPatch{op: 'add', path: '/immutable', value: true}]",
        "error": "[JSONPatch{op: 'add', path: '/data/x', value: string(object.data.none)}]",
        "wrongname": "[JSONPatch{op: 'add', path: '/metadata/labels', value: Object.spec{team: 'red'}}]",
    }
    with policed_each(client, {name: mutating(patched(expression)) for name, expression in cases.items()}, "Mutating"):
        for name in cases:
            client.post(maps(client), config_map(name), DRY)
    for expression in (
        "JSONPatch{op: 'add'}",
        "[]",
        "[1]",
        "[JSONPatch{op: 1}]",
        "[JSONPatch{verb: 'add'}]",
        "[Object{}]",
        "''",
        "[JSONPatch{op: 'add', path: '/x', value: Nope{}}]",
    ):
        client.post(collection("Mutating"), policy(client, "Mutating", client.name("bad"), mutating(patched(expression))), DRY)


@scenario
def mutations_know_their_place(client: Client) -> None:
    """Operations, conditions, variables, selectors and the request in a mutating policy; deletions are never asked; several mutations see each other's work."""
    path = maps(client)
    client.post(path, config_map("kept"), silent=True)
    base = "Object{metadata: Object.metadata{labels: {'by': request.operation.lowerAscii() + '.' + request.userInfo.username, 'size': string(variables.size), 'old': oldObject == null ? 'null' : 'some', 'dry': string(request.dryRun), 'tier': string(namespaceObject.metadata.name).size() > 0 ? 'named' : ''}}}"
    spec = mutating(
        base,
        "Object{metadata: Object.metadata{annotations: {'second': string(object.metadata.labels.size()) + ' labels, size ' + string(variables.size)}}}",
        patched("[JSONPatch{op: 'add', path: '/data/third', value: string(object.metadata.annotations['second'])}]"),
        variables=[{"name": "size", "expression": "object.data.size()"}],
        matchConditions=[
            {"name": "not-skipped", "expression": "!has(object.metadata.labels) || !('skip' in object.metadata.labels)"}
        ],
    )
    with policed(client, spec, kind="Mutating"):
        client.post(path, config_map("one"))
        client.post(path, config_map("two", {"skip": "me"}), DRY)
        client.post(path, {"metadata": {"generateName": "gen-"}, "data": {"a": "1"}}, DRY)
        client.put(f"{path}/kept", config_map("kept", a="5"))
        client.patch(f"{path}/kept", {"data": {"b": "2"}}, MERGE)
        client.patch(f"{path}/kept", [{"op": "add", "path": "/data/c", "value": "3"}], JSON_PATCH, DRY)
        client.patch(f"{path}/applied", config_map("applied"), APPLY, {"fieldManager": "m"})
        client.delete(f"{path}/one")
        client.delete(path, None, {"labelSelector": "by=update.admin", "dryRun": "All"})
    client.post(
        collection("Mutating"),
        policy(
            client,
            "Mutating",
            client.name("d"),
            mutating("Object{}", matchConstraints={"resourceRules": [on("configmaps", "DELETE")]}),
        ),
        DRY,
    )
    client.post(
        collection("Mutating"),
        policy(
            client,
            "Mutating",
            client.name("d"),
            mutating("Object{}", matchConstraints={"resourceRules": [on("pods/exec", "CONNECT")]}),
        ),
        DRY,
    )
    with policed(
        client,
        labelling(
            "seen",
            matchConstraints={
                "resourceRules": [on("configmaps", "*")],
                "excludeResourceRules": [on("configmaps", "*", resourceNames=["free"])],
                **only(want="it"),
            },
        ),
        {},
        {"matchResources": only(never="so")},
        kind="Mutating",
        suffix="selected",
    ):
        for name, labels in (
            ("bound", {"want": "it"}),
            ("free", {"want": "it"}),
            ("plain", None),
            ("bound", {"want": "it", "never": "so"}),
        ):
            client.post(path, config_map(name, labels), DRY)
        client.delete(f"{path}/kept", None, DRY)


@scenario
def mutations_are_owned_by_the_writer(client: Client) -> None:
    """managedFields after a mutation: a created or updated object's writer owns what the policy set; an applier does not own it by applying; reverting and repeating."""
    path = maps(client)
    with policed(
        client,
        mutating("Object{metadata: Object.metadata{labels: {'policy': 'was-here'}}, data: {'set': 'by policy'}}"),
        kind="Mutating",
    ):
        client.post(path, config_map("made"), {"fieldManager": "creator"})
        client.patch(f"{path}/made", {"data": {"b": "2"}}, MERGE, {"fieldManager": "patcher"})
        client.put(f"{path}/made", config_map("made", c="3"), {"fieldManager": "putter"})
        client.patch(f"{path}/applied", config_map("applied"), APPLY, {"fieldManager": "applier"})
        client.patch(f"{path}/applied", config_map("applied", b="2"), APPLY, {"fieldManager": "applier"})
        client.patch(f"{path}/applied", config_map("applied", set="by someone else"), APPLY, {"fieldManager": "second"})
        client.patch(
            f"{path}/made",
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"set": "by policy"}},
            APPLY,
            {"fieldManager": "agrees"},
        )
        client.patch(f"{path}/made", {"data": {"set": None}}, MERGE, {"fieldManager": "remover"})
    settled(client, "Mutating")
    client.patch(f"{path}/applied", config_map("applied", d="4"), APPLY, {"fieldManager": "applier"})
    client.put(f"{path}/made", config_map("made", e="5"), {"fieldManager": "putter"})
    client.get(f"{path}/made")


@scenario
def mutated_then_validated(client: Client) -> None:
    """A validating policy and the object's own validation judge the mutated object; defaults are filled in after a mutation; a denial writes nothing."""
    with policed(
        client,
        mutating(
            patched(
                "'remove' in object.data ? [JSONPatch{op: 'remove', path: '/data'}] : [JSONPatch{op: 'add', path: '/data/added', value: string(object.data.size())}]"
            )
        ),
        kind="Mutating",
        suffix="m",
    ):
        with policed(
            client,
            {
                "validations": [
                    {"expression": "has(object.data) && 'added' in object.data", "message": "nothing was added"},
                    {
                        "expression": "!has(object.data) || object.data.added != '3'",
                        "messageExpression": "'added ' + string(object.data.added)",
                    },
                ]
            },
            suffix="v",
        ):
            for body in (config_map("one"), config_map("two", None, remove="it"), config_map("three", None, a="1", b="2", c="3")):
                client.post(maps(client), body)
            client.patch(f"{maps(client)}/one", {"data": {"b": "2"}}, MERGE, DRY)
            client.patch(f"{maps(client)}/one", {"data": {"b": "2", "c": "3"}}, MERGE, DRY)
            client.get(maps(client))
    with (
        policed(
            client,
            mutating(
                "Object{spec: Object.spec{ports: [Object.spec.ports{port: 80, name: 'added'}]}}",
                matchConstraints={"resourceRules": [on("services", "CREATE")]},
            ),
            kind="Mutating",
            suffix="services",
        ),
        policed(
            client,
            {
                "validations": [
                    {
                        "expression": "object.spec.ports.all(p, has(p.protocol) && has(p.targetPort))",
                        "message": "defaults are missing",
                    },
                    {
                        "expression": "object.spec.ports.size() < 3",
                        "messageExpression": "string(object.spec.ports.size()) + ' ports'",
                    },
                ],
                "matchConstraints": {"resourceRules": [on("services", "CREATE")]},
            },
            suffix="ports",
        ),
    ):
        for ports in (
            [],
            [{"port": 443, "name": "https"}],
            [{"port": 80, "name": "http"}],
            [{"port": 443, "name": "https"}, {"port": 90, "name": "more"}],
        ):
            client.post(
                f"/api/v1/namespaces/{client.ns}/services",
                {"metadata": {"name": "s"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": ports}},
                DRY,
            )


@scenario
def mutations_are_invoked_again(client: Client) -> None:
    """reinvocationPolicy IfNeeded: a policy is asked again when a later one changed the object, so that the order does not show; Never: once; a policy that always changes is asked no more than twice."""
    first = mutating(
        patched(
            "'second' in object.data && !('first' in object.data) ? [JSONPatch{op: 'add', path: '/data/first', value: 'after second'}] : []"
        ),
        reinvocationPolicy="IfNeeded",
    )
    second = mutating(
        patched("'second' in object.data ? [] : [JSONPatch{op: 'add', path: '/data/second', value: 'x'}]"),
        reinvocationPolicy="IfNeeded",
    )
    with (
        policed(client, first, kind="Mutating", suffix="first", wait=False),
        policed(client, second, kind="Mutating", suffix="second"),
    ):
        client.post(maps(client), config_map(), DRY)
        client.post(maps(client), config_map("two", None, second="there"), DRY)
    chain = [
        mutating(
            patched(
                f"'{a}' in object.data && !('{b}' in object.data) ? [JSONPatch{{op: 'add', path: '/data/{b}', value: 'from {a}'}}] : []"
            ),
            reinvocationPolicy="IfNeeded",
        )
        for a, b in (("a", "b"), ("b", "c"))
    ]
    with (
        policed(client, chain[0], kind="Mutating", suffix="ab", wait=False),
        policed(client, chain[1], kind="Mutating", suffix="bc"),
    ):
        client.post(maps(client), config_map(), DRY)
    growing = "Object{data: {'count': string(int('count' in object.data ? string(object.data.count) : '0') + 1)}}"
    for again in ("Never", "IfNeeded"):
        with policed(client, mutating(growing, reinvocationPolicy=again), kind="Mutating", suffix=f"alone-{again.lower()}"):
            client.post(maps(client), config_map(again.lower()), DRY)
            client.post(maps(client), config_map(again.lower(), None, count="7"), DRY)
    with policed(client, mutating(growing, growing, reinvocationPolicy="Never"), {}, {}, kind="Mutating", suffix="two-bindings"):
        client.post(maps(client), config_map(), DRY)


@scenario
def mutations_that_err(client: Client) -> None:
    """Errors of conditions, variables, parameters and mutations in a mutating policy: the words, all causes, Fail and Ignore; what other mutations did stays under Ignore."""
    anchored(client)
    limits(client, "text", "many")
    good = "Object{metadata: Object.metadata{labels: {'good': 'yes'}}}"
    cases: dict[str, dict[str, Any]] = {
        "condition": mutating(good, matchConditions=[{"name": "c", "expression": "object.data.none == 'x'"}]),
        "variable": mutating(
            "Object{metadata: Object.metadata{labels: {'v': string(variables.v)}}}",
            variables=[{"name": "v", "expression": "int(object.data.a) / 0"}],
        ),
        "second": mutating(good, "Object{data: {'x': string(object.data.none)}}"),
        "both": mutating(
            "Object{data: {'x': string(object.data.none)}}", "Object{data: {'y': string(object.data.nought)}}", good
        ),
        "patch": mutating(good, patched("[JSONPatch{op: 'remove', path: '/data/none'}]")),
        "decode": mutating(patched("[JSONPatch{op: 'replace', path: '/data', value: 'text'}]")),
        "strict": mutating(patched("[JSONPatch{op: 'add', path: '/extra', value: 'text'}]")),
    }
    for failure in ("Fail", "Ignore"):
        with policed_each(client, {name: {**spec, "failurePolicy": failure} for name, spec in cases.items()}, "Mutating"):
            for name in cases:
                client.post(maps(client), config_map(name), DRY)
        settled(client, "Mutating")
        with policed(
            client,
            mutating(
                "Object{data: {'max': string(int(params.data.max))}}",
                paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
                failurePolicy=failure,
            ),
            *(
                {"paramRef": ref, "matchResources": only(by=by)}
                for by, ref in (
                    ("absent", {"name": "none", "namespace": client.ns, "parameterNotFoundAction": "Deny"}),
                    ("allowed", {"name": "none", "namespace": client.ns, "parameterNotFoundAction": "Allow"}),
                    ("text", {"name": "text", "namespace": client.ns, "parameterNotFoundAction": "Deny"}),
                )
            ),
            kind="Mutating",
            suffix=f"params-{failure.lower()}",
        ):
            until(
                lambda: client.post(maps(client), sized(1, by="text"), DRY, silent=True).status != 201,
                5 if failure == "Fail" else 0.5,
            )
            for by in ("absent", "allowed", "text"):
                client.post(maps(client), sized(1, by=by), DRY)
        with policed(
            client,
            mutating(good, paramKind={"apiVersion": "nosuch.example.com/v1", "kind": "Absent"}, failurePolicy=failure),
            {"paramRef": {"name": "x", "parameterNotFoundAction": "Allow"}},
            kind="Mutating",
            suffix=f"kind-{failure.lower()}",
        ):
            client.post(maps(client), config_map(), DRY)


@scenario
def mutations_with_parameters(client: Client) -> None:
    """Parameters of a mutating policy: by name and selector, several of them each once, changed ones, none."""
    anchored(client)
    for name, value in (("red", "r"), ("blue", "b")):
        client.post(maps(client), config_map(name, {"paint": "yes"}, colour=value), silent=True)
    spec = mutating(
        "Object{metadata: Object.metadata{labels: {'paint-' + string(params.metadata.name): string(params.data.colour)}}}",
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        matchConstraints={"objectSelector": {"matchExpressions": [{"key": "paint", "operator": "DoesNotExist"}]}},
    )
    with policed(
        client,
        spec,
        {"paramRef": {"name": "red", "parameterNotFoundAction": "Deny"}, "matchResources": only(by="name")},
        {
            "paramRef": {
                "selector": {"matchLabels": {"paint": "yes"}},
                "namespace": client.ns,
                "parameterNotFoundAction": "Deny",
            },
            "matchResources": only(by="selector"),
        },
        {"matchResources": only(by="none")},
        kind="Mutating",
    ):
        until(
            lambda: (
                client.post(maps(client), config_map("one", {"by": "selector"}), DRY, silent=True).get(
                    "metadata", "labels", "paint-blue"
                )
                == "b"
            )
        )
        for by in ("name", "selector", "none"):
            client.post(maps(client), config_map("one", {"by": by}), DRY)
        client.patch(f"{maps(client)}/red", {"data": {"colour": "crimson"}}, MERGE, silent=True)
        until(
            lambda: (
                client.post(maps(client), config_map("one", {"by": "name"}), DRY, silent=True).get(
                    "metadata", "labels", "paint-red"
                )
                == "crimson"
            )
        )
        client.post(maps(client), config_map("one", {"by": "name"}), DRY)


@scenario
def mutations_of_custom_resources(client: Client) -> None:
    """Custom resources are mutated by their schema: lists with keys, unknown fields, other versions, status and scale; a wrong type is refused by the merge or by the schema."""
    schema = obj(
        {
            "spec": obj(
                {
                    "size": {"type": "integer", "maximum": 10},
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": obj({"name": {"type": "string"}, "count": {"type": "integer"}}, required=["name"]),
                    },
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "mode": {"type": "string", "default": "plain"},
                }
            ),
            "status": ANY,
        }
    )
    body = definition(
        client,
        schema,
        {"subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}},
    )
    body["spec"]["versions"].append({"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}})
    group = body["spec"]["group"]
    widgets = {"matchConstraints": {"resourceRules": [on("widgets", "CREATE UPDATE", group)]}}
    cases = {
        "size": "Object{spec: Object.spec{size: 5}}",
        "parts": "Object{spec: Object.spec{parts: [Object.spec.parts{name: 'b', count: 2}, Object.spec.parts{name: 'c'}]}}",
        "big": "Object{spec: Object.spec{size: 50}}",
        "type": "Object{spec: Object.spec{size: 'x'}}",
        "unknown": "Object{spec: Object.spec{nosuch: 1}}",
        "tags": "Object{spec: Object.spec{tags: ['x']}}",
        "labels": "Object{metadata: Object.metadata{labels: {'v': object.apiVersion.split('/')[1]}}}",
    }
    with served(client, body) as path:
        two = path.replace("/v1/", "/v2/")
        for name, expression in cases.items():
            with policed(client, mutating(expression, **widgets), kind="Mutating", suffix=name):
                until(lambda: client.post(path, make(body, spec={}), DRY, silent=True).status != 503, 30)
                client.post(
                    path, make(body, spec={"size": 1, "parts": [{"name": "a", "count": 1}, {"name": "b", "count": 1}]}), DRY
                )
                if name in ("labels", "size"):
                    client.post(two, make(body, "two", "v2", spec={"size": 2}), DRY)
        with policed(
            client,
            mutating(
                patched(
                    "[JSONPatch{op: 'add', path: '/spec/tags', value: ['t', 'u']}, JSONPatch{op: 'add', path: '/spec/extra', value: 'pruned'}, JSONPatch{op: 'add', path: '/spec/size', value: 3}]"
                ),
                **widgets,
            ),
            kind="Mutating",
            suffix="patched",
        ):
            client.post(path, make(body, spec={"size": 1}), DRY)
            client.post(path, make(body))
            client.post(path, make(body, "stored", spec={}))
            client.patch(f"{path}/stored/status", {"status": {"a": 1}}, MERGE)
            client.patch(f"{path}/stored/scale", {"spec": {"replicas": 7}}, MERGE)
            client.patch(f"{path}/stored", make(body, "stored", spec={"mode": "applied"}), APPLY, {"fieldManager": "m"})
        with policed(
            client,
            mutating(
                "Object{status: Object.status{seen: 'yes'}}",
                matchConstraints={"resourceRules": [on("widgets/status", "UPDATE", group)]},
            ),
            kind="Mutating",
            suffix="status",
        ):
            client.patch(f"{path}/stored/status", {"status": {"a": 2}}, MERGE)
            client.patch(f"{path}/stored", {"spec": {"size": 4}}, MERGE)


@scenario
def mutations_of_subresources(client: Client) -> None:
    """status, scale, binding, tokens and ephemeral containers are mutated where a rule names them."""
    ns = f"/api/v1/namespaces/{client.ns}"
    web = f"/apis/apps/v1/namespaces/{client.ns}/deployments/web"
    client.post(f"/apis/apps/v1/namespaces/{client.ns}/deployments", deployment(), silent=True)
    client.post(f"{ns}/pods", pod(), silent=True)
    client.post(accounts(client), {"metadata": {"name": "sa"}}, silent=True)

    def constrained(resources: str, group: str = "", operations: str = "*") -> dict[str, Any]:
        return {"matchConstraints": {"resourceRules": [on(resources, operations, group)]}}

    with policed(
        client,
        mutating("Object{spec: Object.spec{replicas: object.spec.replicas + 1}}", **constrained("deployments/scale", "apps")),
        kind="Mutating",
        suffix="scale",
    ):
        client.patch(f"{web}/scale", {"spec": {"replicas": 4}}, MERGE)
        client.patch(web, {"spec": {"replicas": 2}}, MERGE)
    with policed(
        client,
        mutating("Object{status: Object.status{message: 'mutated'}}", **constrained("pods/status")),
        kind="Mutating",
        suffix="status",
    ):
        client.patch(f"{ns}/pods/p/status", {"status": {"reason": "R"}}, MERGE, DRY)
    with policed(
        client,
        mutating("Object{spec: Object.spec{expirationSeconds: 7200}}", **constrained("serviceaccounts/token")),
        kind="Mutating",
        suffix="token",
    ):
        reply = client.post(
            f"{accounts(client)}/sa/token", {"spec": {"audiences": ["x"], "expirationSeconds": 3600}}, silent=True
        )
        note(client, "token", [reply.status, reply.get("message"), reply.get("spec", "expirationSeconds")])
    with policed(
        client,
        mutating("Object{metadata: Object.metadata{annotations: {'bound': 'by policy'}}}", **constrained("pods/binding")),
        kind="Mutating",
        suffix="binding",
    ):
        client.post(
            f"{ns}/pods/p/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
        )
        note(client, "annotations", client.get(f"{ns}/pods/p", silent=True).get("metadata", "annotations"))
    with policed(
        client,
        mutating(
            patched("[JSONPatch{op: 'replace', path: '/spec/ephemeralContainers/0/image', value: 'example.com/debug:2'}]"),
            **constrained("pods/ephemeralcontainers"),
        ),
        kind="Mutating",
        suffix="ephemeral",
    ):
        client.patch(
            f"{ns}/pods/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}, STRATEGIC, DRY
        )


@scenario
def mutating_policies_as_objects(client: Client) -> None:
    """Defaults, generation and tables of mutating policies and bindings; what they must say."""
    path = collection("Mutating")
    base = {
        "matchConstraints": {"resourceRules": [on("configmaps", "CREATE")]},
        "reinvocationPolicy": "Never",
        "mutations": [applied("Object{}")],
    }

    def post(**change: Any) -> None:
        client.post(
            path,
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "MutatingAdmissionPolicy",
                "metadata": {"name": client.name("p")},
                "spec": {k: v for k, v in {**base, **change}.items() if v != "drop"},
            },
            DRY,
        )

    post()
    for change in (
        {"reinvocationPolicy": "drop"},
        {"reinvocationPolicy": "Always"},
        {"mutations": []},
        {"mutations": [{}]},
        {"mutations": [{"patchType": "JSONPatch"}]},
        {"mutations": [{"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}}]},
        {"mutations": [{**applied("Object{}"), "jsonPatch": {"expression": "[]"}}]},
        {"mutations": [applied("  ")]},
        {"matchConstraints": "drop"},
        {"matchConstraints": {}},
        {"matchConstraints": {"resourceRules": []}},
        {"matchConstraints": {"resourceRules": [on("configmaps", "DELETE CREATE")]}},
        {"matchConstraints": {"resourceRules": [on("configmaps", "*")]}},
        {"failurePolicy": "Perhaps"},
        {"variables": [{"name": "v", "expression": "variables.w"}, {"name": "w", "expression": "1"}]},
        {"variables": [{"name": "1", "expression": ""}]},
        {"paramKind": {"kind": "ConfigMap"}},
        {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "mutations": [applied("Object{metadata: Object.metadata{labels: {'x': string(params.data.x)}}}")],
        },
        {"matchConditions": [{"name": "a", "expression": "1"}]},
        {
            "mutations": [
                applied(
                    "Object{metadata: Object.metadata{labels: {'x': authorizer.path('/').check('get').allowed() ? 'y' : 'n'}}}"
                )
            ]
        },
        {"mutations": [applied("Object{}")] * 65},
    ):
        post(**change)
    for spec in (
        {},
        {"policyName": "p"},
        {"policyName": "p", "validationActions": ["Deny"]},
        {"policyName": "p", "paramRef": {}},
        {"policyName": "p", "paramRef": {"name": "x"}},
        {"policyName": "p", "paramRef": {"name": "x", "selector": {}, "parameterNotFoundAction": "Deny"}},
        {"policyName": "p", "matchResources": {"resourceRules": [on("configmaps", "DELETE")]}},
        {"policyName": "p", "matchResources": {"matchPolicy": "Exact"}},
    ):
        client.post(
            collection("Mutating", True),
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "MutatingAdmissionPolicyBinding",
                "metadata": {"name": client.name("b")},
                "spec": spec,
            },
            DRY,
        )
    name = client.name("kept")
    client.post(path, policy(client, "Mutating", name, mutating("Object{}")))
    client.patch(f"{path}/{name}", {"spec": {"failurePolicy": "Ignore"}}, MERGE)
    client.patch(f"{path}/{name}", {"spec": {"mutations": [applied("Object{")]}}, MERGE)
    client.get(f"{path}/{name}/status")
    client.get(path, {"fieldSelector": f"metadata.name={name}"}, headers={"Accept": TABLE})
    client.post(collection("Mutating", True), policy_binding(client, "Mutating", name, {"policyName": name}))
    client.get(collection("Mutating", True), {"fieldSelector": f"metadata.name={name}"}, headers={"Accept": TABLE})
    client.delete(f"{collection('Mutating', True)}/{name}")
    client.delete(f"{path}/{name}")
    client.get(path, headers=ALICE)
