"""Keys arrive where a person means them, however late the browser draws: each key finds the page as the key before it has left it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fakekube import Cluster
from tests.page.rows import HELD_OBJECTS, Person, visible_rows, wait
from tests.unit.seen import config_map, deployment

Open = Callable[..., Any]

#: A browser whose frames are late, as on a machine with much to do.
LATE_FRAMES = """() => {
  const frame = requestAnimationFrame;
  globalThis.requestAnimationFrame = (draw) => setTimeout(() => frame(draw), 1000);
}"""


@pytest.fixture
def late(cluster: Cluster, open_page: Open) -> Any:
    """A page with a Deployment of three revisions and eight ConfigMaps, that draws late."""
    cluster.create(deployment("web", 3))
    for replicas in (4, 5):
        cluster.patch("deployments", "web", {"spec": {"replicas": replicas}})
    for number in range(8):
        cluster.create(config_map(f"a-{number}"))
    page = open_page(cluster.page_url)
    page.evaluate(LATE_FRAMES)
    return page


def test_a_view_is_opened_at_once_after_a_command(cluster: Cluster, late: Any) -> None:
    person = Person(late)
    newest = int(cluster.rows.revision)
    person.command(f"range {newest - 4}..{newest - 2}")
    person.press("g r")
    wait(late, "document.querySelectorAll('.grid-body .grid-row').length === 3")
    assert [f"a-{number}" in row for number, row in zip((3, 4, 5), visible_rows(late), strict=True)] == [True] * 3
    person.press("Control+k")
    assert late.evaluate("document.activeElement.value") == ""


def test_keys_after_escape_belong_to_the_view(late: Any) -> None:
    person = Person(late)
    person.press("Control+k")
    late.keyboard.type("pods")
    person.press("Escape")
    person.press("g o")
    assert late.evaluate("[fakekube.route.view, document.querySelector('.command')]") == ["objects", None]
    wait(late, "document.activeElement.getAttribute('role') === 'treegrid'")
    person.press("/")
    late.keyboard.type("web")
    person.press("Escape")
    person.press("g r")
    assert late.evaluate("fakekube.route.view") == "requests"
    assert late.evaluate("fakekube.query").endswith("web")


def test_keys_in_a_row_move_by_as_many_rows(late: Any) -> None:
    person = Person(late)
    person.press("g r Home ArrowDown ArrowDown ArrowDown")
    assert late.evaluate("document.querySelector('.grid-row.active').dataset.index") == "3"
    person.press("g o")
    wait(late, "document.querySelector('[role=treegrid]') && document.activeElement.getAttribute('role') === 'treegrid'")
    person.press("Home ArrowDown ArrowUp ArrowUp")
    assert late.evaluate("[fakekube.route.view, document.querySelector('.grid-row.active').dataset.index]") == ["objects", "0"]


def test_keys_wait_for_a_panel_that_is_read(late: Any) -> None:
    person = Person(late)
    person.press("g o")
    person.command("deployments web")
    wait(late, "!document.querySelector('.command') && fakekube.route.parts.length")
    person.press("Enter")
    wait(late, "document.activeElement.getAttribute('role') === 'tab'")
    person.press("ArrowRight ArrowRight ArrowLeft")
    assert "tab=history" in late.url
    assert late.evaluate("document.activeElement.id") == "tab-history"


def test_a_command_waits_for_the_objects(late: Any) -> None:
    late.evaluate(HELD_OBJECTS)
    person = Person(late)
    person.command("deployments web")
    assert "Reading the objects" in late.inner_text(".command [role=status]")
    late.evaluate("release()")
    wait(late, "fakekube.route.parts.join('/') === 'deployments.apps/default/web'")
    wait(late, "!document.querySelector('.command')")


def test_escape_and_typing_end_the_waiting_of_a_command(late: Any) -> None:
    late.evaluate(HELD_OBJECTS)
    person = Person(late)
    person.command("deployments web")
    late.keyboard.type("x")
    person.press("Backspace")
    assert not late.query_selector(".command [role=status]")
    person.press("Enter")
    person.press("Escape")
    person.command("objects")  # needs no objects
    late.evaluate("release()")
    wait(late, "document.querySelector('[role=treegrid] .grid-body .grid-row')")
    assert late.evaluate("fakekube.route.parts") == []


def test_a_dialog_opens_and_closes_between_two_keys(late: Any) -> None:
    person = Person(late)
    for _ in range(2):
        person.press("?")
        assert late.evaluate("!!document.querySelector('dialog[open]')")
        person.press("Escape")
        assert not late.evaluate("!!document.querySelector('dialog[open]')")
    person.press("?")
    person.press("Escape")
    person.press("g c")
    assert late.evaluate("fakekube.route.view") == "controls"


def test_an_answer_is_sent_once(cluster: Cluster, late: Any) -> None:
    cluster.delete("configmaps", "a-7")
    late.evaluate("location.hash = '#/requests/10?q='")
    wait(late, "[...document.querySelectorAll('.panel button')].some((one) => one.textContent === 'Repeat…')")
    late.evaluate("[...document.querySelectorAll('.panel button')].find((one) => one.textContent === 'Repeat…').focus()")
    person = Person(late)
    person.press("Enter")
    late.focus("dialog button.primary")
    person.press("Enter Enter")
    wait(late, "document.querySelector('.message')?.textContent.includes('201')")
    assert len(cluster.requests.where(verb="create", name="a-7", own=True)) == 2


def test_enter_does_not_confirm_what_cannot_be_undone(cluster: Cluster, late: Any) -> None:
    person = Person(late)
    person.press("g c")
    for _ in range(2):
        late.evaluate("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Reset…').focus()")
        person.press("Enter")
        assert late.evaluate("document.activeElement.textContent") == "Cancel"
        person.press("Enter")
        assert late.evaluate("document.activeElement.textContent") == "Reset…"
    assert cluster.get("configmaps", "a-0")


PRESSED = """(apart) => {
  const press = (key, time) => {
    const event = new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true});
    Object.defineProperty(event, 'timeStamp', {value: time});
    document.activeElement.dispatchEvent(event);
  };
  press('g', 1000);
  press('c', 1000 + apart);
  return fakekube.route.view;
}"""


def test_a_leader_key_waits_by_the_time_of_the_keys(late: Any) -> None:
    """A page that was busy between two keys still knows when they came: not when it handles them."""
    assert late.evaluate(PRESSED, 5001) == "timeline"
    assert late.evaluate(PRESSED, 4999) == "controls"
