"""What a page holds, as Python values."""

from __future__ import annotations

from typing import Any

__all__ = ["HELD_OBJECTS", "Person", "table", "visible_rows", "wait", "wait_until_loaded", "wait_until_rendered"]

#: Objects that are read only when the test says so.
HELD_OBJECTS = """() => {
  const {provider} = fakekube;
  const read = provider.objects.bind(provider);
  const held = new Promise((done) => { globalThis.release = done; });
  provider.objects = async (at) => { await held; return read(at); };
}"""

_TABLE = """([name, columns]) => {
  const table = fakekube.store[name];
  return Array.from({length: table.count}, (_, row) => columns.map((column) => table.types[column] === 's' ? table.text(column, row) : Number.isNaN(table.value(column, row)) ? null : table.value(column, row)));
}"""


def table(page: Any, name: str, columns: list[str]) -> list[dict[str, Any]]:
    """Returns the rows of a table of the page's store."""
    return [dict(zip(columns, row, strict=True)) for row in page.evaluate(_TABLE, [name, columns])]


def visible_rows(page: Any) -> list[str]:
    """Returns the texts of the rows of the first grid that are in the DOM, in the order of their indexes."""
    found = page.evaluate(
        """() => [...document.querySelectorAll('.grid-body .grid-row')].map((row) => [Number(row.dataset.index), [...row.children].map((cell) => cell.textContent.trim()).join('|')])"""
    )
    return [text for _, text in sorted(found)]


#: Waits in the page: asked from outside time and again, it would cost five processes some milliseconds each time.
_WAIT = """async ([arg, end]) => {
  end += performance.now();
  const find = async () => { const found = (EXPRESSION); return typeof found === 'function' ? await found(arg) : found; };
  while (!await find()) {
    if (performance.now() > end) return false;
    await new Promise((done) => setTimeout(done, 10));
  }
  return true;
}"""


def wait(page: Any, expression: str, arg: Any = None, seconds: float = 120.0) -> None:
    """Waits until an expression is true. Playwright's own `wait_for_function` needs `eval`, which the policy of the page forbids."""
    is_true = page.evaluate(_WAIT.replace("EXPRESSION", expression), [arg, seconds * 1000])
    assert is_true, f"never true: {expression}; {page.evaluate('document.body.innerText')[:2000]}"


def wait_until_loaded(page: Any) -> None:
    """Waits until the rows of a page are there, and are rendered."""
    wait(
        page,
        "!!globalThis.fakekube?.loaded && globalThis.fakekube.connection.state !== 'connecting' && !globalThis.fakekube.scheduled",
    )


def wait_until_rendered(page: Any) -> None:
    """Waits until the page has rendered what was asked for: it does so in the next frame."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


class Person:
    """Somebody with a keyboard only. A chord (`Control+k`), a sequence of keys of one shortcut (`g t`) and a text are an action each."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.actions = 0

    def press(self, keys: str) -> None:
        """Presses the keys of one shortcut, separated by spaces; `Space` is the space bar."""
        self.actions += 1
        for key in keys.split(" "):
            self.page.keyboard.press(key)

    def command(self, text: str) -> None:
        """Opens the command line, types a command, and runs it: three actions."""
        self.actions += 3
        self.page.keyboard.press("Control+k")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
