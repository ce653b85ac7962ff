"""Edits whose answers differ from minor to minor, drawn from the other tables of rules: of each difference in an answer about a kind one edit.

`rules_differing.jsonl` holds the tables, a line for the arguments of `tell`. They were searched for by playing all tables to fakekube as 1.34
to 1.37, and are recorded of the minors of which the tables themselves are not.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.differential.rule_tables import State, tell

for line in Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines():
    row = json.loads(line)
    tell(**{**row, "states": [State(**state) for state in row.get("states", ())]}, module="rules_differing")
