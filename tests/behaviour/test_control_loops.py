"""The control loops of the API server: APIServices of definitions, and conditions about references.

A real server writes these after a moment, so the tests watch until it has.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import pytest

APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEMAS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEVELS = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
MERGE = "application/merge-patch+json"
MANAGED = "kube-aggregator.kubernetes.io/automanaged"

Object = dict[str, Any]


def watched(api: Any, path: str, name: str, is_it: Callable[[str, Object], bool], since: Object | None = None) -> Object:
    """The first state of an object (event type, object) that fulfils a condition: from the present one on, or after an earlier one."""
    start = {"resourceVersion": since["metadata"]["resourceVersion"]} if since else {}
    query = urllib.parse.urlencode({"watch": "1", "fieldSelector": f"metadata.name={name}", **start})
    connection = api.connect(timeout=60)
    try:
        connection.request("GET", f"{path}?{query}", headers=api.headers())
        answer = connection.getresponse()
        while line := answer.readline():
            event = json.loads(line)
            if is_it(event["type"], event["object"]):
                return event["object"]
        raise AssertionError("the watch has ended")
    finally:
        connection.close()


def condition(obj: Object) -> tuple[str, str, str]:
    [found] = (obj.get("status") or {}).get("conditions") or [{"status": "", "reason": "", "message": ""}]
    return found["status"], found["reason"], found["message"]


@pytest.fixture
def group(api: Any) -> Iterator[str]:
    """The group of a definition with two versions, the second not served."""
    group = f"{api.suffix}.upkeep.example.com"
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": schema},
        {"name": "v1beta1", "served": False, "storage": False, "schema": schema},
    ]
    body = {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": versions},
    }
    assert api.post(DEFINITIONS, body).status == 201
    yield group
    api.delete(f"{DEFINITIONS}/widgets.{group}")


def test_served_crd_versions_get_an_apiservice(api: Any, group: str) -> None:
    found = watched(api, APISERVICES, f"v1.{group}", lambda _, obj: True)
    assert found["metadata"]["labels"] == {MANAGED: "true"}
    assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["kube-apiserver"]
    assert found["spec"] == {"group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100}
    assert condition(found) == ("True", "Local", "Local APIServices are always available")
    assert api.get(f"{APISERVICES}/v1beta1.{group}").status == 404


def test_apiservice_follows_the_served_flag_of_a_version(api: Any, group: str) -> None:
    def serve(served: bool) -> None:
        operation = {"op": "replace", "path": "/spec/versions/1/served", "value": served}
        assert api.patch(f"{DEFINITIONS}/widgets.{group}", [operation], "application/json-patch+json").status == 200

    watched(api, APISERVICES, f"v1.{group}", lambda _, obj: True)
    serve(True)
    added = watched(api, APISERVICES, f"v1beta1.{group}", lambda event, _: event == "ADDED")
    serve(False)
    watched(api, APISERVICES, f"v1beta1.{group}", lambda event, _: event == "DELETED", since=added)


def test_managed_apiservice_is_restored_after_changes(api: Any, group: str) -> None:
    name = f"v1.{group}"
    uid = watched(api, APISERVICES, name, lambda _, obj: True)["metadata"]["uid"]
    assert api.patch(f"{APISERVICES}/{name}", {"spec": {"versionPriority": 7}}, MERGE).status == 200
    watched(api, APISERVICES, name, lambda _, obj: obj["spec"]["versionPriority"] == 100)
    assert api.delete(f"{APISERVICES}/{name}").status == 200
    watched(api, APISERVICES, name, lambda event, obj: event != "DELETED" and obj["metadata"]["uid"] != uid)


def test_apiservice_without_the_automanaged_label_is_not_managed(api: Any, group: str) -> None:
    name = f"v1.{group}"
    watched(api, APISERVICES, name, lambda _, obj: True)
    patch = {"metadata": {"labels": None}, "spec": {"versionPriority": 7}}
    assert api.patch(f"{APISERVICES}/{name}", patch, MERGE).status == 200
    assert api.delete(f"{DEFINITIONS}/widgets.{group}").status == 200
    assert api.get(f"{APISERVICES}/{name}").at("spec", "versionPriority") == 7
    assert api.delete(f"{APISERVICES}/{name}").status == 200


def test_apiservice_condition_names_the_missing_endpoints(api: Any) -> None:
    group = f"{api.suffix}.remote.example.com"
    name, service = f"v1.{group}", {"namespace": api.namespace, "name": "behind"}
    body = {
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "version": "v1",
            "groupPriorityMinimum": 10,
            "versionPriority": 10,
            "service": service,
            "insecureSkipTLSVerify": True,
        },
    }
    what = f'service/behind in "{api.namespace}"'

    def condition_message(reason: str) -> str:
        found = watched(api, APISERVICES, name, lambda _, obj: condition(obj)[1] == reason)
        state, _, message = condition(found)
        assert state == "False"
        return message

    try:
        assert api.post(APISERVICES, body).status == 201
        assert condition_message("ServiceNotFound") == f"{what} is not present"
        ports = [{"name": "web", "port": 80}]
        assert api.post(api.path("services"), {"metadata": {"name": "behind"}, "spec": {"ports": ports}}).status == 201
        assert condition_message("ServicePortError") == f"{what} is not listening on port 443"
        ports = [{"name": "web", "port": 443}]
        assert api.patch(api.path("services", "behind"), {"spec": {"ports": ports}}, MERGE).status == 200
        assert condition_message("EndpointsNotFound") == f"cannot find endpointslices for {what}"
        labels = {"kubernetes.io/service-name": "behind"}
        endpoints = {"metadata": {"name": "behind-1", "labels": labels}, "addressType": "IPv4", "endpoints": [], "ports": []}
        assert api.post(api.path("endpointslices", group="discovery.k8s.io/v1"), endpoints).status == 201
        assert condition_message("MissingEndpoints") == f'endpointslices for {what} have no addresses with port name "web"'
    finally:
        api.delete(f"{APISERVICES}/{name}")


def test_flow_schema_dangling_condition_follows_its_priority_level(api: Any) -> None:
    name, level = api.name("flow"), api.name("level")
    what = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
    try:
        body = {"metadata": {"name": name}, "spec": {"priorityLevelConfiguration": {"name": level}, "rules": []}}
        assert api.post(SCHEMAS, body).status == 201
        found = watched(api, SCHEMAS, name, lambda _, obj: bool(condition(obj)[0]))
        assert condition(found) == ("True", "NotFound", f"{what} but there is no such object")
        owners = [(entry["manager"], entry["operation"]) for entry in found["metadata"]["managedFields"]]
        assert owners == [("api-priority-and-fairness-config-consumer-v1", "Apply"), ("tests", "Update")]
        limited = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
        assert api.post(LEVELS, {"metadata": {"name": level}, "spec": limited}).status == 201
        found = watched(api, SCHEMAS, name, lambda _, obj: condition(obj)[0] == "False")
        assert condition(found) == ("False", "Found", f"{what} and it exists")
    finally:
        api.delete(f"{SCHEMAS}/{name}")
        api.delete(f"{LEVELS}/{level}")
