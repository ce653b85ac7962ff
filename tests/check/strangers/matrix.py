"""Runs `fakekube check` on the programs of this folder, with each defect and without.

    python tests/check/strangers/matrix.py [--correct] [--only NAME,…] [--times 1] [--at-once 2] [--keep FOLDER] [--options …]

One of the rules of a defect has to fail. A correct program must have no failure and no warning in any rule, with all classes.
Prints a line for each run and a summary; exits with 1 if a run was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from defects import DEFECTS

HERE = Path(__file__).parent
WIDGETS = {"apply", "generate", "several", "lead", "stream", "family"}
PROGRAMS = ("watch", "put", "patch", "apply", "generate", "several", "lead", "pages", "stream", "family")


def check(program: str, defect: str, options: list[str]) -> tuple[dict[str, tuple[str, str]], float]:
    """Returns the verdicts and reasons by rule, and the seconds."""
    sample = HERE / ("widget-and-secret.yaml" if program in WIDGETS else "configmap.yaml")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "fakekube", "check", *options, "--sample", str(sample), "--report", str(report), "--"]
        script = ["family.py"] if program == "family" else ["programs.py", program]
        command += [sys.executable, str(HERE / script[0]), *script[1:], *(["--defect", defect] if defect else [])]
        begun = time.monotonic()
        environment = {name: value for name, value in os.environ.items() if name != "CI"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if not report.exists():
            return {"baseline": ("no report", (done.stderr + done.stdout)[-300:])}, time.monotonic() - begun
        rows = json.loads(report.read_text())["rules"]
    return {row["id"]: (row["verdict"], (row["evidence"] or [""])[0]) for row in rows}, time.monotonic() - begun


def run(program: str, defect: str, seed: int, options: list[str], kept: Path | None) -> bool:
    """Runs a check and prints a line; returns whether the verdicts are right. The traces of wrong runs are kept in a folder."""
    place = kept / f"{program}-{defect or 'correct'}-{seed}" if kept is not None else None
    if place is not None:
        options = [*options, "--keep", str(place)]
    wanted = DEFECTS[defect][1].split() if defect else []
    which = ["--rules", ",".join(wanted)] if defect else ["--all"]
    found, seconds = check(program, defect, [*which, "--seed", str(seed), *options])
    blamed = {rule: one for rule, one in found.items() if one[0] in ("fail", "warn", "no report")}
    right = any(found.get(rule, ("", ""))[0] == "fail" for rule in wanted) if defect else not blamed
    load = os.getloadavg()[0]
    shown = "" if right and not defect else "; ".join(f"{k} {v[0]}: {v[1][:180]}" for k, v in (blamed or found).items())
    if right and place is not None:
        shutil.rmtree(place, ignore_errors=True)
    print(f"{'right' if right else 'WRONG'} {program} {defect or 'correct'} {seconds:.0f} s, load {load:.0f} {shown}", flush=True)
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--correct", action="store_true", help="the programs without defects")
    parser.add_argument("--only", default="")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="a folder for the traces of wrong runs")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--options", default="", help="of the check")
    options = parser.parse_args()
    only = [part for part in options.only.split(",") if part]
    names = [(program, "") for program in PROGRAMS] if options.correct else [(one[0], name) for name, one in DEFECTS.items()]
    chosen = [pair for pair in names if not only or pair[0 if options.correct else 1] in only]
    runs = [
        (program, defect, seed)
        for seed in range(options.first_seed, options.first_seed + options.times)
        for program, defect in chosen
    ]
    with ThreadPoolExecutor(options.at_once) as pool:
        results = list(pool.map(lambda one: run(*one, options.options.split(), options.keep), runs))
    print(f"{sum(results)} of {len(results)} right")
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
