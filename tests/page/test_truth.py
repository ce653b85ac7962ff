"""What the page shows is what Python computes: rows, objects at every revision, differences, owners, findings; live and in files."""

from __future__ import annotations

import copy
import gzip
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakekube import Cluster
from fakekube.controllers.client import ApiError
from fakekube.powers.differences import differences
from fakekube.powers.history import field_owners
from tests.page.rows import table, wait, wait_until_loaded
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

#: One step of a history: the client, what it does, to which object, at which field, with which value.
Step = tuple[str, str, str, str, Any]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["one/1", "two/1"]),
        st.sampled_from(["create", "merge", "merge", "merge", "delete", "containers", "apply"]),
        st.sampled_from(["a-0", "a-1"]),
        st.sampled_from("xyz"),
        st.sampled_from(["1", "2\n3\n", None, "<b>", "\u202e", ""]),
    ),
    min_size=8,
    max_size=20,
)


def perform(cluster: Cluster, steps: list[Step]) -> None:
    """Sends the requests of a history; those that are refused are rows, too."""
    core, apps = "/api/v1/namespaces/default/configmaps", "/apis/apps/v1/namespaces/default/deployments"
    for agent, kind, name, key, value in steps:
        client = cluster.client_of(agent)
        with suppress(ApiError):
            if kind == "create":
                client.call("POST", core, config_map(name, x=key))
                client.call("POST", apps, deployment(name))
            elif kind == "delete":
                client.call("DELETE", f"{core}/{name}")
            elif kind == "merge":
                client.call("PATCH", f"{core}/{name}", {"data": {key: value}}, content_type="application/merge-patch+json")
            elif kind == "containers":
                added = {"name": f"side-{key}", "image": str(value), "ports": [{"containerPort": 80 + ord(key)}]}
                patch = {"spec": {"replicas": ord(key), "template": {"spec": {"containers": [added]}}}}
                client.call("PATCH", f"{apps}/{name}", patch, content_type="application/strategic-merge-patch+json")
            else:
                applied = {**config_map(name, **{key: str(value)}), "metadata": {"name": name, "labels": {f"a.b/{key}": "v"}}}
                query = {"fieldManager": agent.partition("/")[0], "force": "true"}
                client.call("PATCH", f"{core}/{name}", applied, query, content_type="application/apply-patch+yaml")


LISTED = """async (revisions) => {
  const found = [];
  for (const at of revisions) {
    const rows = [];
    for (const {strings, columns} of await fakekube.provider.objects(at)) columns.name.forEach((name, row) =>
      ['configmaps', 'deployments.apps'].includes(strings[columns.resource[row]]) && strings[columns.namespace[row]] === 'default' &&
        rows.push([strings[columns.resource[row]], strings[name], Number(columns.revision[row])]));
    found.push(rows.sort());
  }
  return found;
}"""
COMPUTED = """async (pairs) => {
  const [{diff}, {ownersOf}] = [await import('fk/diff'), await import('fk/owners')];
  return pairs.map(([old, now]) => [diff(old, now), Object.fromEntries(ownersOf(now))]);
}"""


Known = tuple[list[dict[str, Any]], list[dict[str, Any]], Any]
"""Rows of requests and changes, and findings, before the comparison sends requests of its own."""


def what_python_knows(cluster: Cluster) -> Known:
    findings = json.loads(json.dumps([one.data() for one in cluster.findings()]))
    return columns(cluster.rows.requests()), columns(cluster.rows.changes()), findings


COMPARED = """async (spans) => {
  const found = [];
  for (const [from, to] of spans) found.push(await fakekube.provider.compare(String(from), String(to)));
  return found;
}"""


def as_text(value: Any) -> Any:
    """Returns data with members in one order, and revisions as texts: a file has them as texts."""
    if isinstance(value, dict):
        return {name: str(one) if name in ("revision", "from", "to") else as_text(one) for name, one in sorted(value.items())}
    return [as_text(one) for one in value] if isinstance(value, list) else value


def ordered(comparison: dict[str, Any]) -> dict[str, Any]:
    """Returns a comparison with its objects and paths in one order; members whose names are numbers have another one in JavaScript."""
    found = as_text(comparison)
    for name in ("added", "removed", "changed", "reverted"):
        found[name].sort(key=lambda one: (one["resource"], one["namespace"], one["name"]))
    for one in found["changed"]:
        one["changed"].sort(key=lambda part: part["path"])
    found.pop("more", None)
    return found


def compare_comparisons(cluster: Cluster, page: Any, start: int) -> None:
    """Compares the differences of pairs of revisions, forwards and backwards."""
    newest = int(cluster.rows.revision)
    middle = (start + newest) // 2
    spans = [(start, newest), (newest, start), (start, middle), (middle, newest), (newest - 1, newest), (middle, middle)]
    expected = [ordered(json.loads(json.dumps(cluster.compare(one, other).data()))) for one, other in spans]
    assert [ordered(one) for one in page.evaluate(COMPARED, spans)] == expected


def compare_with_python(cluster: Cluster, page: Any, start: int, known: Known) -> None:
    """Compares all that a page has with what Python computes."""
    expected, changes, findings = known
    assert page.evaluate("fakekube.provider.findings()") == findings
    assert table(page, "requests", REQUESTS) == [{name: row[name] for name in REQUESTS} for row in expected]
    assert table(page, "changes", CHANGES) == [{name: row[name] for name in CHANGES} for row in changes]
    revisions = list(range(start, int(cluster.rows.revision) + 1))
    listed = []
    for revision in revisions:
        then = cluster.at(revision)
        objects = [("configmaps", one) for one in then.list("configmaps", namespace="default")]
        objects += [("deployments.apps", one) for one in then.list("deployments", namespace="default")]
        listed.append(sorted([kind, one["metadata"]["name"], int(one["metadata"]["resourceVersion"])] for kind, one in objects))
    assert [sorted(rows) for rows in page.evaluate(LISTED, revisions)] == listed
    compare_comparisons(cluster, page, start)
    pairs = []
    for kind, name in [(kind, name) for kind in ("configmaps", "deployments") for name in ("a-0", "a-1")]:
        with suppress(ApiError, LookupError):
            pairs += [[old.object, new.object] for old, new in pairwise(cluster.history(kind, name))]
    for (old, new), (shown, owners) in zip(pairs, page.evaluate(COMPUTED, pairs), strict=True):
        assert shown == [one.data() for one in differences(old, new)]
        assert owners == field_owners(new)


def test_histories_are_shown_as_python_computes_them(open_page: Open, tmp_path: Path) -> None:
    page = open_page("about:blank", waits=False)
    numbers = itertools.count()

    @settings(
        max_examples=settings.default.max_examples // 8,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(STEPS)
    def run(steps: list[Step]) -> None:
        number = next(numbers)
        with Cluster(profile="apiserver") as cluster:
            cluster.keep_changes()
            start = int(cluster.rows.revision)
            perform(cluster, steps)
            known = what_python_knows(cluster)
            addresses = [cluster.page_url]
            if number % 3 == 0:
                addresses.append(cluster.trace(tmp_path / f"trace-{number}.html").as_uri())
            for address in addresses:
                page.goto(address)
                wait_until_loaded(page)
                compare_with_python(cluster, page, start, known)
            page.goto("about:blank")  # leaves the live stream before the cluster stops

    run()


RECORDED = Path(__file__).parents[2] / "fixtures" / "recorded"


@pytest.fixture(scope="module")
def modules(browser: Any) -> Iterator[Any]:
    """A page whose modules are called; nothing is done in it."""
    with Cluster(profile="apiserver") as cluster:
        tab = browser.take_tab()
        tab.goto(cluster.page_url)
        wait_until_loaded(tab)
        yield tab
        tab.check()
        browser.put_back(tab)


def test_owners_of_recorded_objects_are_those_of_python(modules: Any) -> None:
    """Each leaf of every fieldsV1 that a real server sent belongs to one path, the same in the page and in Python."""

    def find_objects(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            if isinstance(value.get("metadata"), dict) and value["metadata"].get("managedFields"):
                yield value
            for inner in value.values():
                yield from find_objects(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from find_objects(inner)

    objects: dict[str, Any] = {}
    for path in sorted(RECORDED.glob("*.json.gz")):
        for one in find_objects(json.loads(gzip.decompress(path.read_bytes()))):
            objects.setdefault(json.dumps(one["metadata"]["managedFields"], sort_keys=True), one)
    chosen = list(objects.values())[:400]
    assert len(chosen) > 20
    shown = modules.evaluate(
        "async (all) => { const {ownersOf} = await import('fk/owners'); return all.map((one) => Object.fromEntries(ownersOf(one))); }",
        chosen,
    )
    for one, owners in zip(chosen, shown, strict=True):
        assert owners == field_owners(one)


def test_co_owners_and_items_of_associative_lists(cluster: Cluster, open_page: Open) -> None:
    """The two cases that users of kubectl-blame reported."""
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    web = {"name": "web", "image": "nginx"}
    first = {**deployment("web"), "spec": {**deployment("web")["spec"], "replicas": 2}}
    for manager, containers in (("one", [web]), ("two", [web, {"name": "side", "image": "busybox"}])):
        body = copy.deepcopy(first)
        body["spec"]["template"]["spec"]["containers"] = containers
        cluster.client_of(f"{manager}/1").call(
            "PATCH", path, body, {"fieldManager": manager}, content_type="application/apply-patch+yaml"
        )
    page = open_page(f"{cluster.page_url}#/objects/deployments.apps/default/web")
    page.wait_for_selector(".field-line")
    lines = page.eval_on_selector_all(".field-line", "(all) => all.map((one) => one.innerText.replace(/\\s+/g, ' '))")
    assert next(line for line in lines if "replicas: 2" in line).startswith("one +1")
    assert next(line for line in lines if "image: nginx" in line).startswith("one +1")
    assert next(line for line in lines if "image: busybox" in line).startswith("two ")


def test_differences_and_owners_are_those_of_python(cluster: Cluster, modules: Any) -> None:
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
    for old, new in pairwise(versions):
        shown = modules.evaluate("async ([old, now]) => (await import('fk/diff')).diff(old, now)", [old, new])
        assert shown == [one.data() for one in differences(old, new)]
        owners = modules.evaluate("async (obj) => Object.fromEntries((await import('fk/owners')).ownersOf(obj))", new)
        assert owners == field_owners(new)
        assert owners["spec.replicas"]


def test_yaml_lines_read_back_as_the_same_value(modules: Any) -> None:
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
    text = modules.evaluate("async (value) => (await import('fk/yaml_lines')).yamlText(value)", obj)
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
