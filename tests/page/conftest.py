"""The page in a real browser: Playwright drives Debian's Chromium. Without either the tests are skipped, with the reason.

With `PAGE_BROWSER=firefox` it drives an installed Firefox by WebDriver BiDi; `PAGE_BROWSER=webkit` takes WebKitGTK without Playwright;
`PAGE_THROTTLE=6` makes Chromium six times slower. docs/development.md tells of them.

Every test fails for an error in the console, an uncaught exception and a violation of the Content-Security-Policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from tests.page.browsers import BROWSER, PROGRAM, Browser, Tab
from tests.page.rows import wait_until_loaded

_BROWSER = Browser()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip(f"there is no {BROWSER}")
    yield _BROWSER
    _BROWSER.close()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Closes the browser before a test elsewhere: Playwright keeps an event loop running, which other tests must not meet."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        _BROWSER.close()


_ports: list[int] = [0]
"""The port of the last cluster."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster with the address of the one before: the browser has the page's modules and their compiled code already, which is
    a quarter of what the page costs it."""
    try:
        started = Cluster(profile="apiserver", port=_ports[-1]).start()
    except OSError:  # another process has the port now
        started = Cluster(profile="apiserver").start()
    _ports[:] = [started.port]
    with started:
        started.keep_changes()
        yield started


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """The clusters of a test that do not come from a fixture: they end after its pages, which would miss them."""
    with ExitStack() as entered:
        yield entered


@pytest.fixture
def open_page(browser: Browser, stack: ExitStack) -> Iterator[Callable[..., Any]]:
    """Opens addresses: `page = open_page(cluster.page_url)`; waits until the rows are there, if `waits` is not false.

    `instead` is a page of the test that is left: its tab is the next one.
    """
    tabs: list[Tab] = []

    def opened(address: str, waits: bool = True, instead: Tab | None = None, **options: Any) -> Any:
        if instead is not None:
            instead.check()
            tabs.remove(instead)
            browser.put_back(instead)
        tab = browser.take_tab(**options)
        tabs.append(tab)
        tab.goto(address)
        if waits:
            wait_until_loaded(tab)
        return tab

    yield opened
    try:
        for tab in tabs:
            tab.check()
    finally:
        for tab in tabs:
            browser.put_back(tab)


@pytest.fixture
def trace(cluster: Cluster, tmp_path: Path) -> Callable[[], str]:
    """Writes a trace file, and returns its address."""
    return lambda: cluster.trace(tmp_path / "trace.html").as_uri()
