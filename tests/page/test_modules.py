"""The pure modules of the page, by their own tests: each `modules/NAME.test.js` runs in the browser and reports here. Node is not needed.

A file exports `tests`: names with functions that get `equal` and `ok`. It imports modules by their bare names, as the page does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from tests.page.rows import wait_until_loaded

FILES = sorted((Path(__file__).parent / "modules").glob("*.test.js"))

RUN = """async (source) => {
  const shown = (value) => JSON.stringify(value, (_, one) => (one === undefined ? '⟨undefined⟩' : one));
  const equal = (found, expected) => { if (shown(found) !== shown(expected)) throw new Error(`found ${shown(found)}, expected ${shown(expected)}`); };
  const ok = (value, message = 'the value') => { if (!value) throw new Error(`${message} is ${shown(value)}`); };
  const {tests} = await import(URL.createObjectURL(new Blob([source], {type: 'text/javascript'})));
  const results = {};
  for (const [name, test] of Object.entries(tests)) {
    try { await test({equal, ok}); results[name] = 'passed'; } catch (error) { results[name] = String(error?.stack ?? error); }
  }
  return results;
}"""


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    """A page whose import map the tests use; its policy would forbid scripts of others."""
    with Cluster(profile="apiserver") as cluster:
        context = browser.new_context(bypass_csp=True)
        opened = context.new_page()
        opened.goto(cluster.page_url)
        wait_until_loaded(opened)
        yield opened
        context.close()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_module(page: Any, file: Path) -> None:
    results = page.evaluate(RUN, file.read_text(encoding="utf-8"))
    assert results
    assert results == dict.fromkeys(results, "passed")


def test_the_pure_modules_have_tests() -> None:
    imported = "\n".join(file.read_text(encoding="utf-8") for file in FILES)
    for module in (
        "filter",
        "owners",
        "yaml_lines",
        "order",
        "format",
        "escape",
        "exact_json",
        "paths",
        "diff",
        "store",
        "revisions",
        "router",
    ):
        assert f'from "fk/{module}"' in imported, module
