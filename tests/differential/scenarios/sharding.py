"""Shard selectors (gate ShardedListAndWatch): lists and watches of the objects whose uid or namespace has a hash in some ranges."""

from __future__ import annotations

from tests.differential.client import JSON_PATCH, PARTIAL_LIST, TABLE, Client
from tests.differential.definitions import definition, make, note, served
from tests.differential.registry import scenario
from tests.differential.steps import config_map, maps

FIELD = "object.metadata.uid"
LOW, MIDDLE, HIGH = "0x0000000000000000", "0x8000000000000000", "0x10000000000000000"


def shard(start: str = LOW, end: str = HIGH, field: str = FIELD) -> str:
    return f"shardRange({field}, '{start}', '{end}')"


#: Texts that are no shard selectors, and some that are in another form.
TEXTS = (
    *(" ", "x", "1", "1u", "1.5", "true", "null", "b'x'", "[1]", "{}", "a.b", "a[0]", "Foo{}", "a && b", "!a", "a ? b : c"),
    *("has(a)", "has(a.b)", "[1].all(x, true)", "a.exists(x, true)", "shardRange(", "shardRange", "shardRange()"),
    *("shardRange(1, 2, 3)", "shardRange(a, 2, 3)", f"shardRange({FIELD}, '{LOW}', '{HIGH}', 1)"),
    *(
        shard(field=field)
        for field in ("object.metadata.name", "metadata.uid", f".{FIELD}", "object.?metadata.uid", "'a'", "f(a)")
    ),
    *(shard(field=field) for field in (f"{FIELD}[0]", "object['metadata'].uid", "object")),
    *(
        f"shardRange({FIELD}, {start}, '{HIGH}')"
        for start in ("1", "1u", "1.5", "true", "null", "b'0'", "a", "'0'", "'0x'", "'0x0'")
    ),
    *(
        shard(end=end)
        for end in ("0x20000000000000000", "0x8000000000000000000", "0x000000000000000g", "0xA000000000000000", LOW)
    ),
    *(shard(MIDDLE, MIDDLE), shard(MIDDLE, LOW), f"{shard(LOW, MIDDLE)} || {shard(MIDDLE, HIGH, 'object.metadata.namespace')}"),
    *(
        f"{shard()} || x",
        f"x || {shard()}",
        f"{shard()} && {shard()}",
        f"object.{shard()}",
        f"  shardRange( {FIELD},'{LOW}' , '{HIGH}')",
    ),
    f"{shard(LOW, MIDDLE)}||{shard(MIDDLE)}||{shard(LOW, '0x0000000000000001')}",
)


@scenario
def texts_of_selectors(client: Client) -> None:
    """What is a shard selector, and the message of what is none."""
    for text in TEXTS:
        client.get(maps(client), {"shardSelector": text, "labelSelector": "none=here"})
    client.get(maps(client), {"shardSelector": ""})


@scenario
def which_error_comes_first(client: Client) -> None:
    """The other options are checked before the shard selector, and revisions after it."""
    for options in ({"limit": "a"}, {"resourceVersionMatch": "Exact"}, {"fieldSelector": "a=b"}, {"resourceVersion": "a"}):
        client.get(maps(client), {"shardSelector": "x", **options})
    client.get(maps(client), {"shardSelector": "x", "watch": "1"})
    client.delete(maps(client), query={"shardSelector": "x"})


@scenario
def lists_tell_their_shard(client: Client) -> None:
    """shardInfo in lists; what remains is told before 1.37; Tables and lists of metadata do not tell their shard."""
    for name in "abcde":
        client.post(maps(client), config_map(name, {"own": "yes"}), silent=True)
    whole, selected = {"shardSelector": shard()}, {"shardSelector": shard(), "labelSelector": "own=yes"}
    client.get(maps(client), {**selected, "limit": "2"})
    first = client.get(maps(client), {**whole, "limit": "2"})
    client.get(maps(client), {**whole, "limit": "2", "continue": first.get("metadata", "continue", default="")})
    client.get(maps(client), {**selected, "fieldSelector": "metadata.name=a"})
    for accept in (TABLE, PARTIAL_LIST):
        client.get(maps(client), selected, headers={"Accept": accept})
    halves = [
        [
            item["metadata"]["name"]
            for item in client.get(maps(client), {**selected, "shardSelector": half}, silent=True).json["items"]
        ]
        for half in (shard(LOW, MIDDLE), shard(MIDDLE))
    ]
    note(client, "the two halves", sorted(halves[0] + halves[1]))
    client.delete(maps(client), query=selected)
    client.get(maps(client), selected)


@scenario
def custom_resources(client: Client) -> None:
    """A list of custom resources tells its shard as well."""
    body = definition(client)
    with served(client, body) as path:
        client.post(path, make(body), silent=True)
        client.get(path, {"shardSelector": shard()})
        client.get(path, {"shardSelector": shard(), "labelSelector": "a=b"})


@scenario
def watches_follow_their_shard(client: Client) -> None:
    """A watch of all hashes sees everything, and one of no object's namespace nothing."""
    revision = client.get(maps(client), silent=True).rv

    def change() -> None:
        client.post(maps(client), config_map("a"), silent=True)
        client.patch(f"{maps(client)}/a", [{"op": "add", "path": "/data/b", "value": "2"}], JSON_PATCH, silent=True)
        client.delete(f"{maps(client)}/a", silent=True)

    client.watch(maps(client), {"shardSelector": shard(), "resourceVersion": revision}, then=change)
    nothing = shard(LOW, "0x0000000000000001", "object.metadata.namespace")
    client.watch(maps(client), {"shardSelector": nothing, "resourceVersion": revision})
