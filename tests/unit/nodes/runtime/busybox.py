"""Records what scripts write and how they end with a real busybox, for test_shell.py: `python tests/unit/nodes/runtime/busybox.py
/bin/busybox` runs the scripts of busybox.json again."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_suffix(".json")


class Recorded(NamedTuple):
    """A script, with its exit code and its output."""

    script: str
    code: int
    stdout: str


def recorded() -> list[Recorded]:
    """Returns what was recorded, with busybox 1.35."""
    return [Recorded(*one) for one in json.loads(FILE.read_text(encoding="utf-8"))]


def _run(script: str, folder: str) -> Recorded:
    found = subprocess.run(
        ["sh", "-c", script],
        executable=f"{folder}/sh",
        env={"PATH": folder},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd="/",
        timeout=10,
        check=False,
    )
    return Recorded(script, found.returncode, found.stdout.decode("utf-8", "replace"))


def record(busybox: str) -> None:
    """Runs the scripts of the file with this busybox, and writes the file."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([busybox, "--install", "-s", folder], check=True)
        lines = [json.dumps(_run(one.script, folder), ensure_ascii=False) for one in recorded()]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    record(sys.argv[1])
