"""Bodies and what the reference made of them: decoded with strict errors, stored, and defaulted.

A line of `fixtures/decoding/cases.jsonl` has `kind` (group, version, kind) and `body` (text), and either `error` or
`stored` (after a round trip through storage), `strict` (if anything) and `defaulted` (if that changed anything).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakekube.apimachinery.schema.builtin import builtins
from fakekube.apimachinery.schema.model import Type

_FILE = Path(__file__).parents[4] / "fixtures" / "decoding" / "cases.jsonl"


@dataclass(frozen=True)
class Case:
    group: str
    version: str
    kind: str
    body: bytes
    error: str | None
    strict: list[str]
    stored: str
    defaulted: str

    @property
    def type(self) -> Type:
        found = builtins("1.36").kind_type(self.group, self.version, self.kind)
        assert found is not None
        return found

    def __str__(self) -> str:
        return f"{self.kind}-{self.body[:40].decode()}"


def _case(row: dict[str, Any]) -> Case:
    stored = row.get("stored", "")
    defaulted = row.get("defaulted", stored)
    group, version, kind = row["kind"]
    strict = row.get("strict", [])
    return Case(group, version, kind, row["body"].encode(), row.get("error"), strict, stored, defaulted)


CASES = [_case(json.loads(line)) for line in _FILE.read_text().splitlines()]
