"""The browser of all tests of the page, and its tabs, which serve one test after the other.

A tab costs a second of processor time until it can show anything, a cluster's page in a tab that is there half a second. A cluster
has an origin of its own, so that nothing of a page is left in the next one but what the tab itself keeps: a tab is used again
only if its test has called nothing else than `_PLAIN`, and what its origins have stored is removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.page import webkit

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra `page`)")

__all__ = ["BROWSER", "PROGRAM", "Browser", "Tab"]

BROWSER = os.environ.get("PAGE_BROWSER", "chromium")
#: Chromium's headless shell is the same engine without a desktop's window: it takes half of what a page costs the whole browser.
PROGRAMS = {
    "chromium": ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome"),
    "firefox": ("firefox-esr", "firefox"),
}
PROGRAM = (
    webkit.PROGRAM if BROWSER == "webkit" else next((path for name in PROGRAMS[BROWSER] if (path := shutil.which(name))), None)
)
OPTIONS: dict[str, Any] = {
    # No sandbox: as root, in containers. One process renders all tabs: else each cluster, a site of its own, costs a new one.
    "chromium": {"args": ["--no-sandbox", "--renderer-process-limit=1", "--disable-site-isolation-trials"]},
    "firefox": {"channel": "moz-firefox"},
    "webkit": {},
}[BROWSER]
#: How many times slower the processor is for the pages: what is found out too early is found with it.
THROTTLE = float(os.environ.get("PAGE_THROTTLE", "1"))
VIOLATIONS = "globalThis.violations = []; addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective + ' ' + e.blockedURI));"

#: What a test may ask of a tab without a trace in the tab itself.
_PLAIN = frozenset(
    [
        "click",
        "eval_on_selector_all",
        "evaluate",
        "fill",
        "focus",
        "goto",
        "inner_text",
        "is_closed",
        "is_visible",
        "keyboard",
        "locator",
        "query_selector",
        "query_selector_all",
        "reload",
        "screenshot",
        "select_option",
        "url",
        "wait_for_selector",
        "wait_for_timeout",
    ]
)


def _is_problem(message: Any) -> bool:
    """Reports whether a message is an error; that the network is off is what a test has made so."""
    return message.type == "error" and "ERR_INTERNET_DISCONNECTED" not in message.text


class Tab:
    """A tab in a context of its own: a page of Playwright, which notes what goes wrong in it and whether it can be used again.

    Args:
        context: of Playwright.
        is_own: whether it has options of its own, and is not used again.
    """

    def __init__(self, context: Any, *, is_own: bool) -> None:
        context.set_default_timeout(120_000)  # ends a test that hangs; a machine under load may take long
        self._context, self._page = context, context.new_page()
        self._problems: list[str] = []
        self._origins: set[str] = set()
        self._is_altered = is_own
        if THROTTLE != 1:
            context.new_cdp_session(self._page).send("Emulation.setCPUThrottlingRate", {"rate": THROTTLE})
        self._page.add_init_script(VIOLATIONS)
        self._page.on("console", lambda message: self._problems.append(message.text) if _is_problem(message) else None)
        self._page.on("pageerror", lambda error: self._problems.append(str(error)))

    def __getattr__(self, name: str) -> Any:
        self._is_altered |= name not in _PLAIN
        return getattr(self._page, name)

    def goto(self, address: str) -> None:
        """Opens an address."""
        parts = urlsplit(address)
        self._origins.add(f"{parts.scheme}://{parts.netloc}")
        self._page.goto(address)

    def open_session(self) -> Any:
        """Returns a session of the DevTools protocol, which the caller detaches."""
        self._is_altered = True
        return self._context.new_cdp_session(self._page)

    def check(self) -> None:
        """Fails if anything went wrong since the last check."""
        violations = [] if self._page.is_closed() else self._page.evaluate("globalThis.violations ?? []")
        problems, self._problems = self._problems, []
        assert not problems
        assert not violations

    def clean(self) -> bool:
        """Leaves the page, and forgets what it has stored. Reports whether the tab can be used again; else it is closed."""
        if self._is_altered or BROWSER != "chromium":
            self._context.close()
            return False
        self._page.goto("about:blank")
        self._page.mouse.move(-1, -1)
        session = self._context.new_cdp_session(self._page)
        for origin in self._origins - {"about://"}:
            session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        session.detach()
        self._context.clear_cookies()
        self._origins.clear()
        self._problems.clear()
        return True


@contextmanager
def _launched() -> Iterator[Any]:
    if BROWSER == "webkit":
        with webkit.launch() as opened:
            yield opened
        return
    with playwright.sync_playwright() as started:
        opened = getattr(started, BROWSER).launch(executable_path=PROGRAM, **OPTIONS)
        yield opened
        opened.close()


class Browser:
    """The browser of all modules. It starts with the first context, and with the first one after it was closed."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._opened: Any = None
        self._free: list[Tab] = []

    def new_context(self, **options: Any) -> Any:
        """Returns a context of Playwright, which the caller closes."""
        if self._opened is None:
            self._opened = self._stack.enter_context(_launched())
        return self._opened.new_context(**options)

    def take_tab(self, **options: Any) -> Tab:
        """Returns a tab with nothing in it: a new one if it has options."""
        if options or not self._free:
            context = self.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
            return Tab(context, is_own=bool(options))
        return self._free.pop()

    def put_back(self, tab: Tab) -> None:
        """Takes a tab back."""
        if tab.clean():
            self._free.append(tab)

    def close(self) -> None:
        """Ends the browser, if it runs."""
        self._opened = None
        self._free.clear()
        self._stack.close()
