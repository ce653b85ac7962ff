"""The stream of what happens, and the comparison of two revisions."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.powers.live import Live
from fakekube.store import Compacted, FutureRevision
from tests.unit.call_counts import calls_of
from tests.unit.seen import columns, config_map


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as started:
        yield started


def lines(live: Live) -> list[dict[str, Any]]:
    return [json.loads(line) for line in live.take()]


def begun(cluster: Cluster) -> Live:
    live = cluster.live(requests=cluster.requests.mark(), changes=int(cluster.rows.revision))
    assert [*lines(live)[0]] == ["hello"]
    return live


def test_everything_arrives_once_and_in_order(cluster: Cluster) -> None:
    live = begun(cluster)
    revisions, numbers = [], []
    for part in range(3):
        for number in range(40):
            cluster.create(config_map(f"a-{part}-{number}"))
        for line in lines(live):
            revisions += [row["revision"] for row in columns(line["changes"])] if "changes" in line else []
            numbers += [row["number"] for row in columns(line["requests"])] if "requests" in line else []
    assert numbers == list(range(120))
    assert len(revisions) == 120
    assert revisions == sorted(revisions)
    assert lines(live) == []


def test_more_rows_than_fit_into_a_line_come_with_the_next_calls(cluster: Cluster) -> None:
    live = begun(cluster)
    for number in range(1_100):
        cluster.create(config_map(f"a-{number}"))
    found = []
    while got := [line for line in lines(live) if "changes" in line]:
        found.append([len(line["changes"]["columns"]["revision"]) for line in got])
    assert found == [[1_000], [100]]


def test_the_end_of_a_watch_is_reported(cluster: Cluster) -> None:
    live = begun(cluster)
    watching = cluster.watch("/api/v1/namespaces/default/configmaps", {"resourceVersion": "0"})
    (row,) = columns(next(line for line in lines(live) if "requests" in line)["requests"])
    assert (row["verb"], row["ended"], row["events"]) == ("watch", "", 0)
    watching.close()
    (row,) = columns(next(line for line in lines(live) if "requests" in line)["requests"])
    assert (row["number"], row["ended"]) == (0, "closed by the client")


def test_marks_clock_faults_and_replacements(cluster: Cluster) -> None:
    live = begun(cluster)
    cluster.mark("here")
    snapshot = cluster.snapshot()
    cluster.clock.hold()
    cluster.clock.advance(minutes=90)
    cluster.faults.on("get").status(503, label="down")
    cluster.restore(snapshot)
    found = {name: value for line in lines(live) for name, value in line.items()}
    marks = found["marks"]
    texts = [marks["strings"][place] for place in marks["columns"]["text"]]
    assert texts[:3] == ["here", "held", "advanced by 1h 30m"]
    assert "down" in texts[3]
    assert found["clock"]["held"] is True
    assert [fault["label"] for fault in found["faults"]] == ["down"]
    assert found["reset"] == cluster.rows.revision
    assert lines(live) == []


def test_a_gap_is_reported() -> None:
    with Cluster(profile="apiserver", keep_requests=10) as cluster:
        live = begun(cluster)
        for number in range(30):
            cluster.create(config_map(f"a-{number}"))
        found = lines(live)
        assert {"gap": {"requests": [0, 19]}} in found
        rows = next(line["requests"] for line in found if "requests" in line)
        assert rows["columns"]["number"] == list(range(20, 30))


def test_a_closed_reader_gets_nothing(cluster: Cluster) -> None:
    live = begun(cluster)
    live.close()
    cluster.create(config_map("a"))
    assert live.take() == []
    assert live.ended


def test_no_thread_runs_without_a_reader(cluster: Cluster) -> None:
    assert "live_source" not in cluster.__dict__
    source = cluster.live_source
    assert not source._running


# ---------------------------------------------------------------- comparisons


def test_compare(cluster: Cluster) -> None:
    kept = cluster.create(config_map("kept", x="1"))
    cluster.create(config_map("old"))
    first = int(cluster.rows.revision)
    cluster.patch("configmaps", "kept", {"data": {"x": "2"}})
    cluster.patch("configmaps", "kept", {"data": {"x": "3"}})
    cluster.create(config_map("new"))
    cluster.create(config_map("brief"))
    cluster.delete("configmaps", "brief")
    cluster.delete("configmaps", "old")
    last = int(cluster.rows.revision)
    cluster.patch("configmaps", "kept", {"data": {"x": "4"}})
    found = cluster.compare(first, last)
    assert [one["name"] for one in found.added] == ["new"]
    assert [one["name"] for one in found.removed] == ["old"]
    assert [one["name"] for one in found.reverted] == ["brief"]
    (changed,) = found.changed
    assert (changed["name"], changed["uid"], changed["writes"]) == ("kept", kept["metadata"]["uid"], 2)
    assert changed["changed"] == [{"path": "data.x", "old": "1", "new": "3", "actor": "fakekube", "writes": 2}]
    assert found.actors == {"fakekube": 6}
    assert "~ ConfigMap default/kept: data.x '1' → '3'" in str(found)
    backwards = cluster.compare(last, first)
    assert [one["name"] for one in backwards.removed] == ["new"]
    assert backwards.changed[0]["changed"][0]["old"] == "3"
    assert str(cluster.compare(last, last)) == "nothing differs"
    assert cluster.compare(first, last, name="old").added == []


def test_compare_of_revisions_that_are_not_kept(cluster: Cluster) -> None:
    with pytest.raises(FutureRevision):
        cluster.compare(1, 10_000)
    cluster.create(config_map("a"))
    cluster.restore(cluster.snapshot())
    with pytest.raises(Compacted):
        cluster.compare(int(cluster.rows.revision) - 3, int(cluster.rows.revision))


def test_an_open_page_costs_a_write_next_to_nothing(cluster: Cluster) -> None:
    """What a write does itself; the reader's thread asks ten times a second, however many writes there are."""

    def write() -> None:
        for number in range(100):
            cluster.request("PATCH", path, {"data": {"x": str(number)}}, headers={"Content-Type": "application/merge-patch+json"})

    cluster.create(config_map("a"))
    path = "/api/v1/namespaces/default/configmaps/a"
    write()
    closed = calls_of(write)
    live = begun(cluster)
    woken = threading.Event()
    live.source.subscribe(woken.set)
    try:
        opened = calls_of(write)
        assert woken.wait(30)
    finally:
        live.source.unsubscribe(woken.set)
        live.close()
    assert opened <= closed * 1.05  # the budget of an open page; the time is in tests/benchmarks/page_bench.py
