"""Watches: where they start, what they show, how they end."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from tests.differential import definitions, pacing
from tests.differential.client import JSON_PATCH, MERGE, PARTIAL, PARTIAL_LIST, TABLE, Client
from tests.differential.definitions import CRDS, wait_until_served, where
from tests.differential.registry import scenario
from tests.differential.sample_objects import widget_definition
from tests.differential.transports import Reply

QUIET = 0.4
STREAM = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
POD = {"containers": [{"name": "c", "image": "i"}]}


def at(c: Client, plural: str = "configmaps", name: str = "") -> str:
    return f"/api/v1/namespaces/{c.ns}/{plural}" + (f"/{name}" if name else "")


def make(c: Client, name: str, **labels: str) -> Reply:
    return c.post(at(c), {"metadata": {"name": name, "labels": {"run": c.id, **labels}}, "data": {"n": name}}, silent=True)


def watch(c: Client, path: str, query: dict[str, Any] | None = None, quiet: float = QUIET, **kw: Any) -> list[Any]:
    """Watch; a bookmark's revision, which no two runs share, is replaced by how it stands to the objects'.

    Bookmarks may follow each other at any time: one is kept. Pass `limit` to stop at the one that is awaited.
    """
    events = c.watch(path, query, quiet=quiet, **kw)
    newest = 0
    for i, event in reversed(list(enumerate(events))):
        if isinstance(event, dict) and "type" not in event:
            events[i] = {"type": "no event", "object": event}
        elif (
            i
            and isinstance(event, dict)
            and isinstance(events[i - 1], dict)
            and event["type"] == events[i - 1].get("type") == "BOOKMARK"
        ):
            del events[i]
    for event in events:
        for meta in metadata(event.get("object")) if isinstance(event, dict) else ():
            if event["type"] == "BOOKMARK":
                meta["resourceVersion"] = "not older" if int(meta["resourceVersion"]) >= newest else "older"
            else:
                newest = max(newest, int(meta["resourceVersion"]))
    return events


def metadata(value: Any) -> Iterator[dict[str, Any]]:
    """Every metadata with a numeric revision in a value, the rows of a Table included."""
    if isinstance(value, dict):
        meta = value.get("metadata")
        if isinstance(meta, dict) and str(meta.get("resourceVersion", "")).isdigit():
            yield meta
        for row in value.get("rows") or ():
            yield from metadata(row.get("object"))


def now(c: Client, plural: str = "configmaps") -> str:
    """The revision of the collection, after every cache has come that far."""
    return c.get(at(c, plural), silent=True).rv


def widgets(c: Client) -> str:
    """The collection of a custom resource of this scenario's own: its watch cache knows nothing older than itself."""
    body = widget_definition("widgets", "Widget", f"g{c.id}.example.com")
    c.post(CRDS, body, silent=True)
    wait_until_served(c, body)
    path = where(c, body)
    c.post(path, definitions.make(body, "w", spec={"size": 1}), silent=True)
    c.get(path, silent=True)
    return path


def no_widgets(c: Client) -> None:
    c.delete(f"{CRDS}/widgets.g{c.id}.example.com", silent=True)


@scenario
def a_watch_tells_what_happens(c: Client) -> None:
    """ADDED, MODIFIED, DELETED, in order, each with the whole object."""

    def then() -> None:
        c.post(at(c), {"metadata": {"name": "a"}, "data": {"k": "1"}})
        c.patch(at(c, name="a"), {"data": {"k": "2"}}, MERGE)
        c.post(at(c), {"metadata": {"name": "b"}})
        c.delete(at(c, name="a"))
        c.put(at(c, name="b"), {"metadata": {"name": "b"}, "data": {"x": "y"}})

    watch(c, at(c), {"resourceVersion": now(c)}, then=then)


@scenario
def a_watch_repeats_the_past_from_a_revision(c: Client) -> None:
    """Start exactly at: everything after the revision, nothing of it."""
    revisions = [now(c), make(c, "a").rv, make(c, "b").rv, c.patch(at(c, name="a"), {"data": {"z": "1"}}, MERGE, silent=True).rv]
    c.delete(at(c, name="b"), silent=True)
    revisions.append(make(c, "b").rv)
    now(c)
    for rv in revisions:
        watch(c, at(c), {"resourceVersion": rv})


@scenario
def a_watch_without_revision_starts_with_the_state(c: Client) -> None:
    """Unset, empty and 0: synthetic ADDED events, then what happens."""
    make(c, "b")
    make(c, "a")
    c.patch(at(c, name="b"), {"data": {"n": "new"}}, MERGE, silent=True)
    now(c)
    for query in ({}, {"resourceVersion": ""}, {"resourceVersion": "0"}):
        watch(c, at(c), query)
    watch(c, at(c), {"resourceVersion": "0"}, then=lambda: c.delete(at(c, name="a")) and None)
    watch(c, at(c), {}, then=lambda: make(c, "c") and None)


@scenario
def a_deleted_object_has_a_last_revision(c: Client) -> None:
    """DELETED carries the state before, at the revision of the deletion; a successor has another uid."""
    make(c, "a")
    rv = now(c)
    c.delete(at(c, name="a"))
    make(c, "a")
    now(c)
    events = watch(c, at(c), {"resourceVersion": rv})
    last = events[0]["object"]["metadata"]["resourceVersion"]
    watch(c, at(c), {"resourceVersion": last})


@scenario
def changes_of_labels_move_objects_in_and_out(c: Client) -> None:
    """A selector turns MODIFIED into ADDED or DELETED."""
    rv = now(c)
    make(c, "a", colour="red")
    make(c, "b")
    for labels in ({"colour": "blue"}, {"colour": "red"}, {"colour": "red", "x": "1"}, {"colour": None}):
        c.patch(at(c, name="a"), {"metadata": {"labels": labels}}, MERGE, silent=True)
    c.patch(at(c, name="b"), {"metadata": {"labels": {"colour": "red"}}}, MERGE, silent=True)
    c.delete(at(c, name="a"), silent=True)
    c.delete(at(c, name="b"), silent=True)
    now(c)
    for selector in ("colour=red", "colour!=red", "colour", "!colour", "colour in (red,blue)", "x", "nothing=here"):
        watch(c, at(c), {"resourceVersion": rv, "labelSelector": selector})


@scenario
def changes_of_fields_move_objects_in_and_out(c: Client) -> None:
    """Pods come and go with spec.nodeName and status.phase."""
    rv = now(c, "pods")
    c.post(at(c, "pods"), {"metadata": {"name": "p"}, "spec": POD}, silent=True)
    c.post(at(c, "pods", "p/binding"), {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}, silent=True)
    c.patch(at(c, "pods", "p/status"), {"status": {"phase": "Running"}}, MERGE, silent=True)
    c.patch(at(c, "pods", "p/status"), {"status": {"phase": "Succeeded"}}, MERGE, silent=True)
    c.delete(at(c, "pods", "p"), None, {"gracePeriodSeconds": "0"}, silent=True)
    now(c, "pods")
    for selector in (
        "spec.nodeName=n1",
        "spec.nodeName=",
        "status.phase=Running",
        "status.phase!=Running",
        "spec.nodeName=n1,status.phase=Pending",
    ):
        watch(c, at(c, "pods"), {"resourceVersion": rv, "fieldSelector": selector}, headers={"Accept": PARTIAL})


@scenario
def one_name_is_watched_by_field_selector(c: Client) -> None:
    """metadata.name=x, from the past, from 0, and for a name that does not exist yet."""
    rv = now(c)
    make(c, "a")
    make(c, "b")
    c.patch(at(c, name="b"), {"data": {"n": "2"}}, MERGE, silent=True)
    now(c)
    watch(c, at(c), {"resourceVersion": rv, "fieldSelector": "metadata.name=b"})
    watch(c, at(c), {"resourceVersion": "0", "fieldSelector": "metadata.name=a"})
    watch(c, at(c), {"fieldSelector": "metadata.name=c"}, then=lambda: make(c, "c") and None)
    watch(c, at(c), {"resourceVersion": rv, "fieldSelector": "metadata.name!=b"})
    watch(c, at(c), {"fieldSelector": "metadata.name=x,metadata.name=y"})
    watch(c, at(c), {"fieldSelector": "data.n=1"})
    watch(c, at(c), {"labelSelector": "a in"})


@scenario
def the_old_watch_paths_still_work(c: Client) -> None:
    """/watch/ before the collection or the name is a watch whatever the query says."""
    rv = now(c)
    make(c, "a")
    make(c, "b")
    now(c)
    root = f"/api/v1/watch/namespaces/{c.ns}/configmaps"
    watch(c, root, {"watch": "", "resourceVersion": rv})
    watch(c, root, {"watch": "false", "resourceVersion": rv})
    watch(c, root + "/a", {"resourceVersion": rv})
    watch(c, root + "/absent", {"resourceVersion": rv})
    watch(c, root + "/a", {"resourceVersion": rv, "fieldSelector": "metadata.name=b"})
    watch(c, "/api/v1/watch/configmaps", {"resourceVersion": rv, "labelSelector": f"run={c.id}"})
    watch(c, f"/api/v1/watch/namespaces/{c.ns}", {"resourceVersion": "0"})
    watch(c, "/api/v1/watch/namespaces", {"fieldSelector": f"metadata.name={c.ns}"})
    watch(c, f"/api/v1/watch/namespaces/{c.ns}/bogus")
    c.request("POST", root, {})


@scenario
def watching_the_path_of_an_object(c: Client) -> None:
    """A watch parameter on the path of one object."""
    make(c, "a")
    now(c)
    watch(c, at(c, name="a"), {"resourceVersion": "0"})
    watch(c, at(c, name="absent"), {"resourceVersion": "0"})
    watch(c, at(c, name="a"), {"watch": "false"})


@scenario
def watches_across_namespaces(c: Client) -> None:
    """One stream for all namespaces, in the order of revisions."""
    other = c.name("second")
    c.post("/api/v1/namespaces", {"metadata": {"name": other}}, silent=True)
    rv = now(c)
    make(c, "x")
    c.post(f"/api/v1/namespaces/{other}/configmaps", {"metadata": {"name": "a", "labels": {"run": c.id}}}, silent=True)
    make(c, "y")
    c.delete(f"/api/v1/namespaces/{other}/configmaps/a", silent=True)
    now(c)
    watch(c, "/api/v1/configmaps", {"resourceVersion": rv, "labelSelector": f"run={c.id}"})
    watch(c, "/api/v1/configmaps", {"resourceVersion": "0", "labelSelector": f"run={c.id}"})
    watch(c, "/api/v1/configmaps", {"resourceVersion": rv, "fieldSelector": f"metadata.namespace={other}"})
    watch(
        c,
        "/api/v1/namespaces",
        {"fieldSelector": f"metadata.name={other}"},
        then=lambda: c.delete(f"/api/v1/namespaces/{other}") and None,
    )


@scenario
def streaming_lists_start_with_the_state_and_a_bookmark(c: Client) -> None:
    """sendInitialEvents=true: ADDED for all, then a bookmark with the annotation, if bookmarks are allowed."""
    make(c, "b")
    make(c, "a")
    rv = now(c)
    for start, marks in itertools.product((None, "", "0", rv), (None, "true", "false")):
        query = {**STREAM, "resourceVersion": start, "allowWatchBookmarks": marks}
        watch(
            c, at(c), {k: v for k, v in query.items() if v is not None}, **({"quiet": 3, "limit": 3} if marks == "true" else {})
        )


@scenario
def streaming_lists_with_every_other_parameter(c: Client) -> None:
    """sendInitialEvents needs NotOlderThan, NotOlderThan needs sendInitialEvents."""
    make(c, "a")
    rv = now(c)
    for send, match, start in itertools.product((None, "true", "false"), (None, "NotOlderThan", "Exact", "Bogus"), (None, rv)):
        if (send, match) != ("true", "NotOlderThan"):
            watch(
                c,
                at(c),
                {
                    k: v
                    for k, v in {
                        "sendInitialEvents": send,
                        "resourceVersionMatch": match,
                        "resourceVersion": start,
                        "allowWatchBookmarks": "true",
                    }.items()
                    if v
                },
                quiet=0.3,
            )


@scenario
def a_streaming_list_goes_on_as_a_watch(c: Client) -> None:
    """After the bookmark come the changes, through the same selectors."""
    make(c, "a", in_="yes")
    make(c, "b")
    now(c)

    def then() -> None:
        c.patch(at(c, name="b"), {"metadata": {"labels": {"in_": "yes"}}}, MERGE)
        c.delete(at(c, name="a"))

    watch(c, at(c), {**STREAM, "allowWatchBookmarks": "true", "labelSelector": "in_"}, then=then, quiet=3, limit=4)


@scenario
def a_streaming_list_of_nothing(c: Client) -> None:
    """No objects, only the bookmark, which says nothing but kind, version, revision and annotation."""
    query = {**STREAM, "allowWatchBookmarks": "true"}
    for plural in ("configmaps", "pods", "services", "endpoints", "secrets", "persistentvolumeclaims"):
        watch(c, at(c, plural), query, quiet=3, limit=1)
    watch(c, f"/apis/apps/v1/namespaces/{c.ns}/deployments", query, quiet=3, limit=1)
    watch(c, at(c), query, headers={"Accept": TABLE}, quiet=3, limit=1)
    watch(c, at(c), query, headers={"Accept": PARTIAL}, quiet=3, limit=1)


@scenario
def a_bookmark_comes_before_the_end(c: Client) -> None:
    """With a short timeout a requested bookmark is sent shortly before the stream ends."""
    make(c, "a")
    watch(
        c,
        at(c),
        {"resourceVersion": now(c), "allowWatchBookmarks": "true", "timeoutSeconds": "4"},
        quiet=5,
        then=lambda: make(c, "b") and None,
    )


@scenario
def a_timeout_ends_the_stream(c: Client) -> None:
    """timeoutSeconds closes the watch without an event."""
    make(c, "a")
    watch(c, at(c), {"resourceVersion": now(c), "timeoutSeconds": "1"}, quiet=3)


@scenario
def wrong_watch_parameters(c: Client) -> None:
    """What is refused, and what is not even looked at."""
    make(c, "a")
    rv = now(c)
    for query in (
        {"resourceVersion": "x"},
        {"resourceVersion": "-1"},
        {"timeoutSeconds": "x"},
        {"allowWatchBookmarks": "x", "resourceVersion": rv},
        {"sendInitialEvents": "x"},
        {"limit": "1", "resourceVersion": rv},
        {"limit": "x"},
        {"continue": "x"},
        {"continue": "x", "resourceVersion": rv},
        {"resourceVersionMatch": "Exact", "resourceVersion": rv},
        {"resourceVersionMatch": "NotOlderThan"},
        {"watch": "true", "resourceVersion": rv},
        {"watch": "yes", "resourceVersion": rv},
        {"watch": "", "resourceVersion": rv},
        {"fieldSelector": "bogus=1"},
        {"labelSelector": "a=b=c"},
        {"dryRun": "All", "resourceVersion": rv},
    ):
        watch(c, at(c), query, quiet=0.3)


@scenario
def a_watch_from_the_future_waits(c: Client) -> None:
    """No event until the revision has come."""
    make(c, "a")
    now(c)
    watch(c, at(c), {"resourceVersion": "777777777777"}, then=lambda: make(c, "b") and None)
    watch(c, at(c), {**STREAM, "resourceVersion": "777777777777"}, quiet=4)


@scenario
def a_watch_from_before_the_history_is_gone(c: Client) -> None:
    """An ERROR event with a Status, 410 Expired, ends the stream."""
    path = widgets(c)
    watch(c, path, {"resourceVersion": "1"})
    watch(c, path, {"resourceVersion": "1", "allowWatchBookmarks": "true"}, headers={"Accept": TABLE})
    watch(c, path, {"resourceVersion": "1"}, headers={"Accept": PARTIAL})
    watch(c, path, {"resourceVersion": "0"})
    no_widgets(c)


@scenario
def rows_of_a_watch(c: Client) -> None:
    """As a Table each event is a Table of one row; only the first has column definitions."""
    rv = now(c)
    make(c, "a")
    make(c, "b")
    c.delete(at(c, name="a"), silent=True)
    now(c)
    for query in ({}, {"includeObject": "None"}, {"includeObject": "Object"}):
        watch(c, at(c), {"resourceVersion": rv, **query}, headers={"Accept": TABLE})
    watch(c, at(c), {"resourceVersion": "0"}, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    watch(
        c,
        at(c, "pods"),
        {"resourceVersion": now(c, "pods")},
        headers={"Accept": TABLE},
        then=lambda: c.post(at(c, "pods"), {"metadata": {"name": "p"}, "spec": POD}, silent=True) and None,
    )


@scenario
def metadata_only_watches(c: Client) -> None:
    """Each event holds a PartialObjectMetadata."""
    rv = now(c)
    make(c, "a", x="y")
    c.patch(at(c, name="a"), {"data": {"only": "data"}}, MERGE, silent=True)
    now(c)
    watch(c, at(c), {"resourceVersion": rv}, headers={"Accept": PARTIAL})
    watch(c, at(c), {"resourceVersion": "0"}, headers={"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"})
    watch(c, at(c), {"resourceVersion": rv}, headers={"Accept": PARTIAL_LIST})


@scenario
def encodings_of_a_stream(c: Client) -> None:
    """JSON with and without stream=watch; others are served in their framing or refused."""
    make(c, "a")
    rv = now(c)
    for accept in (
        "application/json;stream=watch",
        "application/json",
        "*/*",
        "application/*",
        "",
        "application/yaml",
        "application/cbor",
        "text/plain",
        "application/json;stream=other",
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf;stream=watch",
        "application/cbor-seq",
        "application/json;as=Bogus;v=v1;g=meta.k8s.io",
        "application/yaml, application/json",
        "application/json;charset=utf-8",
    ):
        watch(c, at(c), {"resourceVersion": rv}, headers={"Accept": accept}, quiet=0.3)


@scenario
def finalizers_show_as_modified_first(c: Client) -> None:
    """Deletion of a guarded object: MODIFIED with deletionTimestamp, then DELETED when the last guard goes."""
    rv = now(c)
    c.post(at(c), {"metadata": {"name": "f", "finalizers": ["example.com/a", "example.com/b"]}}, silent=True)
    c.delete(at(c, name="f"), silent=True)
    c.patch(at(c, name="f"), {"metadata": {"finalizers": ["example.com/b"]}}, MERGE, silent=True)
    c.patch(at(c, name="f"), {"metadata": {"finalizers": None}}, MERGE, silent=True)
    now(c)
    watch(c, at(c), {"resourceVersion": rv})


@scenario
def graceful_deletion_of_a_pod(c: Client) -> None:
    """A bound pod is MODIFIED while it terminates and DELETED when the kubelet is done."""
    rv = now(c, "pods")
    c.post(at(c, "pods"), {"metadata": {"name": "g"}, "spec": {**POD, "nodeName": "n1"}}, silent=True)
    c.delete(at(c, "pods", "g"), silent=True)
    c.delete(at(c, "pods", "g"), {"gracePeriodSeconds": 5}, silent=True)
    c.delete(at(c, "pods", "g"), {"gracePeriodSeconds": 0}, silent=True)
    now(c, "pods")
    watch(c, at(c, "pods"), {"resourceVersion": rv})


@scenario
def what_does_not_show(c: Client) -> None:
    """Refused writes, dry runs and writes that change nothing make no event."""
    made = make(c, "a").json

    def then() -> None:
        c.put(at(c, name="a"), made)
        c.patch(at(c, name="a"), {"data": {"n": "a"}}, MERGE)
        c.post(at(c), {"metadata": {"name": "dry"}}, {"dryRun": "All"})
        c.delete(at(c, name="a"), None, {"dryRun": "All"})
        c.post(at(c), {"metadata": {"name": "BAD"}})
        c.patch(at(c, name="a"), [{"op": "test", "path": "/data/n", "value": "b"}], JSON_PATCH)
        c.post(at(c, "secrets"), {"metadata": {"name": "other-kind"}})
        make(c, "last")

    watch(c, at(c), {"resourceVersion": now(c)}, then=then)


@scenario
def a_deleted_collection_shows_one_by_one(c: Client) -> None:
    """deletecollection makes a DELETED event for each object."""
    for name in ("a", "b", "c"):
        make(c, name, even="yes" if name == "b" else "no")
    watch(
        c,
        at(c),
        {"resourceVersion": now(c), "fieldSelector": "metadata.name=b"},
        then=lambda: c.delete(at(c), None, {"labelSelector": "even=yes"}) and None,
    )
    watch(c, at(c), {"resourceVersion": now(c), "fieldSelector": "metadata.name=c"}, then=lambda: c.delete(at(c)) and None)


@scenario
def two_versions_of_one_stream(c: Client) -> None:
    """A watch speaks the version of its path, whatever version wrote."""
    v1, v2 = (f"/apis/autoscaling/{v}/namespaces/{c.ns}/horizontalpodautoscalers" for v in ("v1", "v2"))
    rv = c.get(v2, silent=True).rv
    target = {"kind": "Deployment", "name": "d"}
    c.post(
        v1,
        {"metadata": {"name": "one"}, "spec": {"maxReplicas": 2, "targetCPUUtilizationPercentage": 50, "scaleTargetRef": target}},
        silent=True,
    )
    c.post(v2, {"metadata": {"name": "two"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}, silent=True)
    c.get(v1, silent=True)
    watch(c, v1, {"resourceVersion": rv})
    watch(c, v2, {"resourceVersion": rv})


@scenario
def events_are_watched_without_a_cache(c: Client) -> None:
    """Watches of a kind that is not cached: from a revision, from 0, unset, with bookmarks, from the beginning of time."""

    def event(name: str) -> Reply:
        return c.post(
            at(c, "events"),
            {"metadata": {"name": name}, "involvedObject": {"namespace": c.ns, "kind": "Pod", "name": name}},
            silent=True,
        )

    rv = event("a").rv
    event("b")
    c.delete(at(c, "events", "a"), silent=True)
    for query in (
        {"resourceVersion": rv},
        {"resourceVersion": "0"},
        {},
        {"fieldSelector": "involvedObject.name=b"},
        {**STREAM},
        {**STREAM, "resourceVersion": rv},
        {"resourceVersion": rv, "labelSelector": "!a"},
    ):
        watch(c, at(c, "events"), query)
    watch(c, at(c, "events"), {**STREAM, "allowWatchBookmarks": "true"}, quiet=3, limit=2)


@scenario
def subresources_show_in_the_watch_of_their_object(c: Client) -> None:
    """status and scale are the same object with the same revisions."""
    path = f"/apis/apps/v1/namespaces/{c.ns}/deployments"
    c.post(
        path,
        {
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}},
        },
        silent=True,
    )
    rv = c.get(path, silent=True).rv
    c.patch(path + "/d/status", {"status": {"replicas": 1}}, MERGE, silent=True)
    c.patch(path + "/d/scale", {"spec": {"replicas": 3}}, MERGE, silent=True)
    c.get(path, silent=True)
    watch(c, path, {"resourceVersion": rv})
    watch(c, path + "/d/status", {"resourceVersion": rv})
    watch(c, path + "/d/scale", {"resourceVersion": rv})


@scenario
def watching_where_there_is_nothing(c: Client) -> None:
    """Unknown kinds, groups and namespaces; virtual kinds; alice, who may not."""
    watch(c, f"/api/v1/namespaces/{c.ns}/nothings")
    watch(c, "/apis/nope.example.com/v1/things")
    watch(c, f"/api/v1/namespaces/{c.name('absent')}/configmaps", {"resourceVersion": "0"})
    watch(c, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    watch(c, "/api/v1/componentstatuses")
    watch(c, at(c), headers={"Authorization": "Bearer user-token"})
    watch(c, at(c), headers={"Authorization": "Bearer nobody"})
    c.request("POST", at(c), {"metadata": {"name": "posted"}}, {"watch": "1"})
    c.request("DELETE", at(c, name="posted"), None, {"watch": "1"})
    c.request("HEAD", at(c), None, {"watch": "1", "timeoutSeconds": "1"})


@scenario
def expired_watches(c: Client) -> None:
    """A revision that is compacted in the store may still be in the cache; one before the cache is 410 (needs a server that compacts often)."""
    if "compaction" not in c.features:
        return
    rv = make(c, "a").rv
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": c.ns}}
    old = c.post(at(c, "events"), event, silent=True).rv
    make(c, "b")
    for _ in range(60):
        if c.get(at(c), {"resourceVersion": rv, "resourceVersionMatch": "Exact"}, silent=True).status == 410:
            break
        pacing.sleep(0.5)
    watch(c, at(c), {"resourceVersion": rv})
    watch(c, at(c, "events"), {"resourceVersion": old})
    watch(c, at(c, "events"), {"resourceVersion": "2"})
    watch(c, at(c, "events"), {"resourceVersion": old}, headers={"Accept": TABLE})
    watch(c, at(c), {**STREAM, "resourceVersion": rv, "allowWatchBookmarks": "true"}, limit=3)
