"""Runs pytest within a test, in this process: what is imported and built once is not imported and built again for each run.

pytest's own `pytester` takes away again what is imported first while it is there. What fakekube imports at its first use would
then come twice, in the version that others hold and in a new one.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with tests."""

    folder: Path

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.folder / name).write_text(textwrap.dedent(text), encoding="utf-8")

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in the folder."""
        start, out, err = time.perf_counter(), io.StringIO(), io.StringIO()
        printed = (contextlib.redirect_stdout(out), contextlib.redirect_stderr(err))
        with contextlib.chdir(self.folder), _modules_forgotten(self.folder), printed[0], printed[1]:
            code = pytest.main([*self._options(), *arguments])
        seconds = time.perf_counter() - start
        return pytest.RunResult(code, out.getvalue().splitlines(), err.getvalue().splitlines(), seconds)

    def run_in_subprocess(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in the folder, in a process of its own."""
        start = time.perf_counter()
        command = [sys.executable, "-m", "pytest", *self._options(), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        return pytest.RunResult(done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), seconds)

    def _options(self) -> list[str]:
        # at the end of a run the plugin unraisableexception collects garbage five times; that of the outer run is enough
        common = ["-p", "no:cacheprovider", "-p", "no:unraisableexception", "--import-mode=importlib"]
        return [*common, f"--rootdir={self.folder}", f"--basetemp={self.folder / 'basetemp'}"]


@contextlib.contextmanager
def _modules_forgotten(folder: Path) -> Iterator[None]:
    """Forget the modules of a folder: the next one may have a file of the same name."""
    try:
        yield
    finally:
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(str(folder)):
                del sys.modules[name]
