"""Which of two rules comes first, and what a rule sees: order of checks, reads after admission, nothing behind a pointer."""

from __future__ import annotations

from typing import Any

from tests.differential.client import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Client
from tests.differential.definitions import CRDS, definition, make, obj, served, where
from tests.differential.pacing import until
from tests.differential.registry import scenario

STRICT = {"fieldValidation": "Strict"}
DRY = {"dryRun": "All"}


def core(c: Client, plural: str, *rest: str) -> str:
    return "/".join([f"/api/v1/namespaces/{c.ns}", plural, *rest])


def grouped(c: Client, group: str, plural: str, *rest: str) -> str:
    return "/".join([f"/apis/{group}/namespaces/{c.ns}", plural, *rest])


@scenario
def a_type_that_is_unknown_comes_before_the_options_of_a_post(c: Client) -> None:
    """415 before 400 and 422 of the options, but only for POST; 406 before both."""
    c.post(core(c, "configmaps"), {"metadata": {"name": "m"}})
    for query in ({"dryRun": "x"}, {"fieldManager": "x" * 129}, {"fieldValidation": "x"}, None):
        for accept in (JSON, "text/plain"):
            headers = {"Accept": accept}
            c.post(core(c, "configmaps"), "x", query, ctype="text/plain", headers=headers)
            c.post(core(c, "pods", "p", "eviction"), "x", query, ctype="text/plain", headers=headers)
            c.put(core(c, "configmaps", "m"), "x", query, ctype="text/plain", headers=headers)
            c.patch(core(c, "configmaps", "m"), "x", "text/plain", query, headers=headers)
            c.delete(core(c, "configmaps", "n"), "x", query, ctype="text/plain", headers=headers)


@scenario
def pages_for_operators(c: Client) -> None:
    """statusz and flagz refuse what they do not have in JSON or YAML, and warn of their old version."""
    for path, kind in (("/statusz", "Statusz"), ("/flagz", "Flagz")):
        for media in (
            "application/vnd.kubernetes.protobuf",
            "application/cbor",
            "application/yaml",
            JSON,
            "image/png",
            f"{JSON};as=Other;v=v1beta1;g=config.k8s.io",
            f"{JSON};as={kind};v=v1;g=config.k8s.io",
        ):
            c.get(path, headers={"Accept": media})
        for version in ("v1alpha1", "v1beta1"):
            c.get(path, headers={"Accept": f"{JSON};as={kind};v={version};g=config.k8s.io"})
            told = c.transcript[-1]["body"]
            told.clear()  # the server's own times and flags


@scenario
def a_self_link_lives_as_long_as_a_dry_run(c: Client) -> None:
    """The storage takes it away; a POST drops it before."""
    linked = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "selfLink": "x"}, "data": {"a": "b"}}
    path = core(c, "configmaps", "m")
    for query in (DRY, {}):
        c.post(core(c, "configmaps"), {**linked, "metadata": {"name": f"n{len(query)}", "selfLink": "x"}}, query)
        c.patch(path, linked, APPLY, {**query, "fieldManager": "a"})
        c.get(path)
    for query in (DRY, {}):
        c.put(path, linked, query)
        c.patch(path, {"metadata": {"selfLink": "y"}}, MERGE, query)
        c.patch(path, [{"op": "add", "path": "/metadata/selfLink", "value": "z"}], JSON_PATCH, query)
        c.patch(path, {**linked, "data": {"a": "c"}}, APPLY, {**query, "fieldManager": "a", "force": "true"})


@scenario
def managed_fields_in_a_configuration(c: Client) -> None:
    """They must be absent, unless they cannot be read as a list of entries: then the type speaks."""
    for sent in (
        None, [], [{}], {}, "x", 5, True, [1], [None], [{}, 1], [{"manager": 1}], [{"manager": None}], [{"x": 1}], [{"operation": "x"}],
        [{"time": "x"}], [{"time": 5}], [{"time": None}], [{"time": "2030-01-01T00:00:00Z"}], [{"fieldsV1": 1}], [{"fieldsV1": "x"}],
        [{"fieldsV1": {"f:a": 1}}], [{"subresource": 0, "manager": "m"}],
    ):  # fmt: skip
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "managedFields": sent}, "data": {"a": "b"}}
        c.patch(core(c, "configmaps", "m"), body, APPLY, {"fieldManager": "a"})


@scenario
def managed_fields_are_reset_in_every_version(c: Client) -> None:
    """A PUT in a version other than that of the storage may set the managedFields, too."""
    for version in ("v1", "v2"):
        path = grouped(c, f"autoscaling/{version}", "horizontalpodautoscalers", version)
        target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
        body = {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler", "metadata": {"name": version}}
        for entries in ([{}], [], None):
            made = c.patch(path, {**body, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}, APPLY, {"fieldManager": "a"})
            others = [{**entry, "manager": "b"} for entry in made.get("metadata", "managedFields", default=[])]
            for sent in (others, entries):
                c.put(path, {**made.json, "metadata": {**made.json["metadata"], "resourceVersion": "", "managedFields": sent}})
            c.delete(path)


@scenario
def the_first_option_of_a_log_that_is_wrong(c: Client) -> None:
    """Options are read in the order of PodLogOptions."""
    c.post(core(c, "pods"), {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    wrong = {"limitBytes": "l", "tailLines": "t", "sinceTime": "s", "sinceSeconds": "n"}
    while wrong:
        c.get(core(c, "pods", "p", "log"), wrong, headers={"Accept": "*/*"})
        wrong.popitem()


@scenario
def the_version_in_a_body_is_named_in_its_errors(c: Client) -> None:
    """Also where the endpoint accepts, or could convert, another one."""
    for version in ("v1", "v1beta1", "v1beta2"):
        for more in ({"deleteOptions": {"gracePeriodSeconds": "x"}}, {"x": 1}, {"metadata": {"name": 1}}):
            body = {"apiVersion": f"policy/{version}", "kind": "Eviction", "metadata": {"name": "p"}, **more}
            c.post(core(c, "pods", "p", "eviction"), body, STRICT)
            c.post(core(c, "pods", "p", "eviction"), body)
    for version in ("v1", "v2", "v3"):
        for more in ({"x": 1}, {"spec": 1}):
            body = {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, **more}
            c.post(grouped(c, "autoscaling/v1", "horizontalpodautoscalers"), body, STRICT)
    for version in ("v1", "events.k8s.io/v1"):
        for path in (core(c, "events"), grouped(c, "events.k8s.io/v1", "events")):
            for more in ({"x": 1}, {"count": 1}, {"reason": 1}):
                body = {"apiVersion": version, "kind": "Event", "metadata": {"name": "e"}, **more}
                c.post(path, body, STRICT)
                c.post(path, body)


@scenario
def a_revision_that_was_sent_with_spaces(c: Client) -> None:
    """An apply that changes no value changes no text; a strategic merge looks into the data as into a struct without fields."""
    path = grouped(c, "apps/v1", "controllerrevisions")
    body: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "r"}, "revision": 1}
    c.post(path, {**body, "data": {"a": 1, "l": [{"name": "x"}], "o": {"p": "q"}}})
    for data in ({"a": 1, "l": [{"name": "x"}], "o": {"p": "q"}}, {"a": 2}):
        c.patch(f"{path}/r", {**body, "data": data}, APPLY, {"fieldManager": "a"})
        c.patch(f"{path}/r", {**body, "data": data, "revision": 2}, APPLY, {"fieldManager": "b", "force": "true"})
    for data in (
        {}, {"a": 2}, {"b": None}, {"a": None}, {"o": {}}, {"l": []}, None, "x", {"$patch": "replace", "z": 1}, {"$patch": "delete"},
        {"$retainKeys": ["a"]}, {"$setElementOrder/l": []}, {"$deleteFromPrimitiveList/l": [1]},
    ):  # fmt: skip
        c.patch(f"{path}/r", {"data": data}, STRATEGIC)


@scenario
def an_empty_struct_is_not_nothing(c: Client) -> None:
    """What is immutable may not get an empty struct where there was none, but an empty list or map."""
    path, name = "/apis/storage.k8s.io/v1/volumeattachments", c.name("a")
    inline = {"csi": {"driver": "d.e", "volumeHandle": "h"}, "accessModes": ["ReadWriteOnce"]}
    c.post(
        path, {"metadata": {"name": name}, "spec": {"attacher": "a.b", "nodeName": "n", "source": {"inlineVolumeSpec": inline}}}
    )
    for more in (
        {"nodeStageSecretRef": {}}, {"controllerPublishSecretRef": {}}, {"volumeAttributes": {}}, {"readOnly": False}, {"fsType": ""},
    ):  # fmt: skip
        c.patch(f"{path}/{name}", {"spec": {"source": {"inlineVolumeSpec": {"csi": more}}}}, MERGE)
    for more in ({"claimRef": {}}, {"nodeAffinity": {}}, {"capacity": {}}, {"mountOptions": []}):
        c.patch(f"{path}/{name}", {"spec": {"source": {"inlineVolumeSpec": more}}}, MERGE)
    c.delete(f"{path}/{name}")

    path = "/api/v1/persistentvolumes"
    spec = {**inline, "capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{}]}}}
    c.post(path, {"metadata": {"name": name}, "spec": spec})
    for more in ({"csi": {"nodeStageSecretRef": {}}}, {"csi": {"volumeAttributes": {}}}, {"nodeAffinity": {"required": None}}):
        c.patch(f"{path}/{name}", {"spec": more}, MERGE)
    c.delete(f"{path}/{name}")

    path = grouped(c, "discovery.k8s.io/v1", "endpointslices")
    c.post(path, {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"]}]})
    for more in ({"conditions": {}}, {"hints": {}}, {"hints": {"forZones": []}}, {"targetRef": {}}, {"deprecatedTopology": {}}):
        c.patch(f"{path}/s", {"endpoints": [{"addresses": ["10.1.1.1"], **more}]}, MERGE)


@scenario
def parameters_with_spaces_are_another_spec(c: Client) -> None:
    """A patch of a claim writes the parameters of its devices without spaces, which the spec does not allow."""
    opaque = '{"driver":"d.e","parameters":{"a": 1,"n": null,"e": {}}}'
    devices = f'{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"d"}}}}],"config":[{{"opaque":{opaque}}}]}}'
    for plural, spec in (
        ("resourceclaims", f'{{"devices":{devices}}}'),
        ("resourceclaimtemplates", f'{{"spec":{{"devices":{devices}}}}}'),
    ):
        path = grouped(c, "resource.k8s.io/v1", plural)
        c.post(path, f'{{"metadata":{{"name":"c"}},"spec":{spec}}}')
        for ctype in (MERGE, STRATEGIC):
            c.patch(f"{path}/c", {"metadata": {"labels": {"a": "b"}}}, ctype)
        c.put(f"{path}/c", f'{{"metadata":{{"name":"c","labels":{{"a":"b"}}}},"spec":{spec}}}')
        c.put(f"{path}/c", f'{{"metadata":{{"name":"c"}},"spec":{spec.replace("d.e", "f.g")}}}')


@scenario
def a_prefix_of_names_beside_a_name(c: Client) -> None:
    """No kind accepts a generateName that cannot be part of a path."""
    spec = {"signerName": "example.com/s", "usages": ["client auth"], "request": "eA=="}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    for prefix in ("a/b", "%", "A_b", ".."):
        meta = {"name": "n", "generateName": prefix}
        c.post("/apis/certificates.k8s.io/v1/certificatesigningrequests", {"metadata": meta, "spec": spec})
        replicas = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        c.post(grouped(c, "apps/v1", "replicasets"), {"metadata": meta, "spec": replicas}, DRY)
        c.post(core(c, "configmaps"), {"metadata": meta}, DRY)
        c.post(grouped(c, "resource.k8s.io/v1", "resourceclaims"), {"metadata": meta, "spec": {}}, DRY)


@scenario
def requests_of_a_pod_whose_containers_get_theirs_from_limits(c: Client) -> None:
    """The sums are taken again when the pod has been stored, or would have been."""
    limits = {"type": "Container", "default": {"memory": "2Gi"}, "defaultRequest": {"memory": "1Gi", "cpu": "10m"}}
    c.post(core(c, "limitranges"), {"metadata": {"name": "l"}, "spec": {"limits": [limits]}})
    whole = (
        {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
        {"limits": {"memory": "3Gi"}},
        {"requests": {"memory": "3Gi"}},
        {},
    )
    for number, resources in enumerate(whole):
        spec = {"resources": resources, "containers": [{"name": name, "image": "i"} for name in "cd"]}
        for query in (DRY, None):
            c.post(core(c, "pods"), {"metadata": {"name": f"p{number}"}, "spec": spec}, query)
        c.get(core(c, "pods", f"p{number}"))
        c.patch(core(c, "pods", f"p{number}"), {"metadata": {"labels": {"a": "b"}}}, MERGE)


@scenario
def a_deprecated_version_is_told_before_anything_else(c: Client) -> None:
    """Also for a subresource or a verb that it does not have."""
    body = definition(c, version={"deprecated": True})
    with served(c, body) as path:
        for method in ("GET", "PUT", "PATCH", "POST", "DELETE"):
            for place in ("/one", "/one/status", "/one/scale", "/one/other"):
                c.request(method, path + place, {} if method != "GET" else None, ctype=MERGE if method == "PATCH" else None)


@scenario
def unknown_fields_come_in_the_order_of_the_steps(c: Client) -> None:
    """Those of the metadata, then those that the schema lacks, then those in the metadata of embedded objects."""
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True}
    body = definition(c, obj({"spec": obj({"b": embedded, "a": obj({"z": embedded}), "m": obj()})}))
    thing = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "x": 1}, "y": 1}
    spec = {"a": {"q": 1, "z": thing}, "b": thing, "m": {"k": 1}, "u": 1}
    with served(c, body) as path:
        for name, query in (("one", STRICT), ("one", {"fieldValidation": "Warn"}), ("one", STRICT)):
            sent = make(body, name, spec=spec, extra=1, status={})
            sent["metadata"] = {"name": name, "unknown": 1, "labels": {}}
            c.post(path, sent, query)
            c.patch(f"{path}/one", {"spec": spec, "extra": 1, "metadata": {"unknown": 1}}, MERGE, query)
            c.patch(f"{path}/one", sent, APPLY, {**query, "fieldManager": "a"})


@scenario
def replicas_that_are_no_number(c: Client) -> None:
    """A scale that cannot be read is an error without a reason, for every verb."""
    paths = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}
    body = definition(c, version={"subresources": {"status": {}, "scale": paths}})
    cases: dict[str, tuple[Any, Any]] = {
        "object": ({"a": {}}, {}),
        "fraction": ({"a": 1.5}, {}),
        "absent": ({}, {}),
        "nothing": ({"a": None}, {"replicas": None, "selector": None}),
        "status": ({"a": 1}, {"replicas": "x"}),
        "selector": ({"a": 1}, {"selector": 5}),
    }
    with served(c, body) as path:
        for name, (spec, status) in cases.items():
            c.post(path, make(body, name, spec=spec))
            c.patch(f"{path}/{name}/status", {"status": status}, MERGE)
            scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": 3}}
            c.get(f"{path}/{name}/scale")
            c.put(f"{path}/{name}/scale", scale)
            c.patch(f"{path}/{name}/scale", {"spec": {"replicas": 4}}, MERGE)
            c.patch(f"{path}/{name}/scale", scale, APPLY, {"fieldManager": "a"})


@scenario
def a_scale_of_an_object_without_managers(c: Client) -> None:
    """Nobody owns anything afterwards, either: there is no empty list."""
    paths = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.replicas"}
    body = definition(c, obj({"spec": obj({"a": {"type": "integer"}})}), {"subresources": {"scale": paths}})
    with served(c, body) as path:
        made = c.post(path, make(body, spec={"a": 1})).json
        c.put(f"{path}/one", {**made, "metadata": {**made["metadata"], "managedFields": [{}]}})
        for replicas in (None, 4):
            c.patch(f"{path}/one/scale", {"spec": {"replicas": replicas}}, MERGE)
            c.get(f"{path}/one")


@scenario
def defaults_of_limits_that_are_empty(c: Client) -> None:
    """Whoever changes the labels of a limit range does not become an owner of limits without defaults."""
    limits = [{"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}}, {"type": "Pod", "max": {"cpu": "1"}}]
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": limits}}
    path = core(c, "limitranges", "l")
    c.patch(path, body, APPLY, {"fieldManager": "a"})
    c.patch(path, {"metadata": {"labels": {"a": "b"}}}, MERGE, {"fieldManager": "b"})
    c.patch(path, [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}], JSON_PATCH, {"fieldManager": "c"})
    c.put(path, {**body, "spec": {"limits": [{**limits[0], "default": {}}, limits[1]]}}, {"fieldManager": "d"})
    c.patch(path, body, APPLY, {"fieldManager": "e"})


@scenario
def odd_characters_in_messages(c: Client) -> None:
    """Go's %q for what is a string, JSON for what is a type of its own; YAML that cannot be written tells so with the code of the error."""
    bindings = grouped(c, "rbac.authorization.k8s.io/v1", "rolebindings")
    container = {"name": "c", "image": "i"}
    c.post(core(c, "pods"), {"metadata": {"name": "p"}, "spec": {"containers": [container]}})
    c.post(core(c, "configmaps"), {"metadata": {"name": "m"}})
    for odd in ("\u2028", "\ufeff", "\u00a0", "\x00", "<a>", "\ud800", "é", 'a"b', "\x7f"):
        subjects = [{"kind": kind, "name": "n", "apiGroup": odd, "namespace": "n"} for kind in (odd, "User", "ServiceAccount")]
        c.post(
            bindings, {"metadata": {"name": "b"}, "roleRef": {"kind": odd, "apiGroup": odd, "name": "r"}, "subjects": subjects}
        )
        c.patch(core(c, "pods", "p", "status"), {"status": {"qosClass": odd}}, MERGE)
        c.patch(core(c, "pods", "p"), {"metadata": {"uid": odd}}, MERGE)
        for headers in ({"Accept": JSON}, {"Accept": "application/yaml"}):
            c.patch(core(c, "configmaps", "m"), {"data": {"k": odd, "l": {}}}, MERGE, STRICT, headers=headers)
        spec = {"restartPolicy": odd, "dnsPolicy": odd, "containers": [{**container, "imagePullPolicy": odd}]}
        c.post(core(c, "pods"), {"metadata": {"name": "q"}, "spec": spec})
        c.patch(core(c, "status"), {"status": {"phase": odd}}, MERGE)


@scenario
def constants_of_the_wrong_type(c: Client) -> None:
    """The type of an expression is checked before its constants are computed, and a type that is unknown before its fields."""
    root, name = "/apis/admissionregistration.k8s.io/v1", c.name("a")
    matches = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}]}
    for source in ("int('x')", "1/0", "int('x') == 1", "[1][5]", "'a'.matches('(')", "string(int('x'))", "None{a: none}"):
        spec = {
            "matchConstraints": matches,
            "matchConditions": [{"name": "a", "expression": source}],
            "variables": [{"name": "v", "expression": source}],
            "auditAnnotations": [{"key": "a", "valueExpression": source}],
            "validations": [{"expression": source, "messageExpression": source}],
        }
        c.post(f"{root}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec}, DRY)
        selectors = [{"cel": {"expression": source}}]
        c.post("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": name}, "spec": {"selectors": selectors}}, DRY)
        patches = {"patchType": "JSONPatch", "jsonPatch": {"expression": source}}
        spec = {"reinvocationPolicy": "Never", "matchConstraints": matches, "mutations": [patches]}
        c.post(f"{root}/mutatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec}, DRY)


@scenario
def managers_of_a_version_that_the_definition_has_lost(c: Client) -> None:
    """An apply cannot convert to it; every other write drops all managers."""
    body = definition(c)
    (first,) = body["spec"]["versions"]
    both = [{**first, "storage": True}, {**first, "name": "v2", "storage": False}]
    body["spec"]["versions"] = both
    with served(c, body):
        path, older = where(c, body, "v2"), where(c, body, "v1")
        name = f"{CRDS}/{body['metadata']['name']}"
        applied = {"apiVersion": f"{body['spec']['group']}/v1", "kind": "Widget", "spec": {"x": 1}}
        for one in "abcde":
            c.patch(f"{older}/{one}", {**applied, "metadata": {"name": one}}, APPLY, {"fieldManager": "first"})
        c.patch(name, {"spec": {"versions": [{**both[0], "storage": False}, {**both[1], "storage": True}]}}, MERGE)
        until(lambda: c.get(f"{path}/a", silent=True).status == 200)
        for one in "abcde":
            c.put(f"{path}/{one}", c.get(f"{path}/{one}", silent=True).body, {"fieldManager": "migrator"})
        c.patch(f"{name}/status", {"status": {"storedVersions": ["v2"]}}, MERGE)
        c.patch(name, {"spec": {"versions": [{**both[1], "storage": True}]}}, MERGE)
        until(lambda: c.get(f"{older}/a", silent=True).status == 404)
        c.get(f"{path}/a")
        applied["apiVersion"] = f"{body['spec']['group']}/v2"
        for manager in ("first", "second"):
            for query in ({}, {"force": "true"}, DRY):
                c.patch(f"{path}/a", {**applied, "metadata": {"name": "a"}}, APPLY, {"fieldManager": manager, **query})
        c.patch(f"{path}/b", {"spec": {"y": 1}}, MERGE, {"fieldManager": "merging"})
        c.patch(f"{path}/b", {"spec": {"y": 2}}, MERGE, {"fieldManager": "merging"})
        c.patch(f"{path}/b", {**applied, "metadata": {"name": "b"}}, APPLY, {"fieldManager": "first"})
        c.patch(f"{path}/c", [{"op": "add", "path": "/spec/y", "value": 1}], JSON_PATCH, {"fieldManager": "patching"})
        c.put(f"{path}/d", {**c.get(f"{path}/d", silent=True).body, "spec": {"y": 1}}, {"fieldManager": "putting"})
        c.put(f"{path}/e", c.get(f"{path}/e", silent=True).body, {"fieldManager": "putting"})


@scenario
def managers_of_versions_that_no_definition_has(c: Client) -> None:
    """Of the group and of another one, set by hand."""
    body = definition(c)
    with served(c, body):
        path, group = where(c, body), body["spec"]["group"]
        for number, version in enumerate((f"{group}/v9", "other.example.com/v1", "v1", "a/b/c", group, f"{group}/v1")):
            by_hand = {
                "manager": "hand",
                "operation": "Update",
                "apiVersion": version,
                "time": "2020-01-01T00:00:00Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:x": {}}},
            }
            widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "spec": {"x": 1}}
            name = f"w{number}"
            c.post(path, {**widget, "metadata": {"name": name, "managedFields": [by_hand]}})
            c.put(f"{path}/{name}", with_managers(c, f"{path}/{name}", by_hand))
            c.put(f"{path}/{name}", {**with_managers(c, f"{path}/{name}", by_hand), "spec": {"x": 2}})
            c.patch(f"{path}/{name}", {**widget, "metadata": {"name": name}}, APPLY, {"fieldManager": "applying"})


def with_managers(c: Client, path: str, *managers: dict[str, Any]) -> dict[str, Any]:
    """The object at a path, with these managedFields."""
    body: dict[str, Any] = c.get(path, silent=True).body
    return {**body, "metadata": {**body["metadata"], "managedFields": list(managers)}}
