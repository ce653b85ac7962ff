"""Every Python snippet of the README and of the pages in docs runs, and every command of the README is one that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fakekube.cli.arguments import parse
from tests.nested_pytest import Project

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
SNIPPETS = [
    pytest.param(snippet, id=f"{page.name}: {snippet.splitlines()[0]}")
    for page in PAGES
    if page.name != "architecture.md"  # sketches
    for snippet in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
]
COMMANDS = [line[2:] for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_runs(snippet: str, tmp_path: Path) -> None:
    if "from kubernetes" in snippet:
        pytest.importorskip("kubernetes")
    if "def test_" in snippet:
        project = Project(tmp_path)
        project.write("test_snippet.py", snippet)
        project.write("pytest.ini", "[pytest]\nasyncio_default_fixture_loop_scope = function\n")
        project.run().assert_outcomes(passed=snippet.count("def test_"))
    else:
        exec(compile(snippet, "README.md", "exec"), {})


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("fakekube ")])
def test_a_command_is_understood(command: str) -> None:
    assert parse(command.split()[1:]).command in ("serve", "run", "export", "record")


def test_ci_calls_the_test_command_of_the_readme() -> None:
    (command,) = [c for c in COMMANDS if ".venv/bin/pytest" in c]
    assert f"\n{command.rpartition('.venv/bin/')[2]}\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
