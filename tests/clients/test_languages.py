"""The pages of docs for other languages, run as they stand: `pytest tests/clients/test_languages.py --languages go,java`.

A page says which files there are (a name in backquotes and a colon, then a block) and what is run (console blocks). The
packages come from the registries of the languages, so this is not a part of the suite.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"

#: Page → the program without which it cannot be run.
TOOLS = {"go": "go", "java": "mvn", "javascript": "npm", "rust": "cargo", "shell": "sh"}

_FILE = re.compile(r"^`([\w./-]+)`:\n\n```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("language", sorted(TOOLS))
def test_documentation_page_of_a_language_runs(language: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    if language not in pytestconfig.getoption("--languages").split(","):
        pytest.skip(f"--languages={language} is not given")
    if shutil.which(TOOLS[language]) is None:
        pytest.skip(f"there is no {TOOLS[language]}")
    page = (DOCS / f"{language}.md").read_text(encoding="utf-8")
    folder = tmp_path / "suite"
    for name, text in _FILE.findall(page):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    lines = [line[2:] for block in _CONSOLE.findall(page) for line in block.splitlines() if line.startswith("$ ")]
    found = subprocess.run(
        ["sh", "-euxc", "\n".join(lines)], cwd=folder, env=_environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def _environment(tmp_path: Path) -> dict[str, str]:
    """The environment of the caller, with the command `fakekube` of this source."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    command = binaries / "fakekube"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fakekube "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(DOCS.parent)}
