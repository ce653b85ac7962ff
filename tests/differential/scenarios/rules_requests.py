"""Requests that differences between random stories and the real servers led to: what a write leaves, and how an answer is told."""

from __future__ import annotations

from typing import Any

from tests.differential.client import APPLY, JSON_PATCH, MERGE, Client
from tests.differential.definitions import ANY, CRDS, DRY, definition, make, served, where
from tests.differential.pacing import sleep, until
from tests.differential.registry import scenario
from tests.differential.steps import ADMISSION, patched, policed_each

ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"

#: What the server sets itself, one at a time.
SYSTEM_FIELDS: tuple[dict[str, Any], ...] = (
    {"deletionTimestamp": "2020-01-01T00:00:00Z"}, {"selfLink": "/a"}, {"deletionGracePeriodSeconds": 3},
    {"generation": 7, "creationTimestamp": "2020-01-01T00:00:00Z", "uid": "u"}, {"creationTimestamp": "2020-01-01T00:00:00Z"},
    {"resourceVersion": "4"}, {"generateName": "a-"}, {"deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": ["example.com/x"]},
)  # fmt: skip


@scenario
def system_fields_of_an_object_that_an_apply_creates(client: Client) -> None:
    """What an apply keeps of the metadata that the server sets: nothing since 1.37, the time of the deletion before."""
    path = ROLES.format(ns=client.ns)
    for number, fields in enumerate(SYSTEM_FIELDS):
        name = f"a{number}"
        body = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, **fields}}
        for query in ({"fieldManager": "m", **DRY}, {"fieldManager": "m"}, {"fieldManager": "m"}):
            client.patch(f"{path}/{name}", body, APPLY, query)
        client.patch(f"{path}/{name}", {"metadata": fields}, MERGE)
        client.delete(f"{path}/{name}")


@scenario
def system_fields_of_an_object_that_a_put_creates(client: Client) -> None:
    """The same of a PUT, with kinds that it may create."""
    path = LEASES.format(ns=client.ns)
    for number, fields in enumerate(SYSTEM_FIELDS):
        name = f"a{number}"
        body = {"metadata": {"name": name, **fields}, "spec": {}}
        for query in (DRY, {}, {}):
            client.put(f"{path}/{name}", body, query)
        client.post(path, {"metadata": {"name": f"b{number}", **fields}, "spec": {}})
        client.delete(f"{path}/{name}")


@scenario
def the_last_update_of_a_deleted_object(client: Client) -> None:
    """An update that takes the last finalizer away is answered with what was sent, which was never stored."""
    path = f"/api/v1/namespaces/{client.ns}/limitranges"
    for number, body in enumerate(
        (
            {"spec": {"limits": []}},
            {"metadata": {"selfLink": "/a"}},
            {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1000m"}}]}},
        )
    ):
        name = f"l{number}"
        client.post(path, {"metadata": {"name": name, "finalizers": ["example.com/x"]}, "spec": {"limits": [{"type": "Pod"}]}})
        client.delete(f"{path}/{name}")
        change = {**body, "metadata": {**body.get("metadata", {}), "finalizers": None}}
        client.patch(f"{path}/{name}", change, MERGE, DRY)
        client.patch(f"{path}/{name}", change, MERGE)
        client.get(f"{path}/{name}")


@scenario
def times_of_taints_of_devices(client: Client) -> None:
    """A taint without a time gets that of the request, before anything compares the object with the one before."""
    name = client.name("s")
    spec = {
        "driver": "a.b", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}, "nodeName": "n",
        "devices": [{"name": "d", "taints": [{"key": "a", "effect": "NoSchedule"}]}],
    }  # fmt: skip
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}
    client.patch(f"{SLICES}/{name}", body, APPLY, {"fieldManager": "m1"})
    sleep(1.2)
    client.patch(f"{SLICES}/{name}", {"spec": spec}, MERGE, {"fieldManager": "m2", **DRY})
    client.patch(f"{SLICES}/{name}", {"spec": spec}, MERGE, {"fieldManager": "m2"})
    sleep(1.2)
    client.put(f"{SLICES}/{name}", body, {"fieldManager": "m3"})
    stored = client.get(f"{SLICES}/{name}").json
    sleep(1.2)
    client.put(f"{SLICES}/{name}", stored, {"fieldManager": "m4"})
    client.delete(f"{SLICES}/{name}")


@scenario
def whole_documents_in_json_patches(client: Client) -> None:
    """A test of the whole document, or of a part of it, sorts the members of what it compares; a message shows them."""
    path = f"/api/v1/namespaces/{client.ns}/configmaps"
    client.post(path, {"metadata": {"name": "a", "labels": {"l": "m"}}, "data": {"b": "1", "a": "2"}})
    stored = client.get(f"{path}/a").json
    wrong = {"op": "add", "path": "/data", "value": "x"}
    for pointer, value in (
        ("", stored),
        ("/metadata", stored["metadata"]),
        ("/metadata/managedFields/0", stored["metadata"]["managedFields"][0]),
        ("/metadata/labels", {"l": "m"}),
        ("", {}),
        ("", None),
    ):
        client.patch(f"{path}/a", [{"op": "test", "path": pointer, "value": value}, wrong], JSON_PATCH, DRY)
        client.patch(f"{path}/a", [wrong, {"op": "test", "path": pointer, "value": value}], JSON_PATCH, DRY)


#: Names that begin with a dot are those of the expression's own variables, functions and types, not of a macro's.
DOTTED = (
    ".foo", ".foo.bar == 1", "1 + .map(k, k)", ".size('a') == 1", ".size(.object) == 1", ".object.metadata.name == 'a'", ".object.nope", ".nope(1)",
    "[1].exists(x, .x == 1)", "[1].exists(object, .object.metadata.name == 'a')", "[1].exists(object, object == 1)", "has(.object.metadata)", "has(.nope.x)",
    ".int == int", ".nope.Type{a: 1}", ".Object{a: 1}", ".type(1) == .int", ".quantity('1').nope() == 1", ".has(object.metadata)", ".all(1)", ".params",
    ".request.name == 'a'", "type(1) == .double", ".optional.of(1) == optional.of(1)", "[1].exists(.x, true)", "[1].exists(x.y, true)", ".'a'", ".1 == 1",
    "'a' in .object", ".object.metadata.labels.?a.orValue('') == ''", ".object.data.a == 'b'", ".variables.v == 'b'", "object.data.all(object, .object.data[object] == 'b')",
)  # fmt: skip


@scenario
def names_with_a_leading_dot(client: Client) -> None:
    """How names with a leading dot are resolved, and how those that are unknown are told."""
    name = client.name("p")
    rules = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]}
    variables = [{"name": "v", "expression": ".object.data['a']"}]
    for expression in DOTTED:
        spec = {"matchConstraints": rules, "variables": variables, "validations": [{"expression": expression}]}
        client.post(f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec}, DRY)


@scenario
def scales_of_versions_with_paths_of_their_own(client: Client) -> None:
    """managedFields of a scale are those of the path that the version of the entry has, if it has a scale at all."""

    def scale(path: str) -> dict[str, Any]:
        return {"subresources": {"scale": {"specReplicasPath": path, "statusReplicasPath": ".status.replicas"}}}

    entries: dict[str, dict[str, Any]] = {"v1": {}, "v2": scale(".spec.replicas"), "v3": scale(".spec.size"), "v4": {}}
    body = definition(client)
    body["spec"]["versions"] = [
        {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": ANY}, **entry}
        for name, entry in entries.items()
    ]
    with served(client, body):
        for maker in entries:
            made = make(body, maker, maker, spec={"replicas": 1, "size": 2, "other": 3})
            client.post(where(client, body, maker), made, {"fieldManager": "first"})
        body["spec"]["versions"][3]["served"] = False
        client.patch(f"{CRDS}/{body['metadata']['name']}", {"spec": {"versions": body["spec"]["versions"]}}, MERGE)
        until(lambda: client.get(where(client, body, "v4"), silent=True).status == 404)
        for maker in entries:
            for version in ("v2", "v3"):
                path = f"{where(client, body, version)}/{maker}/scale"
                client.get(path)
                client.patch(path, {"spec": {"replicas": "x"}}, MERGE, {"fieldManager": "second"})
                client.patch(path, {"spec": {"replicas": 5}}, MERGE, {"fieldManager": "second"})
                client.get(f"{where(client, body, version)}/{maker}")
                applied = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": maker}, "spec": {"replicas": 6}}
                client.patch(path, applied, APPLY, {"fieldManager": "third"})
                client.patch(path, applied, APPLY, {"fieldManager": "third", "force": "true"})
                client.get(f"{where(client, body, version)}/{maker}")


# --- Branches of rules that no other scenario plays (mutants of the rules showed them) ------------------------------------

WARNED = {"beta.kubernetes.io/os": "linux"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": WARNED, "containers": [{"name": "c", "image": "i"}]}}
SELECTED: dict[str, Any] = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
JOB = {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
#: Kinds with templates of pods: version and plural, the body, and the path of the template.
TEMPLATED: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("apps/v1/daemonsets", {"spec": SELECTED}, ("spec", "template")), ("apps/v1/deployments", {"spec": SELECTED}, ("spec", "template")),
    ("apps/v1/replicasets", {"spec": SELECTED}, ("spec", "template")), ("apps/v1/statefulsets", {"spec": SELECTED}, ("spec", "template")),
    ("v1/replicationcontrollers", {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}}, ("spec", "template")),
    ("v1/podtemplates", {"template": TEMPLATE}, ("template",)), ("batch/v1/jobs", {"spec": {**JOB, "suspend": True}}, ("spec", "template")),
    ("batch/v1/cronjobs", {"spec": {"schedule": "1 1 1 1 1", "jobTemplate": {"spec": JOB}}}, ("spec", "jobTemplate", "spec", "template")),
)  # fmt: skip


@scenario
def warnings_about_templates(client: Client) -> None:
    """An update is warned of a template only if it changes it, and by some kinds in any case."""
    for place, body, steps in TEMPLATED:
        version, _, plural = place.rpartition("/")
        path = f"/{'api' if version == 'v1' else 'apis'}/{version}/namespaces/{client.ns}/{plural}"
        client.post(path, {"metadata": {"name": "a"}, **body})
        for change in (
            {},
            {"metadata": {"annotations": {"x": "y"}}},
            {"spec": {"priorityClassName": ""}},
            {"spec": {"nodeSelector": {"beta.kubernetes.io/os": None, "beta.kubernetes.io/arch": "x"}}},
        ):
            patch: dict[str, Any] = change
            for step in reversed(steps):
                patch = {step: patch}
            client.patch(f"{path}/a", patch, MERGE, DRY)
        client.patch(f"{path}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
        stored = client.get(f"{path}/a", silent=True).json
        client.put(f"{path}/a", stored, DRY)
        client.put(f"{path}/a/status", stored, DRY)


@scenario
def evictions_of_pods_that_are_not_ready(client: Client) -> None:
    """What a budget allows of a pod that is not ready: by its policy, and by how many are healthy."""
    core, path = f"/api/v1/namespaces/{client.ns}/pods", f"/apis/policy/v1/namespaces/{client.ns}/poddisruptionbudgets"
    pod = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    client.post(core, pod)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    for policy in (None, "IfHealthyBudget", "AlwaysAllow"):
        client.post(
            path,
            {
                "metadata": {"name": "b"},
                "spec": {
                    "selector": {"matchLabels": {"a": "b"}},
                    "minAvailable": 1,
                    **({"unhealthyPodEvictionPolicy": policy} if policy else {}),
                },
            },
        )
        for ready in ("True", "False", "Unknown"):
            client.patch(
                f"{core}/p/status",
                {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}},
                MERGE,
                silent=True,
            )
            for desired, current, allowed in (
                (0, 0, 0),
                (0, 1, 0),
                (1, 0, 0),
                (1, 1, 0),
                (1, 2, 0),
                (2, 1, 0),
                (2, 2, 0),
                (1, 0, 1),
                (1, 2, 1),
            ):
                stored = client.get(f"{path}/b", silent=True).json
                state = {
                    "observedGeneration": 1,
                    "currentHealthy": current,
                    "desiredHealthy": desired,
                    "expectedPods": 2,
                    "disruptionsAllowed": allowed,
                }
                client.put(f"{path}/b/status", {**stored, "status": state}, silent=True)
                client.post(f"{core}/p/eviction", eviction, DRY)
        client.delete(f"{path}/b", silent=True)
    client.delete(f"{core}/p", {"gracePeriodSeconds": 0}, silent=True)


@scenario
def label_keys_of_affinities(client: Client) -> None:
    """Label keys of affinities become requirements with the labels of the pod, of all four kinds of terms."""
    path = f"/api/v1/namespaces/{client.ns}/pods"
    selector = {"matchExpressions": [{"key": "z", "operator": "Exists"}]}
    keys: tuple[dict[str, Any], ...] = (
        {"matchLabelKeys": ["a"]},
        {"mismatchLabelKeys": ["a", "n"]},
        {"matchLabelKeys": ["a"], "mismatchLabelKeys": ["c"]},
        {"matchLabelKeys": ["a", "a"]},
        {"matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]},
        {"matchLabelKeys": ["z"]},
        {"matchLabelKeys": []},
    )
    for kind in ("podAffinity", "podAntiAffinity"):
        for given in keys:
            for chosen in (selector, None):
                term = {"topologyKey": "t", **({"labelSelector": chosen} if chosen else {}), **given}
                for terms in (
                    {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
                    {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]},
                ):
                    body = {
                        "metadata": {"name": "p", "labels": {"a": "b", "c": "d"}},
                        "spec": {"affinity": {kind: terms}, "containers": [{"name": "c", "image": "i"}]},
                    }
                    client.post(path, body, DRY)


TIMES = tuple(
    f"2020-01-01T{clock}{zone}"
    for clock in (
        "00:00:00",
        "23:00:00",
        "24:00:00",
        "00:59:00",
        "00:60:00",
        "00:00:59",
        "00:00:60",
        "23:59:59",
        "00:00:00.5",
        "00:00:00.",
        "0:00:00",
        "00:00",
    )
    for zone in ("Z", "z", "+00:00", "-23:59", "+24:00", "+00:60", "", "+0000")
)
DAYS = (
    "0000-01-01",
    "2020-02-29",
    "2021-02-29",
    "1900-02-29",
    "2000-02-29",
    "2020-12-31",
    "2020-12-32",
    "2020-13-01",
    "2020-00-01",
    "2020-01-00",
    "2020-01-01",
    "2020-1-1",
    "20200101",
    "2020-04-31",
    "9999-12-31",
)
#: Schemas whose branches have a oneOf or anyOf of their own: which of them fits best depends on what these count.
INNER: tuple[dict[str, Any], ...] = (
    {"oneOf": [{"minLength": 1}, {"minLength": 9}]}, {"oneOf": [{"minLength": 1}, {"maxLength": 9}]}, {"anyOf": [{"minLength": 1}, {"maxLength": 9}]}, {"anyOf": [{"minLength": 9}, {"pattern": "^x"}]},
    {"oneOf": [{"minimum": 1}, {"minimum": 9}]}, {"oneOf": [{"format": "date"}, {"minLength": 9}]}, {"allOf": [{"minLength": 1}, {"maxLength": 9}]},
)  # fmt: skip


@scenario
def formats_and_nested_branches(client: Client) -> None:
    """Bounds of dates and times; and the best match of branches that have branches."""
    free = {"x-kubernetes-preserve-unknown-fields": True}
    pairs = [(one, other) for one in INNER for other in INNER if one is not other]
    fields: dict[str, Any] = {"time": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"}}
    for number, (one, other) in enumerate(pairs):
        branches = [{"properties": {"p": one, "q": {"maximum": 0}}}, {"properties": {"p": other, "q": {"minLength": 9}}}]
        fields[f"f{number}"] = {**free, ("anyOf", "oneOf")[number % 2]: branches}
    body = definition(client, {"type": "object", "properties": fields})
    with served(client, body) as path:
        for value in TIMES:
            client.post(path, make(body, time=value), DRY)
        for value in DAYS:
            client.post(path, make(body, day=value), DRY)
        for number in range(len(pairs)):
            for value in ({"p": "ab", "q": 1}, {"p": 5, "q": 1}, {"p": "ab", "q": "a"}):
                client.post(path, make(body, **{f"f{number}": value}), DRY)


@scenario
def subresources_of_several_versions(client: Client) -> None:
    """What the root of a version's schema may have, by the subresources of this version and of the others."""
    status, scale = {"status": {}}, {"scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}}
    roots: tuple[dict[str, Any], ...] = (
        {},
        {"maxProperties": 3},
        {"nullable": True},
        {"anyOf": [{"required": ["a"]}]},
        {"required": ["spec"], "title": "t"},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"additionalProperties": True},
        {"description": "d", "example": {}},
    )
    for one in ({}, status, scale, {**status, **scale}):
        for other in (None, {}, status, scale):
            for root in roots:
                body = definition(client)
                schema = {"type": "object", "properties": {"spec": {"type": "object"}}, **root}
                versions = [
                    {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
                    for name in ("v1", "v2")
                ]
                for version, subresources in zip(versions, (one, other), strict=True):
                    if subresources is not None:
                        version["subresources"] = subresources
                body["spec"]["versions"] = versions
                client.post(CRDS, body, DRY)


#: Codes of characters. Where an enum has strings, the integers of a value are compared as Go's string(i): the character of this code.
CHARACTERS = (0, 1, 97, 55295, 55296, 57343, 57344, 65533, 1114111, 1114112, -1, 2**31)
NAMES = (
    "a",
    "a-",
    "-a",
    "a.",
    ".a",
    "a.b",
    "a.b-",
    "a.-b",
    "A",
    "a" * 63,
    "a" * 64,
    ".".join(["a" * 63] * 4),
    ".".join(["a" * 63] * 3 + ["a" * 61]),
    "",
)


@scenario
def names_and_characters_in_schemas(client: Client) -> None:
    """Formats of names; integers that are looked for in an enum of texts."""
    free = {"x-kubernetes-preserve-unknown-fields": True}
    texts = {str(code): chr(code) if 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd" for code in CHARACTERS}
    fields: dict[str, Any] = {
        "short": {"type": "string", "format": "k8s-short-name"},
        "long": {"type": "string", "format": "k8s-long-name"},
        **{f"c{code}": {**free, "enum": [text]} for code, text in texts.items()},
    }
    body = definition(client, {"type": "object", "properties": fields})
    with served(client, body) as path:
        for name in NAMES:
            client.post(path, make(body, short=name), DRY)
            client.post(path, make(body, long=name), DRY)
        for code in texts:
            for value in CHARACTERS:
                client.post(path, make(body, **{f"c{code}": value}), DRY)


@scenario
def mutations_that_change_what_an_object_is(client: Client) -> None:
    """A JSON patch of a mutating policy that changes kind or version, or leaves an empty list, and what a later policy sees of it."""
    cases = {
        "kind": "[JSONPatch{op: 'replace', path: '/kind', value: 'Secret'}]",
        "version": "[JSONPatch{op: 'replace', path: '/apiVersion', value: 'v2'}]",
        "group": "[JSONPatch{op: 'replace', path: '/apiVersion', value: 'apps/v1'}, JSONPatch{op: 'replace', path: '/kind', value: 'Deployment'}]",
        "nokind": "[JSONPatch{op: 'remove', path: '/kind'}]",
        "noversion": "[JSONPatch{op: 'remove', path: '/apiVersion'}]",
        "other": "[JSONPatch{op: 'replace', path: '/apiVersion', value: 'policy/v1'}, JSONPatch{op: 'replace', path: '/kind', value: 'Eviction'}]",
        "whole": "[JSONPatch{op: 'replace', path: '', value: [1]}]",
        "scalar": "[JSONPatch{op: 'replace', path: '', value: 1}]",
        "strict": "[JSONPatch{op: 'add', path: '/nope', value: 1}, JSONPatch{op: 'add', path: '/metadata/nope', value: 1}]",
        "type": "[JSONPatch{op: 'replace', path: '/data', value: 1}]",
        "kindtype": "[JSONPatch{op: 'replace', path: '/kind', value: 1}]",
    }
    specs = {name: {"mutations": [patched(expression)]} for name, expression in cases.items()}
    with policed_each(client, specs, "Mutating"):
        for name in cases:
            client.post(f"/api/v1/namespaces/{client.ns}/configmaps", {"metadata": {"name": name}, "data": {"a": "1"}}, DRY)
    ranges = {
        "empty": "[JSONPatch{op: 'replace', path: '/spec/limits', value: []}]",
        "absent": "[JSONPatch{op: 'remove', path: '/spec/limits'}]",
        "null": "[JSONPatch{op: 'replace', path: '/spec/limits', value: null}]",
    }
    seen = "'limits' in object.spec ? (object.spec.limits == null ? 'null' : string(size(object.spec.limits))) : 'absent'"
    specs = {name: {"mutations": [patched(expression)]} for name, expression in ranges.items()}
    told = {name: {"validations": [{"expression": "false", "messageExpression": seen}]} for name in ranges}
    with (
        policed_each(client, specs, "Mutating", resources="limitranges"),
        policed_each(client, told, "Validating", resources="limitranges"),
    ):
        for name in ranges:
            client.post(
                f"/api/v1/namespaces/{client.ns}/limitranges",
                {"metadata": {"name": name}, "spec": {"limits": [{"type": "Pod"}]}},
                DRY,
            )


@scenario
def webhooks_for_what_no_webhook_sees(client: Client) -> None:
    """Rules that name reviews are warned of (1.37); an attestation that is needed and missing is told as null."""
    rules: tuple[tuple[list[str], list[str]], ...] = (
        (["authentication.k8s.io"], ["tokenreviews"]),
        (
            ["authorization.k8s.io", "authentication.k8s.io"],
            ["subjectaccessreviews", "selfsubjectreviews", "pods", "subjectaccessreviews"],
        ),
        (["*"], ["tokenreviews"]),
        (["authentication.k8s.io"], ["*"]),
        (["authorization.k8s.io"], ["selfsubjectaccessreviews/*", "localsubjectaccessreviews/status"]),
    )
    for plural in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        path = f"{ADMISSION}/{plural}"
        hooks = [
            {
                "name": f"a.b.c{number}", "clientConfig": {"url": "https://a"}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "rules": [{"apiGroups": groups, "apiVersions": ["v1"], "operations": ["CREATE"], "resources": resources}] * 2,
            }
            for number, (groups, resources) in enumerate(rules)
        ]  # fmt: skip
        for name in (client.name("x"), "a.static.k8s.io"):
            client.post(path, {"metadata": {"name": name}, "webhooks": hooks}, DRY)
        client.post(path, {"metadata": {"name": client.name("x")}, "webhooks": hooks[2:3]})
        client.patch(f"{path}/{client.name('x')}", {"webhooks": hooks[:1]}, MERGE, DRY)
        client.patch(f"{path}/{client.name('x')}", {"metadata": {"labels": {"a": "b"}}}, MERGE, DRY)
        client.delete(f"{path}/{client.name('x')}")
    accounts = f"/api/v1/namespaces/{client.ns}/serviceaccounts"
    client.post(accounts, {"metadata": {"name": "s"}})
    reference = {"kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1", "name": "n"}
    for attestations in (None, {}, {"a": []}):
        client.post(
            f"{accounts}/s/token", {"spec": {"boundObjectRef": reference, "audiences": ["a"], "attestations": attestations}}, DRY
        )
