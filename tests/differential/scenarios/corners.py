"""Where two rules meet: modes of field validation with every type of patch, values of any form, subresources, old field labels."""

from __future__ import annotations

from typing import Any

from tests.differential import pacing
from tests.differential.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, Client
from tests.differential.definitions import ANY, CRDS, DRY, definition, make, served
from tests.differential.registry import scenario

MODES = (None, "Ignore", "Warn", "Strict")
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def at(c: Client, plural: str, *rest: str) -> str:
    root = "/apis/apps/v1" if plural == "controllerrevisions" else "/api/v1"
    return "/".join([f"{root}/namespaces/{c.ns}", plural, *rest])


def mode(value: str | None) -> dict[str, str] | None:
    return None if value is None else {"fieldValidation": value}


@scenario
def what_is_no_json_in_each_mode(c: Client) -> None:
    """Without strict decoding a merge patch library speaks, which has one message for everything."""
    c.post(at(c, "configmaps"), {"metadata": {"name": "m"}, "data": {"k": "v"}})
    for text in ("x: y", "{", '{"data":{}}}', "", " ", '"x"', "[1]", '{"data":tru}', "\x00"):
        for value in MODES:
            for ctype in (MERGE, JSON_PATCH, STRATEGIC):
                c.patch(at(c, "configmaps", "m"), text, ctype, mode(value))


@scenario
def strict_errors_of_a_json_patch_have_the_order_of_the_document(c: Client) -> None:
    """Duplicates and unknown members of operations, but not what is within unknown ones; then those of the result."""
    c.post(at(c, "configmaps"), {"metadata": {"name": "m"}, "data": {"k": "v"}})
    for text in (
        '[{"op":"add","path":"/data/q","x":1,"x":2,"value":"a","value":"b","y":{"a":1,"a":2}},{"path":"/bogus","op":"add","op":"add"}]',
        '[{"op":"add","path":"/data/q","value":{"b":1,"b":2},"x":1},{"op":"add","op":"replace","path":"/kind","path":"/data/q","value":"b"}]',
    ):
        for value in MODES:
            c.patch(at(c, "configmaps", "m"), text, JSON_PATCH, mode(value))


@scenario
def data_of_a_revision_is_bytes(c: Client) -> None:
    """Spaces and forms of numbers are kept and compared, and every patch but the one by hand writes them anew."""
    spaced = '{"metadata":{"name":"%s"},"revision":%d,"data":{ "b" : 1.0, "a": [1 , 1e2,"\\u0041 <"]} }'
    compact = '{"metadata":{"name":"%s"},"revision":%d,"data":{"b":1.0,"a":[1,1e2,"\\u0041 <"]}}'
    plain = '{"metadata":{"name":"%s"},"revision":%d,"data":{"a":1,"b":{}}}'
    unsorted = '{"metadata":{"name":"%s"},"revision":%d,"data":{"b":{},"a":1}}'
    for name, text in (("spaced", spaced), ("compact", compact), ("plain", plain), ("unsorted", unsorted)):
        path = at(c, "controllerrevisions", name)
        c.post(at(c, "controllerrevisions"), text % (name, 1))
        c.get(path)
        c.get(path, {"pretty": "true"})
        c.get(path, headers={"Accept": "application/yaml"})
        for ctype in (MERGE, STRATEGIC):
            c.patch(path, {"metadata": {"labels": {"by": ctype[12:17]}}}, ctype)
        c.patch(path, [{"op": "replace", "path": "/revision", "value": 2}], JSON_PATCH)
        applied: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 3}
        c.patch(path, applied, APPLY, {"fieldManager": "m", "force": "true"})
        for other in (spaced, compact):
            c.put(path, other % (name, 4))
        c.get(path)


@scenario
def parameters_of_devices_are_bytes(c: Client) -> None:
    """A patch that writes them without spaces is a change of the spec."""
    path, name = "/apis/resource.k8s.io/v1/deviceclasses", c.name("class")
    text = '{"metadata":{"name":"%s"},"spec":{"config":[{"opaque":{"driver":"d.e","parameters":{"a": %s}}}]}}'
    c.post(path, text % (name, "1.50"))
    c.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    c.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "c"}}}, MERGE)
    c.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "d"}}}, STRATEGIC)
    c.put(f"{path}/{name}", text % (name, "2"))
    c.delete(f"{path}/{name}")


@scenario
def labels_come_back_after_a_write_of_the_status(c: Client) -> None:
    """Defaults are set when an object is read, too: a controller never lacks the labels of its template."""
    c.post(at(c, "replicationcontrollers"), {"metadata": {"name": "r"}, "spec": {"replicas": 1, "template": TEMPLATE}})
    for body in ({"metadata": {"name": "r"}}, {"metadata": {"name": "r", "labels": {"x": "y"}}}, {"metadata": {"name": "r"}}):
        c.put(at(c, "replicationcontrollers", "r", "status"), body)
    c.get(at(c, "replicationcontrollers", "r"))


@scenario
def the_uid_of_a_policy_in_a_write_of_its_status(c: Client) -> None:
    """The status of a policy is validated without its metadata, which is validated once."""
    path, name = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", c.name("p")
    rule = {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nones"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
    c.post(path, {"metadata": {"name": name}, "spec": spec})
    for rest in ("", "/status"):
        c.patch(f"{path}/{name}{rest}", {"metadata": {"uid": "x"}}, MERGE)
        c.patch(f"{path}/{name}{rest}", {"metadata": {"generation": 7, "labels": {"a": "!"}}}, MERGE)
    c.delete(f"{path}/{name}")


@scenario
def field_labels_of_old_clients(c: Client) -> None:
    """spec.host is spec.nodeName."""
    for name, node in (("a", "n1"), ("b", "n2")):
        body = {"metadata": {"name": name}, "spec": {**TEMPLATE["spec"], "nodeName": node}}
        c.post(at(c, "pods"), body, silent=True)
    for selector in ("spec.host=n1", "spec.host!=n1", "spec.host=n1,spec.nodeName=n2", "spec.hostname=n1"):
        c.get(at(c, "pods"), {"fieldSelector": selector})
        c.watch(at(c, "pods"), {"fieldSelector": selector, "timeoutSeconds": "1"}, quiet=0.2)


@scenario
def managers_of_a_version_that_is_gone(c: Client) -> None:
    """managedFields name a version that the definition no longer has: applies fail, other writes leave them as they are."""
    body = definition(c, ANY)
    (one,) = body["spec"]["versions"]
    body["spec"]["versions"].append({**one, "name": "v2", "storage": False})
    cases = ("applied", "forced", "put", "merged", "json", "reset", "status", "kept")
    with served(c, body) as path:
        for name in cases:
            c.patch(f"{path}/{name}", make(body, name, spec={"a": "1"}), APPLY, {"fieldManager": "alpha"}, silent=True)
            c.patch(f"{path}/{name}", {"spec": {"b": "1"}}, MERGE, {"fieldManager": "beta"}, silent=True)
        move_storage(c, body, path, cases)
        path = path.replace("/v1/", "/v2/")

        def apply(name: str, spec: dict[str, str], **query: str) -> None:
            c.patch(f"{path}/{name}", make(body, name, "v2", spec=spec), APPLY, {"fieldManager": "alpha", **query})

        apply("applied", {"a": "1"})
        apply("applied", {"a": "2"}, **DRY)
        apply("forced", {"b": "2"}, fieldManager="new", force="true")
        c.get(f"{path}/forced")
        c.put(f"{path}/put", make(body, "put", "v2", spec={"a": "9"}))
        apply("put", {"a": "9"})
        c.patch(f"{path}/merged", {"spec": {"c": "3"}}, MERGE, {"fieldManager": "gamma"})
        c.patch(f"{path}/json", [{"op": "remove", "path": "/spec/b"}], JSON_PATCH)
        c.patch(f"{path}/reset", {"metadata": {"managedFields": [{}]}}, MERGE)
        apply("reset", {"a": "2"})
        apply("reset", {"a": "2"}, force="true")
        c.patch(f"{path}/status", {"status": {"ready": True}}, MERGE)
        c.patch(f"{path}/kept", {"metadata": {"finalizers": ["a.example.com/b"]}}, MERGE)
        c.delete(f"{path}/kept")
        c.patch(f"{path}/kept", {"metadata": {"finalizers": None}}, MERGE)


def move_storage(c: Client, body: dict[str, Any], path: str, names: tuple[str, ...]) -> None:
    """Stores objects in v2, the second version of a definition, and removes v1 from it."""
    here, first, second = f"{CRDS}/{body['metadata']['name']}", *body["spec"]["versions"]
    path2 = path.replace("/v1/", "/v2/")
    c.patch(here, {"spec": {"versions": [{**first, "storage": False}, {**second, "storage": True}]}}, MERGE, silent=True)
    pacing.sleep(2.0)
    for name in names:
        c.put(f"{path2}/{name}", c.get(f"{path2}/{name}", silent=True).body, silent=True)
    c.patch(f"{here}/status", {"status": {"storedVersions": ["v2"]}}, MERGE, silent=True)
    c.patch(here, {"spec": {"versions": [{**second, "storage": True}]}}, MERGE, silent=True)
    pacing.until(lambda: c.get(path, silent=True).status == 404)
    pacing.sleep(1.0)
