"""Which watches of clients delivered which versions, and when; actors of clients in the same process."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from fakekube import Cluster
from fakekube.powers.exchange import KEPT_DELIVERIES, Deliveries
from tests.unit.seen import columns, config_map, deployment


def follow(cluster: Cluster, query: str = "") -> Any:
    return urllib.request.urlopen(
        f"{cluster.url}/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=60{query}", timeout=30
    )


def test_a_watch_notes_what_it_delivers_in_every_format() -> None:
    with Cluster(profile="apiserver") as cluster:
        first = cluster.create(config_map("a", x="1"))
        with follow(cluster) as plain:
            assert json.loads(plain.readline())["type"] == "ADDED"
            second = cluster.patch("configmaps", "a", {"data": {"x": "2"}})
            other = cluster.create(config_map("b"))
            got = [json.loads(plain.readline())["object"]["metadata"]["resourceVersion"] for _ in range(2)]
        revisions = [int(one["metadata"]["resourceVersion"]) for one in (first, second, other)]
        assert [*map(int, got)] == revisions[1:]
        watch = cluster.requests.where(verb="watch", resource="configmaps").one
        shown = cluster.rows.request(watch.number)
        assert shown is not None
        assert [revision for revision, _ in shown["deliveries"]] == revisions
        times = [time for _, time in shown["deliveries"]]
        assert times == sorted(times)
        change = cluster.rows.change(revisions[1])
        assert change is not None
        assert [one["request"] for one in change["delivered"]] == [watch.number]


def test_a_watch_with_a_selector_has_only_what_it_delivered() -> None:
    with Cluster(profile="apiserver") as cluster:
        with follow(cluster, "&fieldSelector=metadata.name%3Db") as stream:
            cluster.create(config_map("a"))
            made = cluster.create(config_map("b"))
            stream.readline()
        watch = cluster.requests.where(verb="watch", resource="configmaps").last
        assert watch.deliveries is not None
        assert [revision for revision, _ in watch.deliveries.list_deliveries()] == [int(made["metadata"]["resourceVersion"])]


def test_watches_of_the_cluster_itself_are_not_noted() -> None:
    with Cluster() as cluster:
        cluster.create(config_map("a"))
        cluster.settle()
        assert all(one.deliveries is None for one in cluster.requests.where(verb="watch", own=True) if one.own)


def test_deliveries_are_bounded_and_of_any_size() -> None:
    found, base = Deliveries(), 1 << 100
    for number in range(3 * KEPT_DELIVERIES):
        found.add([base + number], float(number))
    kept = found.list_deliveries()
    assert len(kept) == KEPT_DELIVERIES
    assert kept[-1] == (base + 3 * KEPT_DELIVERIES - 1, 3.0 * KEPT_DELIVERIES - 1)
    assert found.find_time(base + 3 * KEPT_DELIVERIES - 1) == 3.0 * KEPT_DELIVERIES - 1
    assert found.find_time(base) is None
    assert found.find_time(5) is None


def test_a_client_in_the_same_process_with_an_own_agent_is_an_actor_of_its_own() -> None:
    with Cluster() as cluster:
        cluster.client_of("my-operator/1.0").call("POST", "/api/v1/namespaces/default/configmaps", config_map("a"))
        cluster.create(deployment("web"))
        cluster.settle()
        sides = {row["actor"]: row["side"] for row in columns(cluster.rows.requests(limit=5_000))}
        assert sides.pop("my-operator") == "client"
        assert sides.pop("fakekube", "client") == "client"
        assert {*sides.values()} <= {"cluster"}
        assert sides
