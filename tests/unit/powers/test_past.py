"""The past of a cluster that rests takes less memory, and is as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pytest

from fakekube import ApiError, Cluster
from fakekube.apimachinery.codecs.document import CompressedText, Document, pack_recent
from fakekube.base.clock import Clock
from fakekube.powers.exchange import Exchange, exchange_data
from fakekube.powers.packs import Pack, make_packs
from fakekube.powers.requests import Recorder


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as made:
        yield made


def config_map(number: int) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": str(number), "y": "z" * 2_000}}


def compressed(cluster: Cluster) -> list[Document]:
    events = cluster._machinery.backend.store.bucket("configmaps").events_of("default/a")
    return [one.record.value for one in events if one.record is not None and isinstance(one.record.value._packed, CompressedText)]


def test_earlier_versions_are_packed_and_read_as_they_were(cluster: Cluster) -> None:
    cluster.create(config_map(0))
    for number in range(1, 5):
        cluster.update({**cluster.get("configmaps", "a"), "data": {"x": str(number)}})
    before = [one.object for one in cluster.history("configmaps", "a")]
    pack_recent()
    cluster.pack_past()
    assert len(compressed(cluster)) == 4  # the last version is the present one
    assert [one.object for one in cluster.history("configmaps", "a")] == before


def test_kept_changes_are_packed_and_read_as_they_were(cluster: Cluster) -> None:
    cluster.keep_changes()
    for number in range(5):
        cluster.apply(config_map(number))
    before = [(one.revision, one.before, one.object) for one in cluster.rows.journal()]
    cluster.compact()
    cluster._machinery.backend.store.bucket("configmaps").forget()
    pack_recent()
    cluster.pack_past()
    journal = cluster._observe().journal
    assert (len(journal._packs), len(journal._rows), len(journal._changes)) == (1, 0, 0)
    records = journal.records()
    packed = [one.value for bucket, one in records if bucket == "configmaps" and isinstance(one.value._packed, CompressedText)]
    assert len({id(one) for one in packed}) == 4
    assert [(one.revision, one.before, one.object) for one in cluster.rows.journal()] == before


def test_encodings_of_events_are_made_again(cluster: Cluster) -> None:
    cluster.create(config_map(0))
    (event,) = cluster._machinery.backend.store.bucket("configmaps").events_of("default/a")
    event.encodings["x"] = b"made"
    cluster.pack_past()
    assert event.encodings == {}


def test_changes_without_their_objects_are_packed_and_read_as_they_were(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fakekube.powers.journal.KEPT_EVENTS", 2)
    cluster.keep_changes()
    for number in range(5):
        cluster.apply(config_map(number))
    before = [(one.revision, one.key, one.type, one.uid, one.cause.key) for one in cluster.rows.journal()]
    cluster.pack_past()
    cluster.apply(config_map(5))
    *rows, fourth, fifth = after = cluster.rows.journal()
    assert [(one.revision, one.key, one.type, one.uid, one.cause.key) for one in after[:-1]] == before
    assert [one.object and one.object["data"]["x"] for one in (fourth, fifth)] == ["4", "5"]
    assert not any(one.object for one in rows)


def test_kept_requests_are_packed_and_read_as_they_were(cluster: Cluster) -> None:
    for number in range(5):
        cluster.apply(config_map(number))
    with pytest.raises(ApiError):
        cluster.get("configmaps", "none")
    recorder, every = cluster._observe().recorder, cluster.requests.where(own=True)
    before = [{**exchange_data(one), "started": one.arrived, "wrote": one.wrote} for one in every]
    cluster.pack_past()
    assert (len(recorder._packs), len(recorder.ring)) == (1, 1)
    cluster.apply(config_map(6))
    after = [{**exchange_data(one), "started": one.arrived, "wrote": one.wrote} for one in every]
    assert after[: len(before)] == before
    assert after[-1]["body"]["data"]["x"] == "6"


def recorder_of(keep: int, count: int) -> Recorder:
    """Makes a recorder of requests that are over."""
    made, clock = Recorder(keep, str), Clock()
    for _ in range(count):
        keep_request(made, clock)
    return made


def keep_request(recorder: Recorder, clock: Clock) -> None:
    one = Exchange(recorder.next_number(), {"REQUEST_METHOD": "GET"}, "/", clock)
    one.status, one.seconds, one.raw_body, one.raw_answer = 200, 0.0, b"body", b"x" * 1_000
    recorder.keep(one)


def test_requests_in_progress_are_not_packed() -> None:
    recorder = recorder_of(10, 4)
    first, second, *_ = before = recorder.list_exchanges()
    first.seconds = first.status = None
    second.__dict__["observer"] = None  # its observer has not left it
    recorder.pack()
    after = recorder.list_exchanges()
    assert [one is other for one, other in zip(before, after, strict=True)] == [True, True, False, True]
    first.status = 404
    assert recorder.list_exchanges()[0].status == 404


def test_requests_do_not_wait_while_others_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, clock = recorder_of(10, 3), Clock()

    def perform_request() -> None:
        keep_request(recorder, clock)
        recorder.note_bodies(2 << 20)  # the end of a round
        recorder.notify()

    def make(items: Iterable[Exchange]) -> list[Pack[Exchange]]:
        thread = threading.Thread(target=perform_request)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
        return make_packs(items)

    monkeypatch.setattr("fakekube.powers.packs.make_packs", make)
    with recorder.waiting():
        recorder.pack()
    assert [one.number for one in recorder.list_exchanges()] == [0, 1, 2, 3]


def test_packed_requests_count_among_those_that_are_kept() -> None:
    recorder, clock = recorder_of(10, 8), Clock()
    recorder.pack()
    assert not recorder.is_full
    for _ in range(4):
        keep_request(recorder, clock)
    assert recorder.is_full
    assert [one.number for one in recorder.list_exchanges()] == list(range(2, 12))
    recorder.pack()
    for _ in range(10):
        keep_request(recorder, clock)
    recorder.note_bodies(2 << 20)  # the end of a round
    assert recorder._packed == 0
    assert [one.number for one in recorder.list_exchanges()] == list(range(12, 22))


def test_old_bodies_of_packed_requests_are_dropped_beyond_the_bound() -> None:
    recorder, clock = recorder_of(10, 3), Clock()
    recorder.note_bodies(5 << 20)
    recorder.pack()
    keep_request(recorder, clock)
    recorder.note_bodies(5 << 20)  # of 8 MiB
    assert [one.raw_body for one in recorder.list_exchanges()] == [b"", b"", b"", b"body"]


def test_packed_requests_can_be_removed() -> None:
    recorder = recorder_of(10, 3)
    recorder.pack()
    recorder.clear()
    assert (recorder.list_exchanges(), recorder.newest) == ([], 2)
