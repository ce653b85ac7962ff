"""Lists with selectors equal a filtered full list, at current and past revisions, with and without pagination."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakekube import Cluster

PODS = "/api/v1/namespaces/default/pods"
Labels = dict[str, str]


class Api:
    """Requests to a cluster in process."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def list(self, path: str = PODS, **query: str | int) -> dict[str, Any]:
        environ = {
            "REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": urlencode(query),
            "HTTP_AUTHORIZATION": "Bearer admin-token", "HTTP_ACCEPT": "application/json",
        }  # fmt: skip
        answer: dict[str, Any] = json.loads(b"".join(self.cluster.application(environ, lambda *_: None)))
        assert answer["kind"] == "PodList", answer
        return answer

    def names(self, path: str = PODS, **query: str | int) -> list[str]:
        return [item["metadata"]["name"] for item in self.list(path, **query)["items"]]

    def paged(self, limit: int, **query: str | int) -> list[str]:
        """The names of all pages, of which none but the last is short."""
        page = self.list(limit=limit, **query)
        items = page["items"]
        while token := page["metadata"].get("continue"):
            assert len(page["items"]) == limit
            query.pop("resourceVersion", None)
            query.pop("resourceVersionMatch", None)
            page = self.list(limit=limit, **{**query, "continue": token})
            items += page["items"]
        return [item["metadata"]["name"] for item in items]

    def put(self, name: str, labels: Labels | None) -> None:
        """Label the pod of that name, which need not be there; None deletes it."""
        there = name in self.names()
        if labels is None:
            if there:
                self.cluster.delete("pods", name, namespace="default", gracePeriodSeconds=0)
        elif there:
            self.cluster.patch("pods", name, {"metadata": {"labels": None}}, namespace="default")
            self.cluster.patch("pods", name, {"metadata": {"labels": labels}}, namespace="default")
        else:
            self.cluster.create(pod(name, labels), namespace="default")


def pod(name: str, labels: Labels, **spec: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "image"}], **spec},
    }  # fmt: skip


@pytest.fixture
def api() -> Api:
    return Api(Cluster(profile="apiserver"))


#: Selector → does it match?
SELECTORS: dict[str, Callable[[Labels], bool]] = {
    "app=1": lambda labels: labels.get("app") == "1",
    "app=1,tier=2": lambda labels: labels.get("app") == "1" and labels.get("tier") == "2",
    "app in (1,2)": lambda labels: labels.get("app") in ("1", "2"),
    "app in (1,2),tier!=1": lambda labels: labels.get("app") in ("1", "2") and labels.get("tier") != "1",
    "app notin (1),tier": lambda labels: labels.get("app") != "1" and "tier" in labels,
    "app=1,app=2": lambda labels: False,
    "app==2,!tier": lambda labels: labels.get("app") == "2" and "tier" not in labels,
}
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["1", "2"]))
WRITES = st.lists(st.tuples(st.sampled_from("abcdef"), LABELS | st.none()), min_size=1, max_size=8)


@given(rounds=st.lists(WRITES, min_size=1, max_size=3), limit=st.integers(1, 3))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_label_selector_lists_equal_a_filtered_full_list(limit: int, rounds: list[list[tuple[str, Labels | None]]]) -> None:
    api = Api(Cluster(profile="apiserver"))
    then: dict[str, Any] = {"resourceVersion": api.list()["metadata"]["resourceVersion"], "resourceVersionMatch": "Exact"}
    before: dict[str, list[str]] = {selector: [] for selector in SELECTORS}
    for writes in rounds:
        for name, labels in writes:
            api.put(name, labels)
        everything = api.list()
        for selector, matches in SELECTORS.items():
            expected = [item["metadata"]["name"] for item in everything["items"] if matches(item["metadata"].get("labels", {}))]
            assert api.names(labelSelector=selector) == api.paged(limit, labelSelector=selector) == expected
            past = api.names(labelSelector=selector, **then), api.paged(limit, labelSelector=selector, **then)
            assert past == (before[selector], before[selector])
            before[selector] = expected
        then["resourceVersion"] = everything["metadata"]["resourceVersion"]


def test_field_selector_lists(api: Api) -> None:
    for number, node in enumerate(["", "one", "two", "one"]):
        api.cluster.create(pod(f"pod-{number}", {"app": str(number % 2)}, nodeName=node), namespace="default")
    assert api.names(fieldSelector="spec.nodeName=one") == ["pod-1", "pod-3"]
    assert api.names("/api/v1/pods", fieldSelector="spec.nodeName=") == ["pod-0"]
    assert api.names(fieldSelector="spec.nodeName=one,metadata.name!=pod-1", labelSelector="app=1") == ["pod-3"]
    assert api.names("/api/v1/pods", fieldSelector="metadata.name=pod-2") == ["pod-2"]
    api.cluster.delete("pods", "pod-3", namespace="default", gracePeriodSeconds=0)
    assert api.names(fieldSelector="spec.nodeName=one") == ["pod-1"]


def test_continue_token_is_set_while_objects_remain_after_the_page(api: Api) -> None:
    for name, app in (("a", "1"), ("b", "2")):
        api.put(name, {"app": app})
    assert "continue" in api.list(labelSelector="app=1", limit=1)["metadata"], "b may match by then"
    assert "continue" not in api.list(labelSelector="app=2", limit=1)["metadata"]


def test_watch_initial_events_respect_the_label_selector(api: Api) -> None:
    for name, app in (("a", "1"), ("b", "2"), ("c", "1")):
        api.put(name, {"app": app})
    environ = {
        "REQUEST_METHOD": "GET", "PATH_INFO": PODS, "HTTP_AUTHORIZATION": "Bearer admin-token",
        "QUERY_STRING": urlencode({"watch": "1", "labelSelector": "app=1", "timeoutSeconds": "1"}),
    }  # fmt: skip
    stream = api.cluster.application(environ, lambda *_: None)
    names = [json.loads(frame)["object"]["metadata"]["name"] for frame in stream.take()]
    stream.close()
    assert names == ["a", "c"]
