"""Logs of containers: what is written to them, and how they are read and followed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube import Cluster
from fakekube.base.clock import Clock
from fakekube.net.streaming.kubelet_api import LogOptions
from fakekube.nodes.runtime.logs import MAX_SIZE, ContainerLog, LogStream, read_log

START = datetime(2026, 1, 1, tzinfo=UTC)


def log_of(*lines: bytes) -> ContainerLog:
    """A log with one line each second."""
    log = ContainerLog()
    for number, line in enumerate(lines):
        log.write(line + b"\n", START + timedelta(seconds=number), "stderr" if line.startswith(b"!") else "stdout")
    return log


def read(log: ContainerLog, **options: Any) -> bytes:
    return read_log(log, LogOptions(**options), START + timedelta(seconds=10))


READS = [
    ({}, b"a\n!b\nc\nd\n"),
    ({"tail_lines": 2}, b"c\nd\n"),
    ({"tail_lines": 0}, b""),
    ({"tail_lines": 9}, b"a\n!b\nc\nd\n"),
    ({"since_seconds": 8}, b"c\nd\n"),
    ({"since_time": START + timedelta(seconds=3)}, b"d\n"),
    ({"limit_bytes": 4}, b"a\n!b"),
    ({"stream": "Stderr"}, b"!b\n"),
    ({"stream": "Stdout"}, b"a\nc\nd\n"),
    ({"timestamps": True, "tail_lines": 1}, b"2026-01-01T00:00:03.000000000Z d\n"),
    ({"tail_lines": 3, "since_seconds": 8}, b"c\nd\n"),
]


@pytest.mark.parametrize(("options", "text"), READS)
def test_log_options(options: dict[str, Any], text: bytes) -> None:
    assert read(log_of(b"a", b"!b", b"c", b"d"), **options) == text


@pytest.mark.parametrize("parts", [(b"x" * 40_000 + b"\n",), (b"x" * 30_000, b"x" * 10_000 + b"\n")])
def test_a_long_line_is_kept_in_pieces_and_has_one_time(parts: tuple[bytes, ...]) -> None:
    log = ContainerLog()
    for part in parts:
        log.write(part, START)
    assert [len(line.text) for line in log.read_lines()[0]] == [16_384, 16_384, 7_233]
    expected = b"2026-01-01T00:00:00.000000000Z " + b"x" * 40_000 + b"\n"
    assert read(log, timestamps=True) == read(log, timestamps=True, stream="Stdout") == expected


def test_incomplete_last_line_is_shown_after_the_container_ended() -> None:
    log = log_of(b"a")
    log.write(b"no end", START)
    assert read(log) == b"a\n"
    log.close(START)
    assert read(log) == b"a\nno end"


def test_log_is_rotated_at_maximum_size() -> None:
    log = ContainerLog()
    line = b"x" * (8191 - 40)  # a kubelet also writes the time and the stream of a line
    for _ in range(MAX_SIZE // 8192):
        log.write(line + b"\n", START)
    log.write(b"new\n", START)
    assert read(log) == b"new\n"


@given(st.lists(st.lists(st.sampled_from([b"a", b"!b", b"cc"]), max_size=3), max_size=6), st.integers(0, 5))
def test_followed_log_equals_the_complete_log(rounds: list[list[bytes]], tail: int) -> None:
    log = log_of(b"first", b"second")
    stream = LogStream(log, LogOptions(follow=True, tail_lines=tail), Clock(), lambda: None)
    seen = b"".join(stream.take())
    written = 0
    for lines in rounds:
        for line in lines:
            log.write(line + b"\n", START)
            written += 1
        seen += b"".join(stream.take())
    log.close(START)
    seen += b"".join(stream.take())
    assert stream.ended
    assert seen == read(log, tail_lines=min(tail, 2) + written)


# ---------------------------------------------------------------- in a cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def pod(cluster: Cluster, name: str, script: str = "", **spec: Any) -> None:
    command = {"command": ["sh", "-c", script]} if script else {}
    container = {"name": "main", "image": "busybox", **command}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}})
    cluster.settle()


def test_command_output_is_logged_as_the_clock_advances(cluster: Cluster) -> None:
    pod(cluster, "p", "while true; do echo tick $((i++)); sleep 10; done")
    cluster.clock.advance(seconds=35)
    assert cluster.pods.get("p").logs() == "tick 0\ntick 1\ntick 2\ntick 3\n"


def test_followed_log_receives_lines_as_the_clock_advances(cluster: Cluster) -> None:
    pod(cluster, "p", "while true; do echo tick; sleep 10; done")
    stored = cluster._machinery.backend.services.get("", "pods", "default", "p")
    assert stored is not None
    stream = cluster._components.runtime.container_logs(stored, "main", LogOptions(follow=True))
    assert not isinstance(stream, bytes)
    assert stream.take() == [b"tick\n"]
    cluster.clock.advance(seconds=25)
    assert stream.take() == [b"tick\ntick\n"]
    cluster.pods.get("p").log("told")
    assert stream.take() == [b"told\n"]
    cluster.delete("pods", "p")
    cluster.settle()
    assert stream.take() == [] and stream.ended
    stream.close()


def test_log_lines_planned_by_a_pod_rule(cluster: Cluster) -> None:
    cluster.pods.on(name="p").logs(lambda number: f"line {number}", every=1, times=3, lines=["first"])
    pod(cluster, "p", "echo never")
    cluster.clock.advance(seconds=60)
    assert cluster.pods.get("p").logs() == "first\nline 0\nline 1\nline 2\n"


def test_previous_log_after_a_container_restart(cluster: Cluster) -> None:
    cluster.pods.on(name="p").run(seconds=5).exits(1)
    pod(cluster, "p", "echo begun; sleep 3; echo going on; sleep 3; echo never")
    cluster.pods.get("p").log("run one")
    cluster.clock.advance(seconds=5.5)
    cluster.settle()
    stored = cluster._machinery.backend.services.get("", "pods", "default", "p")
    assert stored is not None
    found = cluster._components.runtime.container_logs(stored, "main", LogOptions(previous=True))
    assert found == b"begun\nrun one\ngoing on\n"
    assert cluster.pods.get("p").logs() == "begun\n"


def test_log_of_a_finished_job_pod(cluster: Cluster) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
    template["spec"]["containers"][0]["command"] = ["sh", "-c", "echo begun; printf done"]  # type: ignore[index]
    cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}})
    cluster.settle()
    (made,) = cluster.list("pods")
    assert made["status"]["phase"] == "Succeeded"
    stored = cluster._machinery.backend.services.get("", "pods", "default", made["metadata"]["name"])
    assert stored is not None
    assert cluster._components.runtime.container_logs(stored, "c", LogOptions()) == b"begun\ndone"
