"""The operator of docs/cookbook/go-operator.md: built with client-go, run against a cluster under many faults.

Building takes a minute, so this is asked for: FAKEKUBE_TEST_GO=1 (and Go, with client-go in its module cache or a network).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "cookbook" / "go-operator.md"
VERSION = "v0.36.3"

pytestmark = [
    pytest.mark.skipif(not os.environ.get("FAKEKUBE_TEST_GO"), reason="FAKEKUBE_TEST_GO is not set"),
    pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed"),
]


def test_go_operator_converges(tmp_path: Path) -> None:
    for text in re.findall(r"^```go\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        name = text.splitlines()[0].removeprefix("// ")
        (tmp_path / name).write_text(text, encoding="utf-8")
    needed = " ".join(f"k8s.io/{module} {VERSION};" for module in ("api", "apimachinery", "client-go"))
    requirements = "\n".join(f"require {one.strip()}" for one in needed.split(";") if one.strip())
    (tmp_path / "go.mod").write_text(f"module example.com/mirror\n\ngo 1.26\n\n{requirements}\n", encoding="utf-8")
    subprocess.run(["go", "mod", "tidy"], cwd=tmp_path, check=True, capture_output=True)
    command = [sys.executable, "-m", "fakekube", "run", "--profile", "apiserver", "--", "go", "test", "-count=1", "-v", "./..."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
