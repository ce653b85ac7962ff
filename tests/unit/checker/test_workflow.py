"""The workflow in docs/check.md: its commands run, except for the installation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
#: A client that reacts to what it watches, whose reaction is seen at once.
OPERATOR = """
import os
import threading
from pathlib import Path

from tests.unit.checker.reflector import Reflector

Reflector(Path(os.environ["KUBECONFIG"]), "").run(threading.Event())
"""


def run_the_workflow() -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """Returns what the commands printed, and the text of each file that they have written."""
    with tempfile.TemporaryDirectory() as folder:
        done = _run(Path(folder))
        written = [path for path in Path(folder).rglob("*") if path.is_file()]
        return done, {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in written}


def _run(folder: Path) -> subprocess.CompletedProcess[str]:
    workflow = yaml.safe_load(re.search(r"^```yaml\n(name:.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1])  # type: ignore[index]
    (accepted,) = re.findall(r"^```text\n(# rule: reason.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (folder / "accepted.txt").write_text(accepted)
    (folder / "sample.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: sample, namespace: default}, data: {key: value}}"
    )
    (folder / "operator.py").write_text(OPERATOR)
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    (check,) = [command for command in commands if not command.startswith("pip install")]
    environment = {**os.environ, "CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    environment["PYTHONPATH"] = str(ROOT)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    few = check.replace("--profile fast", "--rules W5,N2").replace("--require W1,W5", "--require W5")
    return subprocess.run(["bash", "-ec", few], cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("awaited", [run_the_workflow], indirect=True)
def test_the_commands_of_the_workflow(awaited: tuple[subprocess.CompletedProcess[str], dict[str, str]]) -> None:
    done, files = awaited
    assert done.returncode == 0, done.stdout + done.stderr
    assert {rule["id"]: rule["verdict"] for rule in json.loads(files["report.json"])["rules"]} == {"W5": "pass", "N2": "pass"}
    assert "N2 is accepted as broken, and passes now" in done.stdout
    assert "### fakekube check: passed" in files["summary.md"]
    assert {"junit.xml", "check.sarif", "traces/W5-ends/output.txt"} <= files.keys()
    assert "the provocation begins" in files["traces/W5-ends/trace.txt"]
