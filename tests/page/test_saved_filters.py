"""Filters with names: by keyboard and by commands, live and in a file, and where the browser keeps nothing or keeps nonsense."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fakekube import ApiError, Cluster
from tests.page.rows import Person, wait, wait_until_loaded, wait_until_rendered
from tests.unit.seen import config_map

Open = Callable[..., Any]

LABEL = "document.querySelector('.saved summary').innerText.replace('▾', '').trim()"
ENTRIES = "[...document.querySelectorAll('.saved li.own')].map((one) => one.textContent.replace(/\\s+/g, ' ').trim())"
STORED = "JSON.parse(localStorage.getItem('fakekube'))?.filters ?? null"


@pytest.fixture
def written(cluster: Cluster) -> Cluster:
    """A cluster with a request that was refused."""
    cluster.create(config_map("a"))
    with pytest.raises(ApiError):
        cluster.client_of("my-operator/1.0").call("POST", "/api/v1/namespaces/default/configmaps", config_map("a"))
    return cluster


def test_a_filter_is_chosen_saved_used_and_deleted_by_keyboard(
    written: Cluster, open_page: Open, trace: Callable[[], str]
) -> None:
    page = None
    for address in (written.page_url, trace()):
        page = open_page(address, instead=page)
        person = Person(page)
        assert page.evaluate(LABEL) == "saved: defaults"
        person.press("s")
        page.keyboard.press("ArrowDown")
        while page.evaluate("!document.activeElement.innerText.startsWith('errors')"):
            page.keyboard.press("ArrowDown")
        person.press("Enter")
        assert page.evaluate(f"[fakekube.query, {LABEL}, document.querySelector('.saved').open]") == [
            "code>399",
            "saved: errors",
            False,
        ]
        wait(page, "document.activeElement.getAttribute('role') === 'grid'")
        person.press("/")
        page.keyboard.type(" my-operator")
        person.press("Enter")
        assert page.evaluate(LABEL) == "saved: none"
        person.press("s ArrowUp")  # to the button
        page.keyboard.press("ArrowUp")  # to the last entry
        person.press("Enter")
        page.keyboard.type("mine")
        person.press("Enter")
        wait(page, f"{LABEL} === 'saved: mine'")
        assert page.evaluate(STORED) == [{"name": "mine", "text": "code>399 my-operator"}]
        person.command("filter everything")
        assert page.evaluate(f"[fakekube.query, {LABEL}]") == ["", "saved: everything"]
        page.reload()
        wait_until_loaded(page)
        person.command("filter mine")
        assert page.evaluate(f"[fakekube.query, {LABEL}]") == ["code>399 my-operator", "saved: mine"]
        wait(page, "document.querySelectorAll('.grid-body .grid-row').length === 1")
        person.press("g c")  # a view without a filter
        person.command("filter writes")
        assert page.evaluate("fakekube.route.view") == "timeline"
        person.command("save a, b")
        person.command("save errors")
        assert "everybody" in page.inner_text(".message")
        person.command("forget mine")
        assert page.evaluate(ENTRIES) == ["a, b verb:create,update,patch,apply,delete,deletecollection -heartbeats×"]
        page.evaluate("document.querySelector('.saved').open = true")
        page.click("button[aria-label='Delete a, b']")
        assert page.evaluate(f"[{ENTRIES}, {STORED}]") == [[], []]


def test_filters_of_two_tabs_are_kept(written: Cluster, open_page: Open) -> None:
    one = open_page(written.page_url)
    other = one.context.new_page()
    other.goto(written.page_url)
    wait_until_loaded(other)
    Person(one).command("save one")
    wait(other, "fakekube.preferences.get('filters').length === 1")
    one.evaluate("fakekube.preferences.reload = () => {}")  # a tab that has not heard of the other yet
    Person(other).command("save other")
    Person(one).command("save third")
    assert [entry["name"] for entry in one.evaluate(STORED)] == ["one", "other", "third"]


HOSTILE = [
    "no JSON",
    "[]",
    "7",
    '"text"',
    json.dumps({"theme": 'x"><img src=x onerror=alert(1)>', "shortcuts": {}, "panel": "1e9", "filters": {"name": "a"}}),
    json.dumps(
        {
            "filters": [
                None,
                7,
                {"name": "a"},
                {"name": " ", "text": ""},
                {"name": "a" * 61, "text": ""},
                {"name": "b", "text": "x" * 2001},
            ]
        }
    ),
    json.dumps({"filters": [{"name": f"{number}", "text": "code:409"} for number in range(1000)]}),
    json.dumps(
        {
            "__proto__": {"polluted": 1},
            "filters": [
                {"name": "<img src=x onerror=alert(1)>\u202e", "text": 'unfinished "quote'},
                {"name": "__proto__", "text": "\u0000"},
            ],
        }
    ),
]


def test_what_the_browser_has_stored_is_not_trusted(written: Cluster, open_page: Open) -> None:
    page = open_page(written.page_url)
    for text in HOSTILE:
        page.evaluate("(text) => localStorage.setItem('fakekube', text)", text)
        if text in HOSTILE[-2:]:
            page.reload()
            wait_until_loaded(page)
        else:  # as if another tab had written it
            page.evaluate("() => void dispatchEvent(new StorageEvent('storage'))")
            wait_until_rendered(page)
        assert page.evaluate("document.querySelectorAll('img').length") == 0
        assert page.evaluate("[fakekube.preferences.get('theme'), fakekube.preferences.get('panel'), ({}).polluted ?? null]") == [
            "system",
            "440",
            None,
        ]
        assert page.evaluate("fakekube.preferences.get('filters').length") <= 50
    assert [entry.split()[0] for entry in page.evaluate(ENTRIES)] == ["<img", "__proto__"]
    person = Person(page)
    person.command("filter <img")
    assert "unfinished quote" in page.inner_text("#filter-error")
    person.command("filter defaults")
    person.command("save mine")
    assert [entry["name"] for entry in page.evaluate(STORED)][2:] == ["mine"]


@pytest.mark.parametrize(
    ("error", "reason", "from_file"),
    [
        ("new DOMException('full', 'QuotaExceededError')", "is full", False),
        ("new DOMException('no', 'SecurityError')", "stores nothing", True),
    ],
    ids=["full", "refused"],
)
def test_a_filter_is_not_saved_where_nothing_can_be_stored(
    written: Cluster, open_page: Open, trace: Callable[[], str], error: str, reason: str, from_file: bool
) -> None:
    page = open_page(trace() if from_file else written.page_url)
    page.evaluate(f"() => {{ Storage.prototype.setItem = () => {{ throw {error}; }}; }}")
    person = Person(page)
    person.command("filter errors")
    assert page.evaluate(LABEL) == "saved: errors"
    page.evaluate("fakekube.setQuery('code:409')")
    person.command("save mine")
    assert reason in page.inner_text(".message.problem")
    person.press("s ArrowUp ArrowUp Enter")
    assert reason in page.inner_text("dialog[open] .error")
    assert not page.locator("dialog input").count()
    person.press("Escape")
    person.command("theme dark")  # holds until the page is closed
    wait(page, "document.documentElement.dataset.theme === 'dark'")
    assert page.evaluate(f"[{ENTRIES}, fakekube.preferences.get('theme')]") == [[], "dark"]
