"""The past of a cluster that rests takes less memory, and is as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fakekube import Cluster
from fakekube.apimachinery.codecs.document import CompressedText, Document, pack_recent


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
    records = cluster._observe().journal.records()
    packed = [one.value for bucket, one in records if bucket == "configmaps" and isinstance(one.value._packed, CompressedText)]
    assert len({id(one) for one in packed}) == 4
    assert [(one.revision, one.before, one.object) for one in cluster.rows.journal()] == before


def test_encodings_of_events_are_made_again(cluster: Cluster) -> None:
    cluster.create(config_map(0))
    (event,) = cluster._machinery.backend.store.bucket("configmaps").events_of("default/a")
    event.encodings["x"] = b"made"
    cluster.pack_past()
    assert event.encodings == {}
