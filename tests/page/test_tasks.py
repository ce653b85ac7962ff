"""The tasks of users, by keyboard only, with the number of actions; each ends with the same view after a reload."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from tests.page.rows import Person, visible_rows, wait
from tests.unit.seen import config_map, deployment

Open = Callable[..., Any]


def fight(cluster: Cluster) -> None:
    cluster.create(deployment("web", 3))
    clients = [cluster.client_of("my-operator/1.0"), cluster.client_of("horizontal-pod-autoscaler/1.0")]
    for number in range(6):
        patch = {"spec": {"replicas": 3 + 2 * (number % 2)}}
        path = "/apis/apps/v1/namespaces/default/deployments/web"
        clients[number % 2].call("PATCH", path, patch, content_type="application/merge-patch+json")


def same_after_reload(page: Any, selector: str = "main") -> None:
    """Checks that the address alone leads to the same view."""
    text = page.inner_text(selector)
    page.reload()
    wait(page, "globalThis.fakekube?.loaded")
    wait(page, "([selector, text]) => document.querySelector(selector)?.innerText === text", [selector, text])


def test_t1_why_did_my_operator_fight(cluster: Cluster, open_page: Open) -> None:
    fight(cluster)
    page = open_page(cluster.page_url)
    page.wait_for_selector(".finding button")
    assert "alternated between" in page.inner_text(".finding button")
    person = Person(page)
    person.press("g f")
    page.wait_for_selector(".finding button:focus")
    person.press("Enter")
    page.wait_for_selector("table.versions")
    assert person.actions == 2
    assert "tab=history" in page.url
    assert "path=spec.replicas" in page.url
    strip = page.inner_text(".strip")
    assert strip.split()[0] == "spec.replicas"
    assert [value for value in strip.split()[1:] if value.isdigit()] == ["3", "5", "3", "5", "3", "5"]
    same_after_reload(page, ".strip")


def test_t2_what_happened_between_two_revisions(cluster: Cluster, open_page: Open) -> None:
    first = int(cluster.rows.revision)
    for number in range(8):
        cluster.create(config_map(f"a-{number}"))
    page = open_page(cluster.page_url)
    person = Person(page)
    person.command(f"range {first + 2}..{first + 4}")
    person.press("g r")
    assert person.actions == 4
    wait(page, "document.querySelectorAll('.grid-body .grid-row').length === 3")
    assert ["a-1" in visible_rows(page)[0], "a-3" in visible_rows(page)[2]] == [True, True]
    same_after_reload(page, ".grid-body")


def test_t3_a_rollout_is_played_with_a_sentence_for_each_change(open_page: Open, stack: ExitStack) -> None:
    cluster = stack.enter_context(Cluster())
    cluster.create(deployment("web", 2))
    cluster.settle()
    page = open_page(cluster.page_url)
    person = Person(page)
    person.press("Space")
    assert person.actions == 1
    page.wait_for_selector(".sentence")
    before = page.inner_text(".sentence")
    wait(page, "(before) => document.querySelector('.sentence')?.innerText !== before", before)
    person.press("Space")
    assert "THEN" in page.inner_text(".cursor-bar")
    same_after_reload(page, ".sentence")


def test_t4_inject_410_gone(cluster: Cluster, open_page: Open) -> None:
    page = open_page(cluster.page_url)
    person = Person(page)
    person.command("gone pods")
    assert person.actions == 3
    wait(page, "fakekube.faults.length === 1")
    (fault,) = cluster.faults
    assert str(fault.action) == "gone()"
    person.press("g c")
    page.wait_for_selector("[role=switch]:focus")
    while page.evaluate("document.activeElement.getAttribute('aria-checked')") != "true":
        person.press("Tab")
        assert person.actions < 60
    page.reload()
    page.wait_for_selector("[role=switch][aria-checked=true]")
    assert page.eval_on_selector_all("[role=switch][aria-checked=true]", "(all) => all.length") == 1
    person.press("g c")
    page.wait_for_selector("[role=switch]:focus")
    while page.evaluate("document.activeElement.getAttribute('aria-checked')") != "true":
        person.press("Tab")
    person.press("Enter")
    wait(page, "fakekube.faults.length === 0")
    assert len(cluster.faults) == 0


def test_t5_the_clock_moves_by_an_hour(cluster: Cluster, open_page: Open) -> None:
    before = cluster.clock.now()
    page = open_page(cluster.page_url)
    person = Person(page)
    person.command("clock +1h")
    assert person.actions == 3
    moved = "(hour) => fakekube.clock?.held && fakekube.clock.time >= hour"  # it is held first, then moved
    wait(page, moved, int(before.timestamp()) + 3600)
    wait(page, "[...document.querySelectorAll('.fact')].some((one) => one.textContent.includes('held'))")
    assert 3600 <= (cluster.clock.now() - before).total_seconds() < 3700
    person.press("g c")
    page.wait_for_selector(".clock-now")
    same_after_reload(page, ".clock-now")


def test_t6_which_manager_owns_which_field(cluster: Cluster, open_page: Open) -> None:
    fight(cluster)
    page = open_page(f"{cluster.page_url}#/objects")
    wait(page, "document.querySelectorAll('.grid-body .grid-row').length > 0")
    person = Person(page)
    person.command("deployments web")
    assert person.actions == 3
    wait(page, "document.querySelector('.field-line')")
    lines = page.eval_on_selector_all(".field-line", "(all) => all.map((one) => one.innerText.replace(/\\s+/g, ' '))")
    replicas = next(line for line in lines if "replicas:" in line)
    assert replicas.startswith(("my-operator", "horizontal-pod-autoscaler"))
    same_after_reload(page, ".fields")


def test_t7_compare_two_revisions(cluster: Cluster, open_page: Open) -> None:
    cluster.create(config_map("kept", x="1"))
    first = int(cluster.rows.revision)
    cluster.patch("configmaps", "kept", {"data": {"x": "2"}})
    cluster.create(config_map("new"))
    page = open_page(cluster.page_url)
    person = Person(page)
    person.command(f"diff {first}..{cluster.rows.revision}")
    assert person.actions == 3
    page.wait_for_selector(".compare-table tbody tr")
    text = page.inner_text(".compare")
    assert "+ 1 added" in text
    assert "~ 1 changed" in text
    assert "data.x" in text
    assert "1 → 2" in text.replace("\n", " ")
    same_after_reload(page, ".compare-table")
    page.select_option(".compare select", "fakekube")
    page.fill(".compare input[type=text]", "data.y")
    page.keyboard.press("Enter")
    wait(page, "document.querySelector('.compare').textContent.includes('Nothing differs')")
    assert "actor=fakekube" in page.url


def test_t8_the_cluster_of_a_trace_file_lives_again(cluster: Cluster, open_page: Open, tmp_path: Path, stack: ExitStack) -> None:
    fight(cluster)
    path = cluster.trace(tmp_path / "trace.html")
    expected = [version.revision for version in cluster.history("deployments", "web")]
    other = stack.enter_context(Cluster(profile="apiserver", load=path))
    page = None
    for address in (path.as_uri(), other.page_url):  # the file of the failed job, then the cluster that lives again
        page = open_page(address, instead=page)
        person = Person(page)
        person.press("g o")
        wait(page, "document.querySelectorAll('.grid-body .grid-row').length > 0")
        person.command("deployments web")
        wait(page, "document.querySelector('.field-line')")
        person.press("Enter")  # from the tree to the tabs of the object
        page.wait_for_selector("[role=tab]:focus")
        person.press("ArrowRight")
        page.wait_for_selector("table.versions tbody tr")
        assert person.actions == 6
        shown = page.eval_on_selector_all("table.versions tbody tr", "(all) => all.map((one) => one.cells[0].innerText)")
        assert [int(text) for text in reversed(shown)] == expected
        same_after_reload(page, "table.versions tbody")
    uid = cluster.get("deployments", "web")["metadata"]["uid"]
    assert other.get("deployments", "web")["metadata"]["uid"] == uid
    other.patch("deployments", "web", {"spec": {"replicas": 9}})
    wait(page, "document.querySelector('table.versions tbody tr').innerText.includes('→ 9')")


@pytest.fixture
def report(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    from fakekube.checker.report import ProvocationReport, Report, RuleReport

    fight(cluster)
    rules = []
    for name, verdict in (("W1", "pass"), ("W5", "fail")):
        provocation = ProvocationReport(f"{name}/ends", "ends", "A", verdict, ["resumed from 512"], 1.0)
        rules.append(
            RuleReport(name, verdict, "A", ["resumed from 512"], "the source", "a client lists again", "list", [provocation])
        )
    parts = cluster.trace_parts()
    Report("my-operator", rules, traces={"W5/ends": parts, "baseline": parts}).write_html(tmp_path / "report.html")
    yield (tmp_path / "report.html").as_uri()


def test_t9_why_a_client_was_judged(report: str, open_page: Open) -> None:
    page = open_page(report)
    text = page.inner_text(".verdicts")
    assert text.index("W5") < text.index("W1")
    assert "a client lists again" in text
    page.fill(".report input[type=search]", "no such words")
    page.keyboard.press("Enter")
    wait(page, "!document.querySelector('.verdict')")
    page.fill(".report input[type=search]", "")
    page.keyboard.press("Enter")
    page.evaluate("document.activeElement.blur()")
    person = Person(page)
    person.press("g e")
    page.wait_for_selector(".verdict.fail .primary:focus")
    person.press("Enter")
    assert person.actions == 2
    wait(page, "fakekube.route.view === 'timeline' && fakekube.store.requests.count > 0")
    assert "my-operator" in str(visible_rows(page))
    assert "trial=W5-ends" in page.url
    same_after_reload(page, ".grid-body")
