"""Every Python snippet of the README and of the pages in docs runs, and every command of the README is one that there is."""

from __future__ import annotations

import gc
import re
import shlex
import warnings
from pathlib import Path

import pytest

from fakekube.cli.arguments import parse
from tests.nested_pytest import Project

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "cookbook").glob("*.md")))
#: Packages that a snippet may need, and that not everybody has.
OPTIONAL = ("kopf", "kubernetes")
SNIPPETS = [
    pytest.param(snippet, id=f"{page.name}: {snippet.splitlines()[0]}")
    for page in PAGES
    if page.name != "architecture.md"  # sketches
    for snippet in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
]
CONSOLE = [
    line[2:]
    for page in PAGES
    for block in re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ fakekube ") and not re.search(r"[|<>\\]", line)
]
COMMANDS = [line[2:] for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippet_runs(snippet: str, tmp_path: Path) -> None:
    for package in OPTIONAL:
        if f"from {package}" in snippet or f"import {package}" in snippet:
            pytest.importorskip(package)
    if "def test_" in snippet:
        project = Project(tmp_path)
        project.write("test_snippet.py", snippet)
        project.write("pytest.ini", "[pytest]\nasyncio_default_fixture_loop_scope = function\n")
        result = project.run()
        outcomes = result.parseoutcomes()
        assert set(outcomes) == {"passed"}, "\n".join(result.outlines)
        assert outcomes["passed"] >= snippet.count("def test_")
    else:
        exec(compile(snippet, "README.md", "exec"), {})
        if any(package in snippet for package in OPTIONAL):
            with warnings.catch_warnings():  # sockets that the packages leave open are collected here, not in a later test
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()


@pytest.mark.parametrize(
    "command", sorted({c.partition(" #")[0].removesuffix(" &") for c in (*COMMANDS, *CONSOLE) if c.startswith("fakekube ")})
)
def test_command_is_parsed(command: str) -> None:
    assert parse(shlex.split(command)[1:]).command != "help"


def test_ci_calls_the_test_command_of_the_readme() -> None:
    (command,) = [c for c in COMMANDS if ".venv/bin/pytest" in c]
    assert f"\n{command.rpartition('.venv/bin/')[2]}\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
