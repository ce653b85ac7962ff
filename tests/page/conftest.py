"""The page in a real browser: Playwright drives Debian's Chromium. Without either the tests are skipped, with the reason.

With `PAGE_BROWSER=firefox` it drives an installed Firefox by WebDriver BiDi; `PAGE_BROWSER=webkit` takes WebKitGTK without Playwright;
`PAGE_THROTTLE=6` makes Chromium six times slower. docs/development.md tells of them.

Every test fails for an error in the console, an uncaught exception and a violation of the Content-Security-Policy.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from tests.page import webkit
from tests.page.rows import wait_until_loaded

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra `page`)")

BROWSER = os.environ.get("PAGE_BROWSER", "chromium")
PROGRAMS = {"chromium": ("chromium", "chromium-browser", "google-chrome"), "firefox": ("firefox-esr", "firefox")}
PROGRAM = (
    webkit.PROGRAM if BROWSER == "webkit" else next((path for name in PROGRAMS[BROWSER] if (path := shutil.which(name))), None)
)
OPTIONS: dict[str, Any] = {
    "chromium": {"args": ["--no-sandbox"]},  # as root, in containers
    "firefox": {"channel": "moz-firefox"},
    "webkit": {},
}[BROWSER]
#: How many times slower the processor is for the pages: what is found out too early is found with it.
THROTTLE = float(os.environ.get("PAGE_THROTTLE", "1"))
VIOLATIONS = "globalThis.violations = []; addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective + ' ' + e.blockedURI));"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The browser of a module's tests. Playwright keeps an event loop running, which tests of other modules must not meet."""
    if PROGRAM is None:
        pytest.skip(f"there is no {BROWSER}")
    if BROWSER == "webkit":
        with webkit.launch() as opened:
            yield opened
        return
    with playwright.sync_playwright() as started:
        opened = getattr(started, BROWSER).launch(executable_path=PROGRAM, **OPTIONS)
        yield opened
        opened.close()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(profile="apiserver") as started:
        started.keep_changes()
        yield started


def _is_problem(message: Any) -> bool:
    """Reports whether a message is an error; that the network is off is what a test has made so."""
    return message.type == "error" and "ERR_INTERNET_DISCONNECTED" not in message.text


class Watched:
    """A page of the browser, and what went wrong in it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.problems: list[str] = []
        page.add_init_script(VIOLATIONS)
        page.on("console", lambda message: self.problems.append(message.text) if _is_problem(message) else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))

    def check(self) -> None:
        """Fails if anything went wrong."""
        violations = [] if self.page.is_closed() else self.page.evaluate("globalThis.violations ?? []")
        assert not self.problems
        assert not violations


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """The clusters of a test that do not come from a fixture: they end after its pages, which would miss them."""
    with ExitStack() as entered:
        yield entered


@pytest.fixture
def open_page(browser: Any, stack: ExitStack) -> Iterator[Callable[..., Any]]:
    """Opens addresses: `page = open_page(cluster.page_url)`; waits until the rows are there, if `waits` is not false."""
    contexts, watched = [], []

    def opened(address: str, waits: bool = True, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(120_000)  # ends a test that hangs; a machine under load may take long
        contexts.append(context)
        one = Watched(context.new_page())
        if THROTTLE != 1:
            context.new_cdp_session(one.page).send("Emulation.setCPUThrottlingRate", {"rate": THROTTLE})
        watched.append(one)
        one.page.goto(address)
        if waits:
            wait_until_loaded(one.page)
        return one.page

    yield opened
    for one in watched:
        one.check()
    for context in contexts:
        context.close()


@pytest.fixture
def trace(cluster: Cluster, tmp_path: Path) -> Callable[[], str]:
    """Writes a trace file, and returns its address."""
    return lambda: cluster.trace(tmp_path / "trace.html").as_uri()
