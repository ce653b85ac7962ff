"""What counts as a reaction of the client to a copy of the sample."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import fakekube
from fakekube.checker.reaction import Copy, Effect, EffectKind, Reaction, children_of, effects_of, filter_by_owner, mentions_in
from fakekube.checker.trace import Trace
from fakekube.checker.trial import Trial

Object = dict[str, Any]

NAMESPACE = "/api/v1/namespaces/default"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REVIEW = {"spec": {"user": "sample-bcdfgh", "resourceAttributes": {"verb": "get", "resource": "pods"}}}


def send(cluster: fakekube.Cluster, method: str, path: str, body: Object | None = None) -> None:
    """Sends a request as the client."""
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": kind})
    response = connection.getresponse()
    assert (response.status < 300, response.read())[0]
    connection.close()


class Sample:
    """A copy in a cluster, and what a client does for it."""

    def __init__(self, cluster: fakekube.Cluster) -> None:
        self._cluster = cluster
        self._trace = Trace(cluster, 0.0)
        made = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sample-bcdfgh"}})
        self._copy = Copy("bcdfgh", [made], ["configmaps"], self._trace.mark(), 0.0)

    def send(self, method: str, path: str, body: Object | None = None) -> None:
        send(self._cluster, method, path, body)

    def patch(self, change: Object) -> None:
        self.send("PATCH", f"{NAMESPACE}/configmaps/sample-bcdfgh", change)

    def reaction(self) -> Reaction:
        observed = Reaction.common(effects_of(self._cluster, self._copy, self._trace.since(self._copy.mark)))
        return observed.lasting(self._cluster, [self._copy])

    def missing_of(self, reaction: Reaction, *, altered: bool = False, deletes: bool = False) -> list[str]:
        """Returns what of a reaction the copy does not have.

        `altered`: whether its contents are other ones than the sample's; `deletes`: whether the client deletes copies in the
        baseline run.
        """
        self._copy.altered = altered
        trial: Any = SimpleNamespace(
            baseline=SimpleNamespace(reaction=reaction, deletes_copies=lambda: deletes),
            cluster=self._cluster,
            trace=self._trace,
            has_deleted=lambda copy: Trial.has_deleted(trial, copy),
            is_done_with=lambda copy: Trial.is_done_with(trial, copy),
        )
        return [str(one) for one in Trial.missing_of(trial, self._copy)]

    def states(self) -> list[str]:
        return [str(one) for one in self.reaction().effects if one.is_state]

    def children(self, resource: str) -> list[str]:
        return [one["metadata"]["name"] for one in children_of(self._cluster, self._copy, resource)]


@pytest.fixture
def sample() -> Iterator[Sample]:
    with fakekube.Cluster(profile="apiserver") as cluster:
        yield Sample(cluster)


def test_objects_and_fields_are_its_effects(sample: Sample) -> None:
    sample.send("POST", f"{NAMESPACE}/secrets", {"metadata": {"name": "bcdfgh-child"}})
    sample.patch({"data": {"seen": "yes"}})
    assert sample.states() == ["creates secrets/{}-child", "writes configmaps/sample-{} data.seen"]


def test_events_are_not_because_clients_may_drop_them(sample: Sample) -> None:
    involved = {"kind": "ConfigMap", "name": "sample-bcdfgh", "namespace": "default"}
    sample.send("POST", f"{NAMESPACE}/events", {"metadata": {"name": "sample-bcdfgh.1"}, "involvedObject": involved})
    assert sample.states() == []
    assert [str(one) for one in sample.reaction().visible] == ["sends create events/sample-{}.1"]
    sample.send("DELETE", f"{NAMESPACE}/configmaps/sample-bcdfgh")
    assert [str(one) for one in sample.reaction().visible] == ["sends delete configmaps/sample-{}"]


def test_what_the_client_has_removed_again_or_is_not_stored_is_not(sample: Sample) -> None:
    sample.send("POST", f"{NAMESPACE}/secrets", {"metadata": {"name": "bcdfgh-lock"}})
    sample.send("DELETE", f"{NAMESPACE}/secrets/bcdfgh-lock")
    sample.patch({"metadata": {"annotations": {"busy": "yes"}}, "data": {"seen": "yes"}})
    sample.patch({"metadata": {"annotations": {"busy": None}}})
    sample.send("POST", REVIEWS, REVIEW)
    assert sample.states() == ["writes configmaps/sample-{} data.seen"]


def test_children_are_those_after_the_last_write(sample: Sample) -> None:
    assert sample.children("secrets") == []
    sample.send("POST", f"{NAMESPACE}/secrets", {"metadata": {"name": "bcdfgh-child"}})
    assert sample.children("secrets") == ["bcdfgh-child"]
    assert sample.children("secrets") == ["bcdfgh-child"]
    sample.send("DELETE", f"{NAMESPACE}/secrets/bcdfgh-child")
    assert sample.children("secrets") == []


def test_children_of_equal_names_are_told_apart_by_their_namespaces() -> None:
    """As of copies of a Namespace, each of which has a child with the same name."""
    with fakekube.Cluster(profile="apiserver") as cluster:
        copies = []
        for token in ("bcdfgh", "jklmnp"):
            made = cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{token}"}})
            copies.append(Copy(token, [made], ["namespaces"], -1, 0.0))
        reaction = Reaction({Effect(EffectKind.CHILD, "resourcequotas", "tenant"): 1})
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tenant", "namespace": "team-bcdfgh"}}
        cluster.create(quota)
        assert [bool(reaction.missing(cluster, copy, ())) for copy in copies] == [False, True]


@pytest.mark.parametrize(("altered", "missing"), [(False, ["creates secrets/sample-{}-0a1b"]), (True, [])])
def test_the_name_of_a_child_may_follow_from_the_contents_of_its_owner(sample: Sample, altered: bool, missing: list[str]) -> None:
    sample.send("POST", f"{NAMESPACE}/secrets", {"metadata": {"name": "sample-bcdfgh-9f8e"}})
    reaction = Reaction({Effect(EffectKind.CHILD, "secrets", "sample-{}-0a1b"): 1})
    assert sample.missing_of(reaction, altered=altered) == missing


def test_each_child_of_an_object_with_other_contents_has_to_be_there(sample: Sample) -> None:
    sample.send("POST", f"{NAMESPACE}/secrets", {"metadata": {"name": "sample-bcdfgh-9f8e"}})
    reaction = Reaction({Effect(EffectKind.CHILD, "secrets", f"sample-{{}}-{number}"): 1 for number in range(2)})
    assert sample.missing_of(reaction, altered=True) == ["creates secrets/*"]


@pytest.mark.parametrize(("deletes", "missing"), [(False, ["writes configmaps/sample-{} data.seen"]), (True, [])])
def test_nothing_shows_how_a_client_has_reacted_to_what_it_has_deleted(sample: Sample, deletes: bool, missing: list[str]) -> None:
    reaction = Reaction({Effect(EffectKind.FIELD, "configmaps", "sample-{}", ("data", "seen")): 1})
    assert sample.missing_of(reaction, deletes=deletes) == ["writes configmaps/sample-{} data.seen"]
    sample.send("DELETE", f"{NAMESPACE}/configmaps/sample-bcdfgh")
    assert sample.missing_of(reaction, deletes=deletes) == missing


def test_an_object_about_all_copies_names_each_and_is_the_child_of_none() -> None:
    """Such as a summary, whose writes may be for one copy or for all."""
    with fakekube.Cluster(profile="apiserver") as cluster:
        trace, tokens = Trace(cluster, 0.0), ("bcdfgh", "jklmnp")
        copies = [
            Copy(
                one,
                [cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": one}})],
                ["configmaps"],
                -1,
                0.0,
            )
            for one in tokens
        ]
        send(cluster, "POST", f"{NAMESPACE}/secrets", {"metadata": {"name": "summary"}, "stringData": dict.fromkeys(tokens, "")})
        observed = (effects_of(cluster, copy, trace.since()) for copy in copies)
        reaction = Reaction.common(*observed).lasting(cluster, copies)
        assert [str(one) for one in reaction.visible] == ["names it in secrets/summary"]
        assert [reaction.missing(cluster, copy, ()) for copy in copies] == [[], []]
        send(cluster, "PATCH", f"{NAMESPACE}/secrets/summary", {"data": {tokens[0]: None}})
        assert [bool(reaction.missing(cluster, copy, ())) for copy in copies] == [True, False]
        assert [len(mentions_in(reaction, cluster, copy)) for copy in copies] == [0, 1]


def test_a_write_of_what_names_only_the_last_copy_is_not_expected(sample: Sample) -> None:
    sample.send("POST", f"{NAMESPACE}/secrets", {"metadata": {"name": "last", "annotations": {"name": "bcdfgh"}}})
    sample.send("PATCH", f"{NAMESPACE}/secrets/last", {"metadata": {"annotations": {"name": "other"}}})
    assert not sample.reaction().visible


@pytest.mark.parametrize(
    ("metadata", "owned"),
    [
        ({"ownerReferences": [{"uid": "u1", "controller": True}]}, True),
        ({"ownerReferences": [{"uid": "u2", "controller": True}]}, False),
        ({"ownerReferences": [{"uid": "u2"}, {"uid": "u1"}]}, True),
        ({"labels": {"shop-uid": "u1"}}, True),
        ({"annotations": {"shop-uid": "u1"}}, True),
        ({"labels": {"shop": "first"}}, False),
        ({"ownerReferences": [{"uid": "u2", "controller": True}], "labels": {"shop-uid": "u1"}}, False),  # its controller counts
        ({"ownerReferences": [{"uid": "u2", "controller": True}, {"uid": "u1"}]}, False),
    ],
)
def test_a_child_belongs_to_its_controller_or_to_what_it_names_by_its_uid(metadata: Object, owned: bool) -> None:
    child = {"metadata": {"name": "child", **metadata}}
    assert filter_by_owner([child, {"metadata": {"name": "alone"}}], {"u1"}) == ([child] if owned else [])
