"""axe finds no violations of WCAG 2.2 AA in any view, in both themes; keys reach everything; narrow windows lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fakekube import Cluster
from tests.page.rows import wait
from tests.page.test_tasks import fight

axe_module = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

Open = Callable[..., Any]

VIEWS = (
    "#/timeline",
    "#/timeline?sel=r0&at=190",
    "#/requests/0?q=",
    "#/objects",
    "#/objects/deployments.apps/default/web",
    "#/objects/deployments.apps/default/web?tab=history&path=spec.replicas",
    "#/controls",
    "#/compare?from=185&to=188",
    "#/requests?q=code:777",
)


def violations(page: Any) -> list[str]:
    found = axe_module.Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
    return [f"{one['id']}: {node['html'][:200]}" for one in found.response["violations"] for node in one["nodes"][:3]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(cluster: Cluster, open_page: Open, theme: str) -> None:
    fight(cluster)
    cluster.faults.on("get", "pods").status(503)
    page = open_page(cluster.page_url, color_scheme=theme, bypass_csp=True)  # axe is put into the page as a script
    for view in VIEWS if theme == "light" else VIEWS[::2]:  # the themes differ in colours only
        page.evaluate("(hash) => { location.hash = hash; }", view)
        wait(
            page,
            "document.querySelector('main') && !document.body.innerText.includes('Reading') && !document.body.innerText.includes('Comparing')",
        )
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert not violations(page), view
    page.evaluate("location.hash = '#/timeline'")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    assert not violations(page)


def test_a_narrow_window_does_not_scroll_sideways(cluster: Cluster, open_page: Open) -> None:
    fight(cluster)
    page = open_page(cluster.page_url, viewport={"width": 320, "height": 640})
    for view in VIEWS:
        page.evaluate("(hash) => { location.hash = hash; }", view)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, view


def test_there_is_no_keyboard_trap(cluster: Cluster, open_page: Open) -> None:
    fight(cluster)
    page = open_page(f"{cluster.page_url}#/requests/0?q=")
    page.wait_for_selector(".panel [role=tab]")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "(document.activeElement.closest('header, .filter-bar, .cursor-bar, main, .panel, footer, .divider') ?? document.activeElement).className || document.activeElement.tagName"
            )
        )
    assert {"top", "filter-bar", "cursor-bar", "panel", "divider"} <= seen
