"""Which FlowSchema a request belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fakekube.apiserver.endpoints.request import Query, User
from fakekube.apiserver.http.priority_and_fairness import Flows
from fakekube.apiserver.http.request_info import request_info

ALICE = User("alice", groups=("team-a",))
PODS = request_info("GET", "/api/v1/namespaces/ns/pods", Query())
NODES = request_info("GET", "/api/v1/nodes", Query())
VERSION = request_info("GET", "/version", Query())


class _Objects:
    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.levels = [{"metadata": {"name": "low", "uid": "level"}}]
        self._wakes: list[Callable[[], None]] = []

    def list(self, group: str, plural: str, namespace: str = "") -> Iterator[dict[str, Any]]:
        yield from self.schemas if plural == "flowschemas" else self.levels

    def subscribe(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)

    def schema(self, name: str, rule: dict[str, Any], precedence: int = 1, level: str = "low") -> None:
        spec = {"matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": level}, "rules": [rule]}
        self.schemas.append({"metadata": {"name": name, "uid": name}, "spec": spec})
        for wake in self._wakes:
            wake()


@pytest.fixture
def objects() -> _Objects:
    return _Objects()


@pytest.fixture
def flow(objects: _Objects) -> Callable[..., str | None]:
    flows = Flows(objects, lambda _: objects)  # type: ignore[arg-type, return-value]
    return lambda info, user=ALICE: dict(flows.classify(info, user).headers).get("X-Kubernetes-Pf-Flowschema-Uid")


EVERYBODY = [{"kind": "User", "user": {"name": "*"}}]


def _resources(**changes: Any) -> dict[str, Any]:
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    return {"subjects": EVERYBODY, "resourceRules": [rule | changes]}


def test_no_flow_without_schemas(flow) -> None:
    assert flow(PODS) is None


@pytest.mark.parametrize(
    ("changes", "pods", "nodes"),
    [
        ({}, True, True),
        ({"verbs": ["list"]}, True, True),
        ({"verbs": ["get"]}, False, False),
        ({"resources": ["pods"]}, True, False),
        ({"resources": ["pods/status"]}, False, False),
        ({"apiGroups": ["apps"]}, False, False),
        ({"apiGroups": [""]}, True, True),
        ({"clusterScope": False}, True, False),
        ({"namespaces": []}, False, True),
        ({"namespaces": ["ns"]}, True, True),
        ({"namespaces": ["other"]}, False, True),
    ],
)
def test_resource_rules_match(objects: _Objects, flow, changes: dict[str, Any], pods: bool, nodes: bool) -> None:
    objects.schema("s", _resources(**changes))
    assert ((flow(PODS) == "s"), (flow(NODES) == "s")) == (pods, nodes)
    assert flow(VERSION) is None


@pytest.mark.parametrize(
    ("paths", "matches"),
    [(["*"], True), (["/version"], True), (["/version/"], False), (["/ver*"], False), (["/"], True), (["/a", "/version"], True)],
)
def test_non_resource_rules_match(objects: _Objects, flow, paths: list[str], matches: bool) -> None:
    objects.schema("s", {"subjects": EVERYBODY, "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": paths}]})
    assert (flow(VERSION) == "s") is matches
    assert flow(PODS) is None


ROBOT = User("system:serviceaccount:ns:robot")


@pytest.mark.parametrize(
    ("subject", "user", "matches"),
    [
        ({"kind": "User", "user": {"name": "alice"}}, ALICE, True),
        ({"kind": "User", "user": {"name": "team-a"}}, ALICE, False),
        ({"kind": "Group", "group": {"name": "team-a"}}, ALICE, True),
        ({"kind": "Group", "group": {"name": "*"}}, ROBOT, True),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "ns", "name": "*"}}, ROBOT, True),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "ns", "name": "robot"}}, ROBOT, True),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "*"}}, ROBOT, False),
    ],
)
def test_subjects_match(objects: _Objects, flow, subject: dict[str, Any], user: User, matches: bool) -> None:
    objects.schema("s", _resources() | {"subjects": [subject]})
    assert (flow(PODS, user) == "s") is matches


def test_schema_with_lowest_precedence_value_is_used(objects: _Objects, flow) -> None:
    objects.schema("b", _resources(), 5)
    assert flow(PODS) == "b"
    objects.schema("a", _resources(), 5)
    assert flow(PODS) == "a"
    objects.schema("z", _resources(), 1)
    assert flow(PODS) == "z"
    objects.schema("broken", _resources(), 0, level="none")
    assert flow(PODS) == "z"
