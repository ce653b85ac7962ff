"""axe finds no violations of WCAG 2.2 AA in any view, in both themes; keys reach everything; narrow windows lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fakekube import Cluster
from tests.page.rows import wait, wait_until_rendered
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


RUN = """(options) => axe.run(options).then(({violations}) =>
  violations.flatMap(({id, nodes}) => nodes.slice(0, 3).map(({html}) => `${id}: ${html.slice(0, 200)}`)))"""
OPTIONS = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "resultTypes": ["violations"],  # of what passes nothing need be described
}
#: The themes differ in colours only.
OF_COLOURS = {**OPTIONS, "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}


def violations(page: Any, options: dict[str, Any]) -> list[str]:
    """Returns what axe finds; it is in the page already."""
    found: list[str] = page.evaluate(RUN, options)
    return found


def test_axe_finds_nothing(cluster: Cluster, open_page: Open) -> None:
    fight(cluster)
    cluster.faults.on("get", "pods").status(503)
    page = open_page(cluster.page_url, color_scheme="light", bypass_csp=True)
    page.evaluate(axe_module.Axe().axe_script)
    for theme, views, options in (("light", VIEWS, OPTIONS), ("dark", VIEWS[::2], OF_COLOURS)):
        page.emulate_media(color_scheme=theme)
        for view in views:
            page.evaluate("(hash) => { location.hash = hash; }", view)
            wait(
                page,
                "document.querySelector('main') && !document.body.innerText.includes('Reading') && !document.body.innerText.includes('Comparing')",
            )
            wait_until_rendered(page)
            assert not violations(page, options), (theme, view)
        page.evaluate("location.hash = '#/timeline'")
        page.keyboard.press("?")
        page.wait_for_selector("dialog[open]")
        assert not violations(page, options), theme
        page.keyboard.press("Escape")
        wait(page, "!document.querySelector('dialog[open]')")


def test_a_narrow_window_does_not_scroll_sideways(cluster: Cluster, open_page: Open) -> None:
    fight(cluster)
    page = open_page(cluster.page_url, viewport={"width": 320, "height": 640})
    for view in VIEWS:
        page.evaluate("(hash) => { location.hash = hash; }", view)
        wait_until_rendered(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, view


#: Notes the part of the page that has the focus, whenever it moves.
FOCUSED_PARTS = """() => {
  globalThis.focusedParts = new Set();
  addEventListener('focusin', ({target}) => {
    const part = target.closest('header, .filter-bar, .cursor-bar, main, .panel, footer, .divider') ?? target;
    focusedParts.add(part.className || part.tagName);
  });
}"""


def test_there_is_no_keyboard_trap(cluster: Cluster, open_page: Open) -> None:
    fight(cluster)
    page = open_page(f"{cluster.page_url}#/requests/0?q=")
    page.wait_for_selector(".panel [role=tab]")
    page.evaluate(FOCUSED_PARTS)
    for _ in range(60):
        page.keyboard.press("Tab")
    seen = set(page.evaluate("[...focusedParts]"))
    assert {"top", "filter-bar", "cursor-bar", "panel", "divider"} <= seen


PIXELS = """() => {
  const canvas = document.querySelector('canvas.lanes');
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const found = {};
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) found[data.subarray(at, at + 3).join()] = 1;
  return Object.keys(found);
}"""
TOKENS = """() => {
  const style = getComputedStyle(document.documentElement);
  return [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).filter((rule) => rule.selectorText === ':root')
    .flatMap((rule) => [...rule.style]).filter((name) => /^--(?!ui|mono)/.test(name)).map((name) => style.getPropertyValue(name).trim());
}"""
SYSTEM = {"Canvas", "CanvasText", "GrayText", "Highlight", "HighlightText"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_forced_colours_are_those_of_the_system(cluster: Cluster, open_page: Open, theme: str) -> None:
    """With forced colours all tokens are colours of the system, also in the drawing, and what is active or on has an outline."""
    fight(cluster)
    cluster.faults.on("get", "pods").status(503)
    page = open_page(f"{cluster.page_url}#/timeline?sel=r0", color_scheme=theme, forced_colors="active")
    page.wait_for_selector(".grid-row.active")
    assert set(page.evaluate(TOKENS)) <= SYSTEM
    background, text = ((255, 255, 255), (0, 0, 0)) if theme == "light" else ((0, 0, 0), (255, 255, 255))
    pixels = [tuple(map(int, one.split(","))) for one in page.evaluate(PIXELS)]
    assert text in pixels
    grey = [one for one in pixels if len(set(one)) == 1]
    assert len(grey) > len(pixels) / 2, (background, pixels[:20])  # marks have no hue; the selection has that of the system
    outline = "(selector) => { const style = getComputedStyle(document.querySelector(selector)); return [style.outlineStyle, style.outlineWidth]; }"
    assert page.evaluate(outline, ".grid-row.active") == ["solid", "2px"]
    assert page.evaluate(outline, "nav a[aria-current=page]") == ["solid", "2px"]
    page.evaluate("location.hash = '#/controls'")
    page.wait_for_selector("[role=switch][aria-checked=true]")
    shown = "(on) => getComputedStyle(document.querySelector(`[role=switch][aria-checked=${on}]`), '::before').backgroundColor"
    assert page.evaluate(shown, "true") != page.evaluate(shown, "false")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
