"""Watches: starting points, events and their order, and the end of a watch.

No event may be lost, doubled or out of order. The rules of sendInitialEvents are those of the API concepts page of the
Kubernetes documentation (Streaming lists).
"""

from __future__ import annotations

import http.client
import json
import urllib.parse
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.behaviour.conftest import Api, Reply

MERGE = "application/merge-patch+json"
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
STREAM = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


class Watch:
    """An open watch; `next` waits for an event, None is its end."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer

    def next(self) -> dict[str, Any] | None:
        line = self._answer.readline()
        return json.loads(line) if line else None

    def take(self, count: int) -> list[dict[str, Any]]:
        events = [self.next() for _ in range(count)]
        return [event for event in events if event is not None]


@contextmanager
def watching(api: Api, path: str, query: dict[str, str]) -> Iterator[Watch]:
    connection = api.connect(timeout=60)
    try:
        connection.request("GET", f"{path}?{urllib.parse.urlencode({'watch': 'true', **query})}", headers=api.headers())
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        yield Watch(answer)
    finally:
        connection.close()


def create(api: Api, name: str, **labels: str) -> Reply:
    return api.post(api.path("configmaps"), {"metadata": {"name": name, "labels": labels}})


def label(api: Api, name: str, **labels: str | None) -> Reply:
    return api.patch(api.path("configmaps", name), {"metadata": {"labels": labels}}, MERGE)


def types_and_names(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def revision(reply: Reply) -> str:
    return str(reply.at("metadata", "resourceVersion"))


def revisions(events: list[dict[str, Any]]) -> list[int]:
    return [int(event["object"]["metadata"]["resourceVersion"]) for event in events]


# ---------------------------------------------------------------- starting points


@pytest.mark.parametrize("start", ["", "0"])
def test_watch_without_resource_version_starts_with_existing_objects(api: Api, start: str) -> None:
    create(api, "b")
    create(api, "a")
    with watching(api, api.path("configmaps"), {"resourceVersion": start} if start else {}) as watch:
        assert types_and_names(watch.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
        create(api, "c")
        assert types_and_names(watch.take(1)) == [("ADDED", "c")]


def test_watch_from_resource_version_returns_later_events(api: Api) -> None:
    first = revision(create(api, "a"))
    create(api, "b")
    changed = revision(label(api, "a", x="y"))
    api.delete(api.path("configmaps", "b"))
    with watching(api, api.path("configmaps"), {"resourceVersion": first}) as watch:
        events = watch.take(3)
    assert types_and_names(events) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    assert revisions(events)[1] == int(changed)
    assert revisions(events) == sorted(set(revisions(events)))


def test_watch_continues_from_a_list(api: Api) -> None:
    create(api, "a")
    listed = api.get(api.path("configmaps"))
    create(api, "b")
    with watching(api, api.path("configmaps"), {"resourceVersion": revision(listed)}) as watch:
        assert types_and_names(watch.take(1)) == [("ADDED", "b")]


def test_watch_resumes_from_the_last_event(api: Api) -> None:
    start = revision(create(api, "first"))
    seen: list[tuple[str, str]] = []
    for number in range(6):
        create(api, f"n{number}")
    for count in (1, 2, 3):
        with watching(api, api.path("configmaps"), {"resourceVersion": start}) as watch:
            events = watch.take(count)
        seen += types_and_names(events)
        start = str(revisions(events)[-1])
    assert seen == [("ADDED", f"n{number}") for number in range(6)]


def test_watch_with_non_numeric_resource_version_returns_500(api: Api) -> None:
    reply = api.get(api.path("configmaps"), {"watch": "1", "resourceVersion": "x"})
    syntax = 'strconv.ParseUint: parsing "x": invalid syntax'
    assert (reply.status, reply.at("message")) == (500, f'resourceVersion: Invalid value: "x": {syntax}')


def test_watch_from_an_expired_resource_version_returns_410_event(api: Api) -> None:
    """The watch sends an ERROR event with code 410; a new list recovers the missed changes."""
    create(api, "a")
    api.compact()
    with watching(api, api.path("configmaps"), {"resourceVersion": "1"}) as watch:
        event = watch.next()
        assert event is not None
        if event["type"] != "ERROR":
            pytest.skip("the server is too new to have compacted its history")
        assert watch.next() is None
    status = event["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")
    listed = api.get(api.path("configmaps"))
    create(api, "b")
    with watching(api, api.path("configmaps"), {"resourceVersion": revision(listed)}) as watch:
        assert types_and_names(watch.take(1)) == [("ADDED", "b")]


# ---------------------------------------------------------------- events


def test_deleted_event_has_its_own_resource_version(api: Api) -> None:
    made = create(api, "a", x="y")
    api.delete(api.path("configmaps", "a"))
    with watching(api, api.path("configmaps"), {"resourceVersion": revision(made)}) as watch:
        (event,) = watch.take(1)
    assert types_and_names([event]) == [("DELETED", "a")]
    assert event["object"]["metadata"]["labels"] == {"x": "y"}
    assert revisions([event])[0] > int(revision(made))


def test_writes_without_changes_cause_no_event(api: Api) -> None:
    made = create(api, "a", x="y")
    assert revision(label(api, "a", x="y")) == revision(made)
    label(api, "a", x="z")
    with watching(api, api.path("configmaps"), {"resourceVersion": revision(made)}) as watch:
        (event,) = watch.take(1)
    assert event["object"]["metadata"]["labels"] == {"x": "z"}


def test_dry_runs_cause_no_event(api: Api) -> None:
    made = create(api, "a")
    api.post(api.path("configmaps"), {"metadata": {"name": "b"}}, {"dryRun": "All"})
    api.delete(api.path("configmaps", "a"), None, {"dryRun": "All"})
    create(api, "c")
    with watching(api, api.path("configmaps"), {"resourceVersion": revision(made)}) as watch:
        assert types_and_names(watch.take(1)) == [("ADDED", "c")]


def test_events_of_an_object_with_finalizers(api: Api) -> None:
    path = api.path("configmaps", "a")
    made = api.post(api.path("configmaps"), {"metadata": {"name": "a", "finalizers": ["example.com/f"]}})
    api.delete(path)
    api.patch(path, {"metadata": {"finalizers": None}}, MERGE)
    with watching(api, api.path("configmaps"), {"resourceVersion": revision(made)}) as watch:
        events = watch.take(2)
    assert types_and_names(events) == [("MODIFIED", "a"), ("DELETED", "a")]
    assert all("deletionTimestamp" in event["object"]["metadata"] for event in events)


def test_label_selector_watch_sends_added_and_deleted_events(api: Api) -> None:
    """Objects that start or stop to match are sent as ADDED or DELETED."""
    start = revision(create(api, "a", x="no"))
    label(api, "a", x="yes")
    label(api, "a", y="more")
    label(api, "a", x="no")
    label(api, "a", y="less")
    label(api, "a", x="yes")
    api.delete(api.path("configmaps", "a"))
    with watching(api, api.path("configmaps"), {"resourceVersion": start, "labelSelector": "x=yes"}) as watch:
        events = watch.take(5)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    assert events[2]["object"]["metadata"]["labels"] == {"x": "yes", "y": "more"}  # as it was when it matched
    assert revisions(events) == sorted(set(revisions(events)))


def test_watch_with_field_selector(api: Api) -> None:
    start = revision(create(api, "a"))
    create(api, "b")
    create(api, "c")
    label(api, "b", x="y")
    with watching(api, api.path("configmaps"), {"resourceVersion": start, "fieldSelector": "metadata.name=b"}) as watch:
        assert types_and_names(watch.take(2)) == [("ADDED", "b"), ("MODIFIED", "b")]


def test_watch_across_all_namespaces(api: Api) -> None:
    start = revision(create(api, "a"))
    create(api, "b")
    query = {"resourceVersion": start, "fieldSelector": f"metadata.namespace={api.namespace}"}
    with watching(api, "/api/v1/configmaps", query) as watch:
        assert types_and_names(watch.take(1)) == [("ADDED", "b")]


def test_deprecated_watch_paths(api: Api) -> None:
    create(api, "a")
    create(api, "b")
    for path, expected in (
        (f"/api/v1/watch/namespaces/{api.namespace}/configmaps", [("ADDED", "a"), ("ADDED", "b")]),
        (f"/api/v1/watch/namespaces/{api.namespace}/configmaps/b", [("ADDED", "b")]),
    ):
        with watching(api, path, {}) as watch:
            assert types_and_names(watch.take(len(expected))) == expected


# ---------------------------------------------------------------- streaming lists and bookmarks


@pytest.mark.parametrize("start", ["", "0", "own"])
def test_watch_list(api: Api, start: str) -> None:
    create(api, "b")
    last = create(api, "a")
    query = {**STREAM, "resourceVersion": revision(last) if start == "own" else start}
    with watching(api, api.path("configmaps"), query) as watch:
        events = watch.take(3)
        assert types_and_names(events) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")]
        end = events[-1]["object"]
        assert (end["kind"], end["apiVersion"], end["metadata"]["annotations"]) == ("ConfigMap", "v1", INITIAL_EVENTS_END)
        assert int(end["metadata"]["resourceVersion"]) >= int(revision(last))
        create(api, "c")
        assert types_and_names(watch.take(1)) == [("ADDED", "c")]


def test_watch_list_with_label_selector(api: Api) -> None:
    create(api, "a", x="y")
    create(api, "b")
    with watching(api, api.path("configmaps"), {**STREAM, "labelSelector": "x=y"}) as watch:
        assert types_and_names(watch.take(2)) == [("ADDED", "a"), ("BOOKMARK", "")]


def test_watch_list_of_an_empty_collection(api: Api) -> None:
    with watching(api, api.path("leases", group="coordination.k8s.io/v1"), STREAM) as watch:
        assert types_and_names(watch.take(1)) == [("BOOKMARK", "")]


def test_send_initial_events_false(api: Api) -> None:
    made = create(api, "a")
    query = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan", "resourceVersion": revision(made)}
    with watching(api, api.path("configmaps"), query) as watch:
        create(api, "b")
        assert types_and_names(watch.take(1)) == [("ADDED", "b")]


FORBIDDEN_WITHOUT_MATCH = (
    "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
)
FORBIDDEN_MATCH = (
    "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
)

UNSUPPORTED_MATCH = 'resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"'


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"sendInitialEvents": "true"}, FORBIDDEN_WITHOUT_MATCH),
        ({"sendInitialEvents": "false"}, FORBIDDEN_WITHOUT_MATCH),
        ({"resourceVersionMatch": "NotOlderThan"}, FORBIDDEN_MATCH),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "5"}, f"[{FORBIDDEN_MATCH}, {UNSUPPORTED_MATCH}]"),
        ({"sendInitialEvents": "true", "resourceVersionMatch": "Exact"}, f"[{FORBIDDEN_WITHOUT_MATCH}, {UNSUPPORTED_MATCH}]"),
    ],
)
def test_invalid_option_combinations_return_422(api: Api, query: dict[str, str], problem: str) -> None:
    reply = api.get(api.path("configmaps"), {"watch": "1", **query})
    assert (reply.status, reply.at("message")) == (422, f'ListOptions.meta.k8s.io "" is invalid: {problem}')


def test_send_initial_events_is_forbidden_for_lists(api: Api) -> None:
    reply = api.get(api.path("configmaps"), {"sendInitialEvents": "true"})
    problem = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
    assert (reply.status, reply.at("message")) == (422, f'ListOptions.meta.k8s.io "" is invalid: {problem}')


def test_watch_timeout_is_preceded_by_a_bookmark(api: Api) -> None:
    """Two seconds before its timeout a watch receives a bookmark, if there were changes."""
    made = create(api, "a")
    seconds = 50 if api.is_ours else 4  # of a clock that the test moves, the time that the test itself takes is a small part
    query = {
        "resourceVersion": revision(made),
        "timeoutSeconds": f"{seconds}",
        "allowWatchBookmarks": "true",
        "labelSelector": "x",
    }
    with (
        watching(api, api.path("configmaps"), query) as marked,
        watching(api, api.path("configmaps"), {**query, "allowWatchBookmarks": "false"}) as unmarked,
    ):
        other = create(api, "b")
        api.elapse(seconds)
        bookmark = marked.next()
        assert bookmark is not None
        assert (bookmark["type"], bookmark["object"]["metadata"].keys()) == ("BOOKMARK", {"resourceVersion"})
        assert revisions([bookmark])[0] >= int(revision(other))
        assert marked.next() is None
        assert unmarked.next() is None


# ---------------------------------------------------------------- concurrent watches


def test_concurrent_watches_receive_every_event_once(api: Api) -> None:
    start = revision(create(api, "first"))
    path = api.path("configmaps")
    with (
        watching(api, path, {"resourceVersion": start}) as one,
        watching(api, path, {"resourceVersion": start}) as two,
        watching(api, path, {"resourceVersion": start, "labelSelector": "parity=even"}) as even,
    ):
        for number in range(20):
            create(api, f"n{number:02}", parity="odd" if number % 2 else "even")
        for number in range(0, 20, 5):
            api.delete(api.path("configmaps", f"n{number:02}"))
        seen = one.take(24)
        assert two.take(24) == seen
        assert even.take(12) == [event for event in seen if event["object"]["metadata"]["labels"]["parity"] == "even"]
    assert types_and_names(seen) == [("ADDED", f"n{n:02}") for n in range(20)] + [
        ("DELETED", f"n{n:02}") for n in range(0, 20, 5)
    ]
    assert revisions(seen) == sorted(set(revisions(seen)))


def test_closing_watches_does_not_affect_other_watches(api: Api) -> None:
    start = revision(create(api, "first"))
    path = api.path("configmaps")
    with watching(api, path, {"resourceVersion": start}) as stays:
        for number in range(5):
            with watching(api, path, {"resourceVersion": start}):
                create(api, f"n{number}")
        assert types_and_names(stays.take(5)) == [("ADDED", f"n{number}") for number in range(5)]


def test_streaming_lists_are_compressed_in_members_that_can_be_read_at_once(api) -> None:
    """Each portion is a gzip member of its own; a watch that does not begin with the state is not compressed."""
    accept = {**api.headers(), "Accept-Encoding": "gzip"}
    path = api.path("configmaps")
    connection = api.connect()
    try:
        connection.request(
            "GET", f"{path}?{urllib.parse.urlencode({'watch': '1', 'timeoutSeconds': '30', **STREAM})}", headers=accept
        )
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Content-Encoding"], answer.headers["Vary"]) == (200, "gzip", "Accept-Encoding")
        reader = _Members(answer)
        types = []
        while not types or types[-1] != "BOOKMARK":
            types += [event["type"] for event in reader.next_events()]
        api.post(path, {"metadata": {"name": "later"}})
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in reader.next_events()] == [("ADDED", "later")]
    finally:
        connection.close()
    for query in ({"resourceVersion": "0"}, {**STREAM, "allowWatchBookmarks": "false"}):
        plain = api.get(path, {"watch": "1", "timeoutSeconds": "1", **query}, headers={"Accept-Encoding": "gzip"}, lines=1)
        assert "content-encoding" not in plain.headers


#: The bytes before the first block of a gzip member; the bit of a block that is the last one.
_GZIP_HEADER, _LAST_BLOCK = 10, 1


class _Members:
    """Reads the events in the gzip members of a response."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer
        self._rest = b""

    def next_events(self) -> list[dict[str, Any]]:
        """The events of the next member."""
        decompressor, text = zlib.decompressobj(16 + zlib.MAX_WBITS), b""
        while not decompressor.eof:
            data = self._rest or self._answer.read1()
            assert data
            if not text:
                assert data[_GZIP_HEADER] & _LAST_BLOCK == 0  # the reader of Go returns the last block only with the next member
            self._rest = b""
            text += decompressor.decompress(data)
        self._rest = decompressor.unused_data
        return [json.loads(line) for line in text.splitlines()]
