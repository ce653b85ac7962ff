"""Runs `fakekube check` on the client and the controller of this folder, with each defect and without defects.

    python tests/check/matrix.py [--times 20] [--at-once 4] [--only W1,C2-newest] [--correct] [--defects]

Each defect has to be found by its rule. The correct programs run with all rules of all classes and must not fail. Prints a line
for each wrong run and a summary; exits with 1 if a run was wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from defects import DEFECTS, Defect

HERE = Path(__file__).parent
#: The options of the check for each program.
PROGRAMS = {"client": [], "controller": ["--sample", str(HERE / "widgets.yaml")]}
#: The programs' idle timeout, only for W7: it would hide other defects.
IDLE = ["--idle", "8"]
#: Rules whose defects show only with further options of the controller.
OPTIONS = {"L1": ["--lease"], "P1": ["--lists", "--page", "3"], "P2": ["--lists", "--page", "3"]}


@dataclass(slots=True)
class Run:
    """One check of one program."""

    program: str
    defect: Defect | None
    options: list[str]

    def __str__(self) -> str:
        return f"{self.program} {self.defect.id if self.defect else 'correct ' + ' '.join(self.options)}".strip()

    def check(self, seed: int) -> tuple[dict[str, dict], float, str]:
        """Returns the rows of the report by rule, the seconds it took, and what was printed."""
        own = IDLE if self.defect is None or self.defect.rule == "W7" else []
        options = [*PROGRAMS[self.program], *own]
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            rules = ["--rules", self.defect.rule] if self.defect else ["--all"]
            command = [
                sys.executable,
                "-m",
                "fakekube",
                "check",
                *rules,
                *options,
                "--seed",
                str(seed),
                "--report",
                str(report),
                "--",
            ]
            command += [sys.executable, str(HERE / f"{self.program}.py"), *own, *self.options]
            if self.defect:
                command += ["--defect", self.defect.id]
            begun = time.monotonic()
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            rows = json.loads(report.read_text())["rules"] if report.exists() else []
        return {row["id"]: row for row in rows}, time.monotonic() - begun, done.stdout[-500:] + done.stderr[-1500:]


def runs(only: list[str], *, correct: bool, defects: bool) -> list[Run]:
    found: list[Run] = []
    if correct:
        found += [Run("client", None, []), Run("client", None, ["--lists", "--page", "3"])]
        found += [Run("controller", None, ["--lease"]), Run("controller", None, ["--lists", "--page", "3"])]
        found += [Run("controller", None, ["--slow", "1.5", "--events"])]
    for defect in DEFECTS.values() if defects else ():
        if not only or defect.rule in only or defect.id in only:
            found += [
                Run(name, defect, [*defect.options, *OPTIONS.get(defect.rule, [])])
                for name in defect.commands
                if name in PROGRAMS
            ]
    for run in found:
        if run.program == "client":
            run.options = [one for one in run.options if one != "--lease"]
    return found


def judge(run: Run, rows: dict[str, dict], output: str) -> tuple[str, str]:
    """Returns the result (right, wrong, weak, or missing), and the evidence."""
    if not rows:
        return ("missing" if "there is no rule" in output else "wrong"), " ".join(output.split())[-300:]
    if run.defect is None:
        blamed = [
            f"{name}: {row['verdict']}: {(row['evidence'] or [''])[0]}"
            for name, row in rows.items()
            if row["verdict"] in ("fail", "warn")
        ]
        failed = any(row["verdict"] == "fail" for row in rows.values())
        return ("wrong" if failed else "weak" if blamed else "right"), "; ".join(blamed)
    row = rows[run.defect.rule]
    word = "right" if row["verdict"] == run.defect.verdict else {"fail": "wrong", "warn": "weak"}.get(row["verdict"], "wrong")
    return word, f"{row['verdict']}: {(row['evidence'] or [''])[0]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--only", default="", help="rules or defects, separated by commas")
    parser.add_argument("--correct", action="store_true", help="the correct programs only")
    parser.add_argument("--defects", action="store_true", help="the defects only")
    parser.add_argument("--verbose", action="store_true", help="a line for each run")
    options = parser.parse_args()
    only = [one for one in options.only.split(",") if one]
    chosen = runs(only, correct=not options.defects and not only, defects=not options.correct)
    words: Counter[str] = Counter()
    by_run: dict[str, Counter[str]] = {}

    def one(job: tuple[Run, int]) -> None:
        run, seed = job
        rows, seconds, output = run.check(seed)
        word, evidence = judge(run, rows, output)
        words[word] += 1
        by_run.setdefault(str(run), Counter())[word] += 1
        if word != "right" or options.verbose:
            print(f"{word:8}{run} (seed {seed}, {seconds:.0f} s): {evidence}", flush=True)

    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(one, [(run, seed) for seed in range(options.times) for run in chosen]))
    print(", ".join(f"{count} {word}" for word, count in words.items()), f"of {len(chosen)} programs, {options.times} times each")
    for name, counts in by_run.items():
        if set(counts) - {"right"} and options.times > 1:
            print(f"  {name}: {dict(counts)}")
    sys.exit(1 if words["wrong"] else 0)


if __name__ == "__main__":
    main()
