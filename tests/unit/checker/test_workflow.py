"""The workflow in docs/check.md: its commands run, except for the installation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
CLIENTS = ROOT / "tests" / "check"


def test_the_commands_of_the_workflow(tmp_path: Path) -> None:
    workflow = yaml.safe_load(re.search(r"^```yaml\n(name:.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1])  # type: ignore[index]
    (accepted,) = re.findall(r"^```text\n(# rule: reason.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "accepted.txt").write_text(accepted)
    (tmp_path / "sample.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: sample, namespace: default}, data: {key: value}}"
    )
    client = f"import runpy, sys\nsys.path.insert(0, {str(CLIENTS)!r})\nrunpy.run_path({str(CLIENTS / 'client.py')!r}, None, '__main__')\n"
    (tmp_path / "operator.py").write_text(client)
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    (check,) = [command for command in commands if not command.startswith("pip install")]
    environment = {**os.environ, "CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    few = check.replace("--profile fast", "--rules W5,N2").replace("--require W1,W5", "--require W5")
    done = subprocess.run(["bash", "-ec", few], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {rule["id"]: rule["verdict"] for rule in json.loads((tmp_path / "report.json").read_text())["rules"]} == {
        "W5": "pass",
        "N2": "pass",
    }
    assert "N2 is accepted as broken, and passes now" in done.stdout
    assert "### fakekube check: passed" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "junit.xml").exists()
    assert (tmp_path / "check.sarif").exists()
    assert "the provocation begins" in (tmp_path / "traces" / "W5-ends" / "trace.txt").read_text()
    assert (tmp_path / "traces" / "W5-ends" / "output.txt").exists()
