"""What assistive technology gets of each view: the tree of roles and names, and the order of the tab stops, as stored snapshots.

`FAKEKUBE_SNAPSHOTS=1 pytest tests/page/test_snapshots.py` writes them to `snapshots`; a difference is read in review like code.
Numbers are `N`, so that revisions, times and ages do not matter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.cluster.scenarios.game import play
from fakekube.cluster.scenarios.scenario import find_scenario
from tests.page.rows import wait, wait_until_loaded, wait_until_rendered
from tests.page.test_tasks import fight

FOLDER = Path(__file__).parent / "snapshots"
#: Name of a view → its address, and the selector of what must be there. NEWEST is the newest revision.
VIEWS = {
    "timeline": ("#/timeline?q=name:web&sel=cNEWEST", ".panel [role=tab]"),
    "findings": ("#/timeline?q=name:web", ".finding button"),
    "requests": ("#/requests/1?q=name:web", ".panel [role=tab]"),
    "no requests": ("#/requests?q=code:777", ".empty"),
    "objects": ("#/objects?q=name:web&by=kind", ".grid-body .grid-row"),
    "fields": ("#/objects/deployments.apps/default/web?q=name:web", ".field-line"),
    "history": ("#/objects/deployments.apps/default/web?q=name:web&tab=history&path=spec.replicas", "table.versions"),
    "compare": ("#/compare?from=FIRST&to=NEWEST", ".compare-table tbody tr"),
    "controls": ("#/controls", "[role=switch]"),
}

#: The next Tab begins here, wherever the focus or a view that is gone was before.
AT_THE_BEGINNING = """() => {
  getSelection().removeAllRanges();
  document.body.tabIndex = -1;
  document.body.focus();
  document.activeElement.blur();
  document.body.removeAttribute('tabindex');
}"""
TAB_STOP = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return '';
  const named = one.getAttribute('aria-label') ?? one.labels?.[0]?.innerText ?? one.innerText ?? '';
  return `${one.getAttribute('role') ?? one.tagName.toLowerCase()} ${named.trim().split('\\n')[0].slice(0, 60)}`;
}"""


def normalised(text: str, cluster: Cluster) -> str:
    """Replaces what differs from run to run."""
    text = text.replace(cluster.instance, "INSTANCE").replace(str(cluster.kubeconfig), "KUBECONFIG")
    text = re.sub(r"uid [0-9a-f]+…", "uid UID", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UID", text)
    text = re.sub(r"\d[\d:.,]*\d|\d", "N", text)
    return re.sub(r"(?m)^(.{160}).+$", r"\1 …", text)  # the text of objects, which other tests compare


def tab_stops(page: Any) -> list[str]:
    """Returns the tab stops of a view from the beginning of the document until the browser's own."""
    page.evaluate(AT_THE_BEGINNING)
    found = []
    for _ in range(120):
        page.keyboard.press("Tab")
        stop = page.evaluate(TAB_STOP)
        if not stop or stop in found[:1]:  # the browser's own stops are left out in a window without bars
            break
        found.append(stop)
    return found


def snapshot(page: Any, cluster: Cluster) -> str:
    """Returns the tree and the tab stops of what a page shows."""
    wait_until_rendered(page)
    tree = page.locator("body").aria_snapshot()
    stops = "\n".join(f"  {stop}" for stop in tab_stops(page))
    return normalised(f"{tree}\n\ntab stops:\n{stops}\n", cluster)


def compare(name: str, text: str) -> None:
    """Compares with the stored snapshot, or writes it."""
    path = FOLDER / f"{name.replace(' ', '-')}.txt"
    if os.environ.get("FAKEKUBE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), name


@pytest.fixture(scope="module")
def seen(browser: Any) -> Iterator[tuple[Cluster, Any]]:
    with Cluster(profile="apiserver", seed=1) as cluster:  # YAML has quotes around uids that look like numbers
        cluster.keep_changes()
        cluster.clock.hold()
        fight(cluster)
        context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        page = context.new_page()
        page.goto(cluster.page_url)
        wait_until_loaded(page)
        yield cluster, page
        context.close()


@pytest.mark.parametrize("name", VIEWS)
def test_the_tree_and_the_tab_stops_of_a_view(seen: tuple[Cluster, Any], name: str) -> None:
    cluster, page = seen
    address, ready = VIEWS[name]
    newest = int(cluster.rows.revision)
    page.evaluate("(hash) => { location.hash = hash; }", address.replace("NEWEST", str(newest)).replace("FIRST", str(newest - 3)))
    page.wait_for_selector(ready)
    wait(page, "!document.querySelector('#app').innerText.includes('Reading')")
    compare(name, snapshot(page, cluster))


@pytest.mark.parametrize(("name", "keys", "ready"), [("help", "?", "dialog[open]"), ("commands", ":", "#command:focus")])
def test_the_tree_of_a_dialog(seen: tuple[Cluster, Any], name: str, keys: str, ready: str) -> None:
    cluster, page = seen
    page.evaluate("location.hash = '#/timeline?q=name:web'")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(keys)
    page.wait_for_selector(ready)
    tree = page.locator("dialog" if name == "help" else "[role=dialog]").aria_snapshot()
    page.keyboard.press("Escape")
    compare(name, normalised(f"{tree}\n", cluster))


def test_the_tree_of_a_scenario(open_page: Callable[..., Any], stack: ExitStack) -> None:
    game = stack.enter_context(play(find_scenario("crash-loop")))
    game.judge()
    page = open_page(game.cluster.page_url)
    page.wait_for_selector(".scenario .missing")
    tree = page.locator("main").aria_snapshot()
    compare("scenario", normalised(f"{tree}\n", game.cluster))
