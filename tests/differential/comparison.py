"""Where two normalised values differ, and how much of a recording is answered as it was recorded."""

from __future__ import annotations

import collections
import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.differential.client import JSON, Exchange
from tests.differential.normaliser import normalise

_TYPED = re.compile(r"(?s)(failed to create typed patch object \(.*?\)): (?:errors:)?(.*)")


def same_typed_errors(want: str, got: str) -> bool:
    """The reference lists the errors of an applied object in any order, and not always all of them."""
    a, b = _TYPED.fullmatch(want), _TYPED.fullmatch(got)
    if not a or not b or a[1] != b[1]:
        return False
    first, second = ({line.strip() for line in m[2].splitlines() if line.strip()} for m in (a, b))
    return first <= second or second <= first


def differences(want: Any, got: Any, path: str = "") -> list[str]:
    """Where two normalised values differ, one line each."""
    if isinstance(want, dict) and isinstance(got, dict):
        out = []
        for key in [*want, *(k for k in got if k not in want)]:
            here = f"{path}.{key}" if path else str(key)
            if key not in got:
                out.append(f"{here}: missing (want {shorten(want[key])})")
            elif key not in want:
                out.append(f"{here}: unwanted {shorten(got[key])}")
            else:
                out += differences(want[key], got[key], here)
        return out
    if isinstance(want, list) and isinstance(got, list):
        out = []
        if len(want) != len(got):
            out.append(f"{path}: {len(got)} items, want {len(want)}")
        for i, (a, b) in enumerate(zip(want, got, strict=False)):
            out += differences(a, b, f"{path}[{i}]")
        return out
    if isinstance(want, str) and isinstance(got, str) and want != got and same_typed_errors(want, got):
        return []
    if type(want) is not type(got) or want != got:
        same = _same_characters(want, got) if isinstance(want, str) and isinstance(got, str) else 0
        return [f"{path}: {shorten(got, same=same)}, want {shorten(want, same=same)}"]
    return []


def _same_characters(want: str, got: str) -> int:
    """Returns with how many equal characters two texts begin."""
    return next((at for at, (a, b) in enumerate(zip(want, got, strict=False)) if a != b), min(len(want), len(got)))


def shorten(value: Any, limit: int = 200, *, same: int = 0) -> str:
    """Prints a value, of a long one the beginning; of a text from shortly before where it differs, after `same` characters."""
    start = 0 if same < limit // 2 else same - limit // 4
    text = json.dumps(value[start:] if start else value)
    return ("…" if start else "") + (text if len(text) <= limit else text[:limit] + "…")


@dataclass(slots=True)
class Difference:
    """One exchange that was answered otherwise than recorded."""

    scenario: str
    number: int
    request: dict[str, Any]
    lines: list[str]

    def __str__(self) -> str:
        request = self.request
        sent = [f"    sent: {shorten(request['body'], 400)}"] if request.get("body") is not None else []
        head = f"--- {self.scenario}[{self.number}] {request['method']} {request['path']} {request['query'] or ''} {request.get('type', '')}"
        accept = [f"    accept: {request['accept']}"] if request.get("accept", JSON) != JSON else []
        return "\n".join([head, *accept, *sent, *(f"    {line}" for line in self.lines[:8])])

    @property
    def place(self) -> str:
        """Where the first difference is, without indices."""
        line = self.lines[0]
        what = " missing" if ": missing" in line else " unwanted" if ": unwanted" in line else ""
        return re.sub(r"\[\d+\]", "[]", line.split(": ", 1)[0]) + what


@dataclass(slots=True)
class Score:
    """How many exchanges, and how many scenarios as a whole, were answered as recorded."""

    exchanges: int = 0
    identical: int = 0
    scenarios: int = 0
    identical_scenarios: int = 0
    in_order: int = 0
    """Identical exchanges whose members also stand in the same order."""
    differences: list[Difference] = field(default_factory=list)

    def add(self, name: str, recorded: list[Exchange], answered: list[Exchange]) -> None:
        """Compare one scenario. Exchanges that the reference itself did not repeat are not counted."""
        before = len(self.differences)
        got = normalise(answered)
        for number, expected in enumerate(normalise(recorded)):
            if recorded[number].get("unstable"):
                continue
            self.exchanges += 1
            actual = got[number] if number < len(got) else {}
            if json.dumps(expected) == json.dumps(actual):  # most are, and this is the cheaper comparison
                self.identical += 1
                self.in_order += 1
            elif lines := differences(expected, actual):
                self.differences.append(Difference(name, number, recorded[number]["request"], lines))
            else:
                self.identical += 1
                self.in_order += json.dumps(expected.get("body")) == json.dumps(actual.get("body"))
        self.scenarios += 1
        self.identical_scenarios += len(self.differences) == before

    def report(self, shown: int) -> str:
        """So many differences in full, the most frequent places, and the score."""
        places = collections.Counter(difference.place for difference in self.differences)
        frequent = [f"  {count:6d}  {place}" for place, count in places.most_common(25)]
        lines = [str(difference) for difference in self.differences[:shown]]
        if frequent and shown:
            lines += ["most frequent differences:", *frequent]
        return "\n".join([*lines, str(self)])

    def __str__(self) -> str:
        return (
            f"scenarios {self.identical_scenarios}/{self.scenarios} identical; exchanges {self.identical}/{self.exchanges} "
            f"identical, {self.in_order} also in the order of members"
        )
