"""WebKitGTK by plain WebDriver, with the few calls of Playwright that the tests of tasks, keys and saved filters make.

Playwright can drive only a WebKit of its own, which would have to be downloaded. Here `WebKitWebDriver` (Debian: webkit2gtk-driver)
starts the MiniBrowser that comes with it; both need a display (`xvfb-run`). A page is a window, since tabs behind others draw
nothing; the windows share what is stored. Initial scripts run after a page has loaded, so that what goes wrong before is not seen.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["PROGRAM", "launch"]

PROGRAM = shutil.which("WebKitWebDriver") if "DISPLAY" in os.environ else None

#: Keys that are no characters, as WebDriver numbers them.
_KEYS = {
    "Backspace": "\ue003",
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Shift": "\ue008",
    "Control": "\ue009",
    "Escape": "\ue00c",
    "Space": " ",
    "End": "\ue010",
    "Home": "\ue011",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
}
_FUNCTION = re.compile(r"\s*(async\s*)?(\(.*?\)|\w+)\s*=>", re.DOTALL)
_SCRIPT = """const [given, done] = arguments;
(async () => %s)().then((value) => done({value: value === undefined ? null : value}), (error) => done({error: String(error)}));"""
#: Seconds after which a command or a wait has failed.
_PATIENCE = 120


class Driver:
    """A session of WebKitWebDriver."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._session = ""
        self._session = "/session/" + self.call("POST", "/session", {"capabilities": {}})["sessionId"]
        self.window = self.call("GET", "/window")
        self.windows = [self.window]
        self.call("POST", "/timeouts", {"script": _PATIENCE * 1000})

    def call(self, method: str, path: str, body: object | None = None) -> Any:
        """Sends a command of the session, and returns its value."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._address + self._session + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()}") from None

    def switch(self, window: str) -> None:
        """Makes a window the one that commands are meant for."""
        if self.window != window:
            self.call("POST", "/window", {"handle": window})
            self.window = window

    def open(self) -> str:
        """Returns a window that is not in use."""
        if not self.windows:
            self.windows.append(self.call("POST", "/window/new", {"type": "window"})["handle"])
        return self.windows.pop()

    def leave(self, window: str) -> None:
        """Leaves a window empty for the next page."""
        self.switch(window)
        self.call("POST", "/url", {"url": "about:blank"})
        self.windows.append(window)


class Keyboard:
    """The keyboard of a page."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def press(self, chord: str) -> None:
        keys = [_KEYS.get(key, key) for key in (chord.split("+") if len(chord) > 1 else [chord])]
        self._send(
            [{"type": "keyDown", "value": key} for key in keys] + [{"type": "keyUp", "value": key} for key in reversed(keys)]
        )

    def type(self, text: str) -> None:
        self._send([{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")])

    def _send(self, actions: list[dict[str, str]]) -> None:
        self._page.command("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})


class Page:
    """A window, with the names of Playwright."""

    def __init__(self, driver: Driver, context: Context) -> None:
        self._driver = driver
        self.window = driver.open()
        self.context = context
        self.keyboard = Keyboard(self)
        self._scripts: list[str] = []

    def command(self, method: str, path: str, body: object | None = None) -> Any:
        """Sends a command to this window."""
        self._driver.switch(self.window)
        return self._driver.call(method, path, body)

    @property
    def url(self) -> str:
        return str(self.command("GET", "/url"))

    def add_init_script(self, script: str) -> None:
        self._scripts.append(script)

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        """WebDriver tells of no events."""

    def is_closed(self) -> bool:
        return False

    def goto(self, address: str) -> None:
        self.command("POST", "/url", {"url": "about:blank"})  # a fragment alone would load nothing
        self.command("POST", "/url", {"url": address})
        self._started()

    def reload(self) -> None:
        self.command("POST", "/refresh", {})
        self._started()

    def _started(self) -> None:
        for script in self._scripts:
            self.evaluate(f"() => {{ {script} }}")

    def evaluate(self, source: str, arg: object = None) -> Any:
        script = _SCRIPT % (f"({source})(given)" if _FUNCTION.match(source) else f"({source})")
        answer = self.command("POST", "/execute/async", {"script": script, "args": [arg]})
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def eval_on_selector_all(self, selector: str, source: str) -> Any:
        return self.evaluate(f"(selector) => ({source})([...document.querySelectorAll(selector)])", selector)

    def wait_for_timeout(self, milliseconds: float) -> None:
        time.sleep(milliseconds / 1000)

    def wait_for_selector(self, selector: str) -> None:
        end = time.monotonic() + _PATIENCE
        while not self.evaluate("(selector) => !!document.querySelector(selector)?.checkVisibility()", selector):
            assert time.monotonic() < end, f"never shown: {selector}"
            self.wait_for_timeout(30)

    def inner_text(self, selector: str) -> str:
        self.wait_for_selector(selector)
        return str(self.evaluate("(selector) => document.querySelector(selector).innerText", selector))

    def focus(self, selector: str) -> None:
        self.wait_for_selector(selector)
        self.evaluate("(selector) => document.querySelector(selector).focus()", selector)

    def click(self, selector: str) -> None:
        self.wait_for_selector(selector)
        self.evaluate("(selector) => document.querySelector(selector).click()", selector)

    def fill(self, selector: str, text: str) -> None:
        self.focus(selector)
        self.evaluate("document.activeElement.select()")
        self.keyboard.press("Backspace")
        self.keyboard.type(text)

    def select_option(self, selector: str, value: str) -> None:
        self.wait_for_selector(selector)
        self.evaluate(
            "([selector, value]) => { const one = document.querySelector(selector); one.value = value; one.dispatchEvent(new Event('change', {bubbles: true})); }",
            [selector, value],
        )


class Context:
    """The pages of a test."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._pages: list[Page] = []

    def set_default_timeout(self, milliseconds: float) -> None:
        """All waits have the same bound."""

    def new_page(self) -> Page:
        self._pages.append(Page(self._driver, self))
        return self._pages[-1]

    def close(self) -> None:
        for page in self._pages:
            if "http" in page.url or "file" in page.url:
                page.evaluate("localStorage.clear()")
            self._driver.leave(page.window)


class Browser:
    """The browser, with the names of Playwright."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def new_context(self, **options: Any) -> Context:
        return Context(self._driver)


@contextmanager
def launch() -> Iterator[Browser]:
    """Starts the driver and its browser, and ends both."""
    assert PROGRAM
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}  # as root, in containers
    process = subprocess.Popen([PROGRAM, f"--port={port}"], env=environment)
    try:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < end, "the driver does not start"
                time.sleep(0.05)
        driver = Driver(f"http://127.0.0.1:{port}")
        yield Browser(driver)
        driver.call("DELETE", "")
    finally:
        process.terminate()
        process.wait()
