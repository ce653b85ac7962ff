"""What the page shows is what Python computes: rows, objects at every revision, differences, owners, findings; live and in files."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.powers.differences import differences
from fakekube.powers.field_owners import field_owners
from tests.page.rows import table, wait
from tests.unit.seen import columns, config_map, deployment

Open = Callable[..., Any]

REQUESTS = [
    "number",
    "ms",
    "verb",
    "resource",
    "namespace",
    "name",
    "path",
    "actor",
    "side",
    "own",
    "code",
    "fault",
    "rev",
    "writes",
    "events",
    "why",
]
CHANGES = [
    "revision",
    "after",
    "time",
    "type",
    "resource",
    "kind",
    "namespace",
    "name",
    "uid",
    "actor",
    "side",
    "request",
    "verb",
    "sub",
    "indirect",
    "reason",
]

OBJECTS = """async (at) => {
  const found = [];
  for (const {strings, columns} of await fakekube.provider.objects(at)) columns.name.forEach((name, row) =>
    strings[columns.resource[row]] === 'configmaps' && strings[columns.namespace[row]] === 'default' && found.push([strings[name], Number(columns.revision[row])]));
  return found;
}"""


def history(cluster: Cluster, seed: int, steps: int = 25) -> None:
    """Writes at random."""
    dice = random.Random(seed)
    clients = [cluster.client_of(name) for name in ("one/1", "two/1", "three/1")]
    for _ in range(steps):
        client, name = dice.choice(clients), f"a-{dice.randrange(4)}"
        path = f"/api/v1/namespaces/default/configmaps/{name}"
        kind = dice.choice(["create", "patch", "patch", "delete", "apply"])
        try:
            if kind == "create":
                client.call("POST", path.rpartition("/")[0], config_map(name, x=str(dice.random())))
            elif kind == "delete":
                client.call("DELETE", path)
            else:
                value: Any = dice.choice(["1", "2\n3\n", None, "<b>"])
                client.call("PATCH", path, {"data": {dice.choice("xyz"): value}}, content_type="application/merge-patch+json")
        except Exception:
            continue  # refused requests are rows, too


@pytest.mark.parametrize("seed", range(2))
def test_rows_and_objects_at_every_revision(cluster: Cluster, open_page: Open, trace: Callable[[], str], seed: int) -> None:
    start = int(cluster.rows.revision)
    history(cluster, seed)
    pages = [open_page(cluster.page_url), open_page(trace())]
    expected, changes = columns(cluster.rows.requests()), columns(cluster.rows.changes())
    for page in pages:
        assert table(page, "requests", REQUESTS) == [{name: row[name] for name in REQUESTS} for row in expected]
        assert table(page, "changes", CHANGES) == [{name: row[name] for name in CHANGES} for row in changes]
    for revision in range(start, int(cluster.rows.revision) + 1, 3):
        listed = cluster.at(revision).list("configmaps", namespace="default")
        for page in pages:
            rows = page.evaluate(OBJECTS, revision)
            assert sorted(map(tuple, rows)) == [
                (one["metadata"]["name"], int(one["metadata"]["resourceVersion"])) for one in listed
            ]


def test_differences_and_owners_are_those_of_python(cluster: Cluster, open_page: Open) -> None:
    cluster.create(deployment("web"))
    clients = [cluster.client_of("one/1"), cluster.client_of("two/1")]
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    patches: list[dict[str, Any]] = [
        {"spec": {"replicas": 7}},
        {"metadata": {"labels": {"app.kubernetes.io/name": "web"}, "finalizers": ["a/b"]}},
        {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "x", "ports": [{"containerPort": 80}]}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "y", "args": ["a", "b c"]}]}}}},
        {"metadata": {"labels": None}},
    ]
    for number, patch in enumerate(patches):
        clients[number % 2].call("PATCH", path, patch, content_type="application/strategic-merge-patch+json")
    versions = [version.object for version in cluster.history("deployments", "web")]
    page = open_page(cluster.page_url)
    for old, new in pairwise(versions):
        shown = page.evaluate("async ([old, now]) => (await import('fk/diff')).diff(old, now)", [old, new])
        assert shown == [one.data() for one in differences(old, new)]
        owners = page.evaluate("async (obj) => Object.fromEntries((await import('fk/owners')).ownersOf(obj))", new)
        assert owners == field_owners(new)
        assert owners["spec.replicas"]


def test_yaml_lines_read_back_as_the_same_value(cluster: Cluster, open_page: Open) -> None:
    from fakekube.apimachinery.codecs import yaml

    values = [
        "",
        "yes",
        "null",
        "~",
        "1",
        "0x1",
        "a: b",
        "- x",
        "#",
        " a",
        "a\nb\n",
        "a\n b\n\n",
        "tab\t",
        "é",
        "1e3",
        "2026-01-01",
        "{}",
        "on",
        "a #b",
    ]
    obj = {"data": {f"k{number}": value for number, value in enumerate(values)}, "list": [1, True, None, {"a": []}, {}], "y": "x"}
    page = open_page(cluster.page_url)
    text = page.evaluate("async (value) => (await import('fk/yaml_lines')).yamlText(value)", obj)
    assert yaml.loads(text.encode())[0] == obj


def test_a_thousand_changes_arrive_in_order_while_the_page_is_open(cluster: Cluster, open_page: Open) -> None:
    page = open_page(cluster.page_url)
    for number in range(1_000):
        cluster.create(config_map(f"a-{number}"))
    wait(page, "(last) => fakekube.newest === last", int(cluster.rows.revision))
    rows = table(page, "changes", ["revision", "name", "request"])
    assert [row["name"] for row in rows][-1_000:] == [f"a-{number}" for number in range(1_000)]
    assert [row["number"] for row in table(page, "requests", ["number"])] == list(range(1_000))


def test_a_reset_and_a_restart_are_followed(cluster: Cluster, open_page: Open) -> None:
    page = open_page(f"{cluster.page_url}#/objects?by=flat&q=name:a")
    cluster.create(config_map("a"))
    page.wait_for_selector(".grid-row:has-text('ConfigMap a')")
    cluster.reset()
    wait(page, "![...document.querySelectorAll('.grid-body .grid-row')].some((row) => row.textContent.includes('ConfigMap a'))")
    cluster.restart()
    wait(page, "fakekube.connection.state === 'reconnecting'")
    cluster.create(config_map("a"))
    wait(page, "fakekube.connection.state === 'live'")
    page.wait_for_selector(".grid-row:has-text('ConfigMap a')")
