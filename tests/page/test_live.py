"""A living cluster and its page: tabs that sleep, several tabs, gaps, deliveries, and changes by the controls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from fakekube import Cluster
from tests.page.rows import Person, table, wait, wait_until_loaded, wait_until_rendered
from tests.unit.seen import config_map

Open = Callable[..., Any]


def set_lifecycle(page: Any, state: str) -> None:
    """Freezes a tab, as a browser does with one in the background, or lets it go on."""
    session = page.open_session()
    session.send("Page.setWebLifecycleState", {"state": state})
    session.detach()


def test_a_suspended_tab_catches_up(cluster: Cluster, open_page: Open) -> None:
    page = open_page(f"{cluster.page_url}#/requests?q=")
    set_lifecycle(page, "frozen")
    for number in range(300):
        cluster.create(config_map(f"a-{number}"))
    set_lifecycle(page, "active")
    wait(page, "(last) => fakekube.newest === last", int(cluster.rows.revision))
    assert [row["name"] for row in table(page, "changes", ["name"])][-300:] == [f"a-{number}" for number in range(300)]
    assert [row["number"] for row in table(page, "requests", ["number"])] == list(range(300))


def test_two_tabs_show_the_same(cluster: Cluster, open_page: Open) -> None:
    first = open_page(f"{cluster.page_url}#/controls")
    second = first.context.new_page()
    second.goto(f"{cluster.page_url}#/requests?q=")
    wait_until_loaded(second)
    Person(first).command("clock +1h")
    wait(second, "fakekube.clock?.held === true")
    cluster.create(config_map("a"))
    for page in (first, second):
        wait(page, "(last) => fakekube.newest === last", int(cluster.rows.revision))
    assert table(first, "requests", ["number", "name"]) == table(second, "requests", ["number", "name"])
    second.close()


def test_after_a_break_of_the_network_a_gap_is_shown_and_what_failed_is_read_again(open_page: Open, stack: ExitStack) -> None:
    cluster = stack.enter_context(Cluster(profile="apiserver", keep_requests=20))
    page = open_page(f"{cluster.page_url}#/requests?q=")
    page.context.set_offline(True)
    page.evaluate("fakekube.failure = new Error('the network went away before all was loaded'); fakekube.render()")
    wait_until_rendered(page)
    assert "cannot read the cluster" in page.inner_text("main")
    cluster.restart()  # ends the stream
    wait(page, "fakekube.connection.state === 'reconnecting'")
    for number in range(200):
        cluster.create(config_map(f"a-{number}"))
    page.context.set_offline(False)
    wait(page, "fakekube.store.gaps.length > 0")
    wait(page, "document.body.innerText.includes('gap')")


def test_a_change_leads_to_the_watches_that_got_it(cluster: Cluster, open_page: Open) -> None:
    import urllib.request

    asked = urllib.request.Request(
        f"{cluster.url}/api/v1/namespaces/default/configmaps?watch=true", headers={"User-Agent": "my-operator/1.0"}
    )
    with urllib.request.urlopen(asked, timeout=20) as stream:
        made = cluster.create(config_map("a", x="1"))
        stream.readline()
        revision = made["metadata"]["resourceVersion"]
        page = open_page(f"{cluster.page_url}#/timeline?q=&sel=c{revision}&section=changed")
        page.wait_for_selector(".delivered button")
        assert "my-operator #" in page.inner_text(".delivered")
        page.click(".delivered button")
        page.wait_for_selector("text=Delivered events")
        assert [
            row["rev"]
            for row in page.evaluate(
                "[...document.querySelectorAll('.panel table.plain tbody tr')].map((row) => ({rev: row.cells[0].innerText}))"
            )
        ] == [revision]


def test_export_and_state_show_their_python_and_curl(cluster: Cluster, open_page: Open) -> None:
    page = open_page(f"{cluster.page_url}#/controls")
    page.wait_for_selector("text=Export YAML")
    menus = page.eval_on_selector_all(".state-controls details.menu, .controls details.menu", "(all) => all.length")
    assert menus >= 12
