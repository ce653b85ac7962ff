"""Collections: pages, selectors, revisions, and the reading of single objects at a revision."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from typing import Any

from tests.differential import pacing
from tests.differential.client import MERGE, PARTIAL, PARTIAL_LIST, TABLE, Client
from tests.differential.registry import scenario
from tests.differential.transports import Reply

FUTURE = "999999999999"


def cms(c: Client, name: str = "") -> str:
    return f"/api/v1/namespaces/{c.ns}/configmaps" + (f"/{name}" if name else "")


def fill(c: Client, *names: str, **labels: str) -> list[Reply]:
    """ConfigMaps with these names, made without notice; a list first, so that every cache has seen them."""
    made = [
        c.post(cms(c), {"metadata": {"name": n, "labels": {"run": c.id, "n": n, **labels}}, "data": {"n": n}}, silent=True)
        for n in names
    ]
    c.get(cms(c), silent=True)
    return made


def token(c: Client, limit: int = 1, **query: Any) -> str:
    return c.get(cms(c), {"limit": limit, **query}, silent=True).get("metadata", "continue", default="")


@scenario
def an_empty_collection_is_a_list_without_items(c: Client) -> None:
    """Every kind has its list kind, and items is [], never null."""
    for path in (
        "/api/v1/namespaces/{}/pods",
        "/api/v1/namespaces/{}/services",
        "/api/v1/namespaces/{}/endpoints",
        "/api/v1/namespaces/{}/events",
        "/apis/apps/v1/namespaces/{}/deployments",
        "/apis/batch/v1/namespaces/{}/jobs",
        "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
        "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
        "/apis/events.k8s.io/v1/namespaces/{}/events",
    ):
        c.get(path.format(c.ns))
    for path in (
        "/api/v1/nodes",
        "/api/v1/persistentvolumes",
        "/apis/storage.k8s.io/v1/storageclasses",
        "/api/v1/pods",
        "/apis/apps/v1/deployments",
    ):
        c.get(path, {"labelSelector": f"nothing={c.id}"})


@scenario
def items_come_in_order_of_their_names(c: Client) -> None:
    """The order is that of the keys, not of creation."""
    fill(c, "b", "a.z", "a", "a-b", "10", "9", "ab", "a0")
    c.get(cms(c))
    c.get(cms(c), {"labelSelector": "n in (b,9,a-b)"})


@scenario
def items_carry_no_kind(c: Client) -> None:
    """Kind and apiVersion stand once, in the list; a single object has its own."""
    fill(c, "one")
    c.get(cms(c))
    c.get(cms(c, "one"))
    c.get(cms(c), headers={"Accept": PARTIAL_LIST})
    c.get(cms(c), headers={"Accept": PARTIAL})
    c.get(cms(c, "one"), headers={"Accept": PARTIAL_LIST})


@scenario
def limit_and_continue_walk_the_collection(c: Client) -> None:
    """remainingItemCount counts down, and the last page has neither it nor a token."""
    fill(c, "a", "b", "c", "d", "e")
    for limit in ("1", "2", "3", "4", "5", "6"):
        query = {"limit": limit}
        for _ in range(6):
            reply = c.get(cms(c), query)
            if not reply.get("metadata", "continue"):
                break
            query = {"limit": limit, "continue": reply.get("metadata", "continue")}


@scenario
def the_page_size_may_change_on_the_way(c: Client) -> None:
    """A token goes with any limit, or with none."""
    fill(c, "a", "b", "c", "d", "e", "f")
    first = token(c, 1)
    c.get(cms(c), {"limit": "3", "continue": first})
    c.get(cms(c), {"continue": first})
    c.get(cms(c), {"limit": "0", "continue": first})
    c.get(cms(c), {"limit": "100", "continue": first})
    c.get(cms(c), {"limit": "1", "continue": first})
    c.get(cms(c), {"limit": "1", "continue": first})


@scenario
def pages_show_the_state_of_the_first_one(c: Client) -> None:
    """What is made, changed or deleted in between does not show until a new list."""
    fill(c, "a", "c", "e", "g")
    first = c.get(cms(c), {"limit": "1"})
    c.post(cms(c), {"metadata": {"name": "b"}})
    c.delete(cms(c, "c"))
    c.patch(cms(c, "e"), {"data": {"n": "changed"}}, MERGE)
    second = c.get(cms(c), {"limit": "2", "continue": first.get("metadata", "continue")})
    c.delete(cms(c, "g"))
    third = c.get(cms(c), {"limit": "2", "continue": second.get("metadata", "continue")})
    c.get(cms(c), {"limit": "9"})
    c.get(cms(c), {"limit": "9", "continue": first.get("metadata", "continue")})
    same = {r.rv for r in (first, second, third)}
    c.get(cms(c), {"limit": "1" if len(same) == 1 else "2"})  # all pages said the same revision


@scenario
def selectors_may_change_between_pages(c: Client) -> None:
    """The token remembers a place and a revision, not the selector."""
    fill(c, "a", "c", "e", colour="red")
    fill(c, "b", "d", "f", colour="blue")
    first = token(c, 1, labelSelector="colour=red")
    for selector in ("colour=red", "colour=blue", "colour", "!colour", "colour in (red", ""):
        c.get(cms(c), {"limit": "1", "labelSelector": selector, "continue": first})
    c.get(cms(c), {"limit": "1", "continue": first})
    c.get(cms(c), {"fieldSelector": "metadata.name=e", "continue": first})
    c.get(cms(c), {"fieldSelector": "metadata.name=a", "continue": first})


@scenario
def no_remaining_count_with_a_selector(c: Client) -> None:
    """Pages of a selected collection do not know how much is left."""
    fill(c, "a", "b", "c", "d", colour="red")
    fill(c, "e", "f", colour="blue")
    for query in (
        {"labelSelector": "colour=red"},
        {"labelSelector": "colour"},
        {"fieldSelector": "metadata.name!=a"},
        {"labelSelector": "colour=blue"},
        {"fieldSelector": "metadata.name=c"},
        {"labelSelector": "colour=none"},
        {"labelSelector": ""},
    ):
        reply = c.get(cms(c), {**query, "limit": "2"})
        if reply.get("metadata", "continue"):
            c.get(cms(c), {**query, "limit": "2", "continue": reply.get("metadata", "continue")})


@scenario
def continue_excludes_a_revision(c: Client) -> None:
    """resourceVersion and resourceVersionMatch have no place beside a token."""
    fill(c, "a", "b", "c")
    rv = c.get(cms(c), silent=True).rv
    place = token(c)
    for query in (
        {"resourceVersion": rv},
        {"resourceVersion": "0"},
        {"resourceVersion": "1"},
        {"resourceVersion": ""},
        {"resourceVersion": "x"},
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "NotOlderThan"},
        {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan"},
        {"resourceVersion": rv, "resourceVersionMatch": "Exact"},
        {"sendInitialEvents": "true"},
    ):
        c.get(cms(c), {"limit": "1", "continue": place, **query})


@scenario
def every_cell_of_the_revision_table(c: Client) -> None:
    """resourceVersion x resourceVersionMatch x limit x continue for list."""
    past = fill(c, "a", "b", "c")[1].rv
    now = c.get(cms(c)).rv
    place = token(c)
    for rv, match, limit, follow in itertools.product(
        (None, "0", past, now), (None, "Exact", "NotOlderThan"), (None, "2"), (None, place)
    ):
        query = {"resourceVersion": rv, "resourceVersionMatch": match, "limit": limit, "continue": follow}
        c.get(cms(c), {k: v for k, v in query.items() if v is not None})


@scenario
def the_revision_of_a_list_is_honest(c: Client) -> None:
    """Exact gives the very revision asked for, even one that belongs to nothing here."""
    made = fill(c, "a", "b", "c")
    c.delete(cms(c, "b"))
    for reply in made:
        exact = c.get(cms(c), {"resourceVersion": reply.rv, "resourceVersionMatch": "Exact"})
        c.get(cms(c), {"resourceVersion": reply.rv, "limit": "1"})
        c.get(cms(c, "c" if exact.rv == reply.rv else "revision-differs"))
    c.get(cms(c), {"resourceVersion": made[2].rv, "resourceVersionMatch": "NotOlderThan"})


@scenario
def exact_lists_travel_in_time(c: Client) -> None:
    """Each past revision shows what was there, selectors included."""
    made = fill(c, "a", "b")
    patched = c.patch(cms(c, "a"), {"metadata": {"labels": {"n": "z"}}}, MERGE)
    gone = c.delete(cms(c, "b"))
    back = c.post(cms(c), {"metadata": {"name": "b"}})
    for rv in (made[0].rv, made[1].rv, patched.rv, back.rv):
        c.get(cms(c), {"resourceVersion": rv, "resourceVersionMatch": "Exact"})
        c.get(cms(c), {"resourceVersion": rv, "resourceVersionMatch": "Exact", "labelSelector": "n=a"})
        c.get(cms(c), {"resourceVersion": rv, "resourceVersionMatch": "Exact", "fieldSelector": "metadata.name=b"})
        c.get(cms(c), {"resourceVersion": rv, "resourceVersionMatch": "Exact", "limit": "1"})
    c.get(cms(c), {"resourceVersion": gone.rv or back.rv, "limit": "5"})


@scenario
def pages_of_a_past_revision(c: Client) -> None:
    """limit with an exact revision, followed by its token."""
    rv = fill(c, "a", "b", "c", "d")[2].rv
    c.delete(cms(c, "a"))
    for query in (
        {"resourceVersion": rv, "limit": "1"},
        {"resourceVersion": rv, "limit": "1", "resourceVersionMatch": "Exact"},
        {"resourceVersion": rv, "limit": "1", "resourceVersionMatch": "NotOlderThan"},
        {"resourceVersion": "0", "limit": "1"},
    ):
        reply = c.get(cms(c), query)
        while reply.get("metadata", "continue"):
            reply = c.get(cms(c), {"limit": "2", "continue": reply.get("metadata", "continue")})


@scenario
def the_revision_parameter_of_get(c: Client) -> None:
    """Unset is most recent, 0 is any, a number is not older than; Match is not for get."""
    made = fill(c, "a")[0]
    newer = c.patch(cms(c, "a"), {"data": {"x": "y"}}, MERGE)
    c.get(cms(c))
    for query in (
        None,
        {"resourceVersion": ""},
        {"resourceVersion": "0"},
        {"resourceVersion": made.rv},
        {"resourceVersion": newer.rv},
        {"resourceVersion": "1"},
        {"resourceVersion": "x"},
        {"resourceVersion": "-1"},
        {"resourceVersion": "1.0"},
        {"resourceVersionMatch": "Exact"},
        {"resourceVersion": made.rv, "resourceVersionMatch": "Exact"},
        {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan"},
        {"resourceVersionMatch": "Bogus"},
        {"limit": "1"},
        {"limit": "x"},
        {"continue": "x"},
        {"watch": "false"},
        {"labelSelector": "a=b"},
        {"fieldSelector": "metadata.name=zzz"},
        {"fieldSelector": "x"},
    ):
        c.get(cms(c, "a"), query)
    c.get(cms(c, "absent"), {"resourceVersion": "0"})
    c.get(cms(c, "absent"), {"resourceVersion": made.rv})


@scenario
def a_revision_from_the_future_times_out_for_get(c: Client) -> None:
    """504 with Retry-After and a ResourceVersionTooLarge cause."""
    fill(c, "a")
    c.get(cms(c, "a"), {"resourceVersion": FUTURE})


@scenario
def a_revision_from_the_future_times_out_for_list(c: Client) -> None:
    """504 with Retry-After and a ResourceVersionTooLarge cause."""
    fill(c, "a")
    c.get(cms(c), {"resourceVersion": FUTURE, "resourceVersionMatch": "NotOlderThan"})


@scenario
def a_revision_from_the_future_exactly(c: Client) -> None:
    """An exact list waits for nothing."""
    fill(c, "a")
    c.get(cms(c), {"resourceVersion": FUTURE, "resourceVersionMatch": "Exact"})
    c.get(cms(c), {"resourceVersion": FUTURE, "limit": "1"})


@scenario
def events_are_not_cached(c: Client) -> None:
    """The same questions to a kind without watch cache."""
    path = f"/api/v1/namespaces/{c.ns}/events"
    made = [
        c.post(path, {"metadata": {"name": n}, "involvedObject": {"namespace": c.ns, "name": n, "kind": "Pod"}}, silent=True)
        for n in ("a", "b", "c")
    ]
    for query in (
        {},
        {"resourceVersion": "0"},
        {"resourceVersion": made[0].rv},
        {"resourceVersion": made[0].rv, "resourceVersionMatch": "Exact"},
        {"limit": "1"},
        {"resourceVersion": made[1].rv, "limit": "2"},
        {"resourceVersion": "0", "limit": "2"},
        {"resourceVersion": made[1].rv, "resourceVersionMatch": "NotOlderThan", "limit": "2"},
        {"resourceVersion": FUTURE},
        {"resourceVersion": FUTURE, "resourceVersionMatch": "Exact"},
        {"resourceVersion": FUTURE, "resourceVersionMatch": "NotOlderThan"},
        {"fieldSelector": "involvedObject.name=b"},
        {"fieldSelector": "involvedObject.name!=b,reason="},
    ):
        c.get(path, query)
    c.get(path + "/a", {"resourceVersion": FUTURE})
    c.get(path + "/a", {"resourceVersion": made[2].rv})


@scenario
def wrong_revisions_and_matches(c: Client) -> None:
    """400s and 422s with their words."""
    rv = fill(c, "a")[0].rv
    for query in (
        {"resourceVersion": "x"},
        {"resourceVersion": "-1"},
        {"resourceVersion": "1e3"},
        {"resourceVersion": "18446744073709551616"},
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "NotOlderThan"},
        {"resourceVersionMatch": "Bogus"},
        {"resourceVersion": rv, "resourceVersionMatch": "Bogus"},
        {"resourceVersion": rv, "resourceVersionMatch": ""},
        {"resourceVersion": rv, "resourceVersionMatch": "exact"},
        {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
        {"resourceVersion": "x", "limit": "1"},
        {"resourceVersion": "x", "resourceVersionMatch": "Exact"},
        {"resourceVersion": "", "resourceVersionMatch": "Exact"},
        {"sendInitialEvents": "true"},
        {"sendInitialEvents": "false"},
        {"allowWatchBookmarks": "true"},
        {"timeoutSeconds": "1"},
        {"timeoutSeconds": "x"},
    ):
        c.get(cms(c), query)


@scenario
def odd_limits(c: Client) -> None:
    """Zero is no limit, what is no number is an error."""
    fill(c, "a", "b", "c")
    for limit in ("0", "-1", "x", "", "1.5", " 1", "9223372036854775807", "9223372036854775808", "0x1", "+1"):
        c.get(cms(c), {"limit": limit})


@scenario
def tokens_that_are_none(c: Client) -> None:
    """Not base64, not JSON, no version, no start, another collection's."""
    fill(c, "a", "b")

    def encode(value: Any) -> str:
        return base64.urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode()).decode().rstrip("=")

    for place in (
        "!!!",
        "abcd",
        encode(b"not json"),
        encode({}),
        encode({"v": "meta.k8s.io/v2", "rv": 1, "start": "a\u0000"}),
        encode({"v": "meta.k8s.io/v1", "rv": 0, "start": "a\u0000"}),
        encode({"v": "meta.k8s.io/v1", "rv": 5, "start": ""}),
        encode({"v": "meta.k8s.io/v1", "rv": 5}),
        encode({"v": "meta.k8s.io/v1", "rv": 5, "start": "../x\u0000"}),
        encode({"v": "meta.k8s.io/v1", "rv": "5", "start": "a"}),
        encode([]),
    ):
        c.get(cms(c), {"limit": "1", "continue": place})
    c.get(cms(c), {"continue": "junk"})


@scenario
def an_inconsistent_token_reads_the_present(c: Client) -> None:
    """A token with revision -1 goes on from its place in the most recent state."""
    fill(c, "a", "b", "c", "d")
    place = token(c)
    content = json.loads(base64.urlsafe_b64decode(place + "=" * (-len(place) % 4)))
    loose = base64.urlsafe_b64encode(json.dumps({**content, "rv": -1}).encode()).decode().rstrip("=")
    c.delete(cms(c, "b"))
    c.get(cms(c), {"limit": "1", "continue": loose})
    c.get(cms(c), {"continue": loose})
    c.get(cms(c), {"limit": "1", "continue": place})


@scenario
def label_selectors_of_every_kind(c: Client) -> None:
    """Equality, sets, existence, order, and their conjunction."""
    fill(c, "plain")
    fill(c, "red", tier="front", weight="5")
    fill(c, "blue", tier="back", weight="50")
    fill(c, "empty", tier="")
    fill(c, "word", weight="heavy")
    for selector in (
        "tier=front",
        "tier==front",
        "tier!=front",
        "tier",
        "!tier",
        "tier in (front)",
        "tier in (front,back)",
        "tier notin (front)",
        "tier notin (front,back)",
        "tier=",
        "tier!=",
        "tier in ()",
        "tier in (,front)",
        "tier in (front,,back)",
        "weight>4",
        "weight>5",
        "weight<6",
        "weight<50,weight>1",
        "tier=front,weight=5",
        "tier=front,weight=6",
        "tier,weight",
        "!tier,!weight",
        "tier=front,tier=back",
        "tier,",
        ",tier",
        "",
        " tier = front ",
        "tier  in  ( front , back )",
        "tier,!weight,tier=",
        "n in (red,blue),tier!=back",
        "tier=front,tier!=back",
    ):
        c.get(cms(c), {"labelSelector": selector})


@scenario
def wrong_label_selectors(c: Client) -> None:
    """A selector that cannot be parsed is a 400 that says where."""
    fill(c, "a")
    for selector in (
        "=",
        "a=b=c",
        "a b",
        "a in",
        "a in b",
        "a in (b",
        "a in b)",
        "a notin",
        "!a=b",
        "!",
        "!!a",
        "a>",
        "a>b",
        "a<1.5",
        "a=-b",
        "a=b c",
        "a/b/c=d",
        "-a=b",
        "a=" + "x" * 64,
        "A.B/c=d",
        "a==",
        "a!",
        "()",
        "in=x",
        "notin",
        "in in (in)",
        "a===b",
        "a=>b",
        "é=x",
        "a=é",
        'a="b"',
        "a:b",
        "a=b;c=d",
        "a,b,,c",
        "(a=b)",
    ):
        c.get(cms(c), {"labelSelector": selector})


@scenario
def field_selectors_on_name_and_namespace(c: Client) -> None:
    """Every kind can be selected by name and namespace, with = == and !=."""
    fill(c, "a", "b", "c")
    for selector in (
        "metadata.name=a",
        "metadata.name==b",
        "metadata.name!=a",
        "metadata.name=a,metadata.name=b",
        "metadata.name!=a,metadata.name!=b",
        "metadata.name=",
        "metadata.name!=",
        "metadata.name=zzz",
        f"metadata.namespace={c.ns}",
        "metadata.namespace=default",
        f"metadata.namespace!={c.ns}",
        f"metadata.namespace={c.ns},metadata.name=c",
        "",
        ",",
        "metadata.name=a,",
        "metadata.name=a\\,b",
        "metadata.name=a\\=b",
        "metadata.name= a",
        " metadata.name=a",
    ):
        c.get(cms(c), {"fieldSelector": selector})


@scenario
def wrong_field_selectors(c: Client) -> None:
    """Unknown fields, operators and escapes."""
    fill(c, "a")
    for selector in (
        "metadata.name",
        "metadata.labels=x",
        "data.n=a",
        "spec.nodeName=x",
        "metadata.uid=x",
        "metadata.name in (a)",
        "metadata.name>a",
        "name=a",
        "metadata.name=a=b",
        "=a",
        "metadata.name=\\",
        "metadata.name=\\x",
        "!metadata.name",
        "metadata.name=a,bogus=1",
        "metadata.creationTimestamp=x",
        "Metadata.Name=a",
    ):
        c.get(cms(c), {"fieldSelector": selector})


@scenario
def pods_can_be_selected_by_more_fields(c: Client) -> None:
    """spec.nodeName, spec.restartPolicy, status.phase and their kin."""
    path = f"/api/v1/namespaces/{c.ns}/pods"
    for name, spec in (
        ("p1", {}),
        ("p2", {"nodeName": "n1", "restartPolicy": "Never"}),
        ("p3", {"serviceAccountName": "robot", "hostNetwork": True, "schedulerName": "mine"}),
    ):
        c.post(path, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}, silent=True)
    c.patch(
        path + "/p2/status",
        {"status": {"phase": "Running", "podIP": "10.5.5.5", "podIPs": [{"ip": "10.5.5.5"}]}},
        MERGE,
        silent=True,
    )
    for selector in (
        "spec.nodeName=",
        "spec.nodeName=n1",
        "spec.nodeName!=n1",
        "spec.restartPolicy=Never",
        "spec.schedulerName=mine",
        "spec.serviceAccountName=robot",
        "spec.hostNetwork=true",
        "status.phase=Pending",
        "status.phase!=Pending",
        "status.phase=Running,spec.nodeName=n1",
        "status.podIP=10.5.5.5",
        "status.podIPs=10.5.5.5",
        "status.nominatedNodeName=",
        "spec.containers=x",
        "status.reason=x",
    ):
        c.get(path, {"fieldSelector": selector}, headers={"Accept": PARTIAL})


@scenario
def other_kinds_and_their_fields(c: Client) -> None:
    """Secrets by type, events by their regards, nodes by schedulability, jobs by success, services by address."""
    root = f"/api/v1/namespaces/{c.ns}"
    c.post(root + "/secrets", {"metadata": {"name": "s1"}}, silent=True)
    c.post(root + "/secrets", {"metadata": {"name": "s2"}, "type": "example.com/t"}, silent=True)
    for selector in ("type=Opaque", "type!=Opaque", "type=example.com/t", "type=", "immutable=true"):
        c.get(root + "/secrets", {"fieldSelector": selector})
    c.post(root + "/services", {"metadata": {"name": "v1"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}}}, silent=True)
    for selector in ("spec.clusterIP=None", "spec.clusterIP=x", "spec.type=ClusterIP", "spec.selector=x"):
        c.get(root + "/services", {"fieldSelector": selector})
    c.post(
        root + "/events",
        {
            "metadata": {"name": "e1"},
            "involvedObject": {"namespace": c.ns, "name": "x", "kind": "Pod", "uid": "u"},
            "reason": "R",
            "type": "Normal",
            "source": {"component": "k"},
        },
        silent=True,
    )
    for selector in (
        "involvedObject.kind=Pod",
        "involvedObject.uid=u",
        "reason=R",
        "reason=r",
        "type=Normal",
        "source=k",
        "reportingComponent=",
        "message=x",
        "involvedObject.fieldPath=",
    ):
        c.get(root + "/events", {"fieldSelector": selector})
    for selector in ("spec.unschedulable=true", "spec.unschedulable=no", "spec.podCIDR=x"):
        c.get("/api/v1/nodes", {"fieldSelector": selector, "labelSelector": f"run={c.id}"})
    for selector in ("status.phase=Active", "status.phase!=Active", "name=x"):
        c.get("/api/v1/namespaces", {"fieldSelector": f"metadata.name={c.ns},{selector}"}, headers={"Accept": PARTIAL})
    c.get(f"/apis/batch/v1/namespaces/{c.ns}/jobs", {"fieldSelector": "status.successful=0"})
    c.get(f"/apis/batch/v1/namespaces/{c.ns}/jobs", {"fieldSelector": "status.failed=0"})
    c.get(f"/apis/apps/v1/namespaces/{c.ns}/deployments", {"fieldSelector": "status.replicas=0"})
    c.get(f"/apis/apps/v1/namespaces/{c.ns}/replicasets", {"fieldSelector": "status.replicas=0"})


@scenario
def collections_across_namespaces(c: Client) -> None:
    """The path without namespace shows all of them, ordered by namespace and name."""
    other = c.name("other")
    c.post("/api/v1/namespaces", {"metadata": {"name": other, "labels": {"run": c.id}}}, silent=True)
    for name in ("b", "a"):
        c.post(f"/api/v1/namespaces/{other}/configmaps", {"metadata": {"name": name, "labels": {"run": c.id}}}, silent=True)
    fill(c, "c", "a")
    mine = {"labelSelector": f"run={c.id}"}
    c.get("/api/v1/configmaps", mine)
    first = c.get("/api/v1/configmaps", {**mine, "limit": "1"})
    c.get("/api/v1/configmaps", {**mine, "limit": "2", "continue": first.get("metadata", "continue")})
    c.get("/api/v1/configmaps", {**mine, "fieldSelector": "metadata.name=a"})
    c.get("/api/v1/configmaps", {"fieldSelector": f"metadata.namespace={other}"})
    c.get("/api/v1/configmaps", {"fieldSelector": f"metadata.namespace={other},metadata.name=b"})
    c.get("/api/v1/configmaps", mine, headers={"Accept": TABLE})
    c.get("/api/v1/namespaces", mine, headers={"Accept": PARTIAL})
    c.get(cms(c), {"limit": "1", "continue": first.get("metadata", "continue")})
    c.delete(f"/api/v1/namespaces/{other}", silent=True)


@scenario
def head_is_get_without_a_body(c: Client) -> None:
    """HEAD of a list, an object and nothing."""
    fill(c, "a")
    for path in (
        cms(c),
        cms(c, "a"),
        cms(c, "absent"),
        "/api/v1/nodes",
        "/version",
        "/api",
        "/healthz",
        "/nope",
        f"/api/v1/namespaces/{c.ns}",
    ):
        c.request("HEAD", path)
    c.request("HEAD", cms(c), None, {"limit": "x"})
    c.request("HEAD", cms(c), headers={"Accept": TABLE})
    c.request("HEAD", cms(c), headers={"Accept": "text/plain"})


@scenario
def tables_are_paged_too(c: Client) -> None:
    """limit, continue and remainingItemCount stand in the metadata of a Table; includeObject says what a row holds."""
    fill(c, "a", "b", "c")
    first = c.get(cms(c), {"limit": "2"}, headers={"Accept": TABLE})
    c.get(cms(c), {"limit": "2", "continue": first.get("metadata", "continue")}, headers={"Accept": TABLE})
    for include in ("None", "Metadata", "Object", "", "none", "Bogus"):
        c.get(cms(c), {"includeObject": include}, headers={"Accept": TABLE})
        c.get(cms(c, "a"), {"includeObject": include}, headers={"Accept": TABLE})
    c.get(cms(c), {"includeObject": "Object"})
    c.get(cms(c), {"labelSelector": "n=zzz"}, headers={"Accept": TABLE})
    c.get(cms(c), {"limit": "1"}, headers={"Accept": PARTIAL_LIST})


@scenario
def lists_in_yaml_and_pretty(c: Client) -> None:
    """Another encoding, and the same one with blanks."""
    fill(c, "a")
    for query, headers in (
        ({"pretty": "true"}, {}),
        ({"pretty": "1"}, {}),
        ({"pretty": "false"}, {}),
        ({"pretty": "x"}, {}),
        ({}, {"User-Agent": "curl/8.0"}),
        ({}, {"User-Agent": "Wget/1"}),
        ({}, {"User-Agent": "Mozilla/5.0"}),
        ({"pretty": "0"}, {"User-Agent": "curl/8.0"}),
    ):
        c.get(cms(c, "absent"), query, headers=headers)
    c.get(
        "/apis/coordination.k8s.io/v1/namespaces/" + c.name("none") + "/leases",
        headers={"Accept": "application/yaml"},
        silent=True,
    )
    c.get(cms(c, "absent"), headers={"Accept": "application/yaml"})


@scenario
def large_lists_are_compressed_when_asked(c: Client) -> None:
    """gzip from 128 KiB on; the transcript holds the unpacked body."""
    for name, size in (("small", 1000), ("large", 200_000)):
        c.post(cms(c), {"metadata": {"name": name}, "data": {"x": "y" * size}}, silent=True)
    for path, accept in (
        (cms(c, "small"), "gzip"),
        (cms(c, "large"), "gzip"),
        (cms(c), "gzip"),
        (cms(c), "identity"),
        (cms(c), "deflate"),
        (cms(c), "br, gzip;q=0.5"),
        (cms(c), "*"),
        (cms(c), "gzip;q=0"),
    ):
        reply = c.get(path, headers={"Accept-Encoding": accept})
        if reply.headers.get("content-encoding") == "gzip":
            c.transcript[-1]["body"] = json.loads(gzip.decompress(reply.body))


@scenario
def repeated_and_unknown_parameters(c: Client) -> None:
    """The first value of a repeated parameter counts; unknown ones are ignored."""
    fill(c, "a", "b", "c")
    for query in (
        "limit=1&limit=2",
        "labelSelector=n%3Da&labelSelector=n%3Db",
        "bogus=1",
        "limit=1;limit=2",
        "&&limit=1&",
        "LIMIT=1",
        "limit=1&%zz=1",
        "labelSelector=%zz",
        "labelSelector",
        "limit",
        "watch=false&limit=1",
        "labelSelector=n+in+(a,b)",
        "fieldSelector=metadata.name%3Da&fieldSelector=metadata.name%3Db",
        "limit=%31",
    ):
        c.get(cms(c), query)


@scenario
def expired_lists_and_tokens(c: Client) -> None:
    """410 Expired for an old exact list, and for an old token one that offers another token (needs a server that compacts often)."""
    if "compaction" not in c.features:
        return
    rv = fill(c, "a", "b", "c")[0].rv
    place, second = token(c), token(c, 2)
    c.patch(cms(c, "c"), {"data": {"n": "new"}}, MERGE, silent=True)
    for _ in range(60):
        if c.get(cms(c), {"continue": second, "limit": "1"}, silent=True).status == 410:
            break
        pacing.sleep(0.5)
    c.get(cms(c), {"resourceVersion": rv, "resourceVersionMatch": "Exact"})
    c.get(cms(c), {"resourceVersion": rv, "limit": "1"})
    c.get(cms(c), {"resourceVersion": rv, "resourceVersionMatch": "NotOlderThan"})
    c.get(cms(c), {"resourceVersion": rv})
    c.get(cms(c, "a"), {"resourceVersion": rv})
    gone = c.get(cms(c), {"continue": place, "limit": "1"})
    follow = c.get(cms(c), {"continue": gone.get("metadata", "continue"), "limit": "1"})
    c.get(cms(c), {"continue": follow.get("metadata", "continue"), "limit": "1"})
    c.get(cms(c), {"continue": place, "limit": "1"}, headers={"Accept": TABLE})
