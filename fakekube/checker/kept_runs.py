"""Keeps what a run has shown, for `--keep DIR`: a folder for each run with the whole trace, the client's output, and the verdict.

Invariant: a kept trace has every request of the client, and says where the provocation began.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from fakekube.checker.rule import Verdict
    from fakekube.checker.trial import Trial

BASELINE = "baseline"
#: The size up to which trace.html keeps bodies.
_LARGEST = "5MB"


def keep_run(folder: Path, trial: Trial, verdict: Verdict | None) -> Path:
    """Writes trace.html, trace.txt, output.txt and verdict.json of a run; returns its folder.

    A second run of the same provocation gets a folder of its own, with a number.

    Args:
        folder: the folder of the user.
        trial: a closed run.
        verdict: None for the baseline run.

    Raises OSError.
    """
    place = _new_folder(folder, trial.rule.key if trial.rule is not None else BASELINE)
    (place / "trace.txt").write_text("\n".join(trial.whole_trace()) + "\n", encoding="utf-8")
    trial.cluster.trace(place / "trace.html", limit=_LARGEST)
    (place / "output.txt").write_text(trial.output_kept() + "\n", encoding="utf-8")
    if verdict is not None and trial.rule is not None:
        told = {
            "key": trial.rule.key,
            "seed": trial.session.seed,
            "verdict": str(verdict.outcome),
            "evidence": list(verdict.evidence),
        }
        (place / "verdict.json").write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return place


def _new_folder(folder: Path, key: str) -> Path:
    name = re.sub(r"[^A-Za-z0-9.]+", "-", key)
    number = 1
    while True:
        place = folder / (name if number == 1 else f"{name}-{number}")
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return place
