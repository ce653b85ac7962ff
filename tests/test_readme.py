"""Every Python snippet of the README and of the pages in docs runs, every command of the README is one that there is, and every link and
every name of a file leads somewhere."""

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

#: All pages, those for other languages as well.
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
#: Names of files that pages mention and that there are not: placeholders, files of the next minor, folders of examples in other languages.
PLACEHOLDERS = re.compile(r"[A-Z]{4}|1\.38|rules_$|fakekube/v1|^tests/(cel|crd|vap)$")
CODE = re.compile(r"(?<![\w/.-])(?:fakekube|tests|fixtures|conftest_plugin|docs)/[\w./-]*\w")
MODULE = re.compile(r"`(fakekube\.[a-z_.]+?)(?:\.(_?[A-Z][A-Za-z_]*))?`")
LINK = re.compile(r"\]\(([^)#\s:]*)(?:#([^)\s]+))?\)")


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_names_of_files_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [(page.parent / target if target else page, anchor) for target, anchor in LINK.findall(text)]
    assert [target for target, _ in links if not target.exists()] == []
    assert [anchor for target, anchor in links if anchor and anchor not in _anchors(target)] == []
    names = {name for name in CODE.findall(text) if not PLACEHOLDERS.search(name)}
    assert [name for name in names if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists()] == []
    constants = [(ROOT / module.replace(".", "/")).with_suffix(".py") for module, name in MODULE.findall(text) if name]
    assert [str(file) for file in constants if not file.exists()] == []


def test_every_page_is_linked_from_another_one() -> None:
    linked = {
        (page.parent / target).resolve()
        for page in DOCUMENTS
        for target, _ in LINK.findall(page.read_text(encoding="utf-8"))
        if (page.parent / target).resolve() != page
    }
    assert [page.name for page in DOCUMENTS[1:] if page not in linked] == []


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
