"""Edits of objects of all kinds, one field each: both sides of every boundary, and each answer that a rule has for the field.

`rules_boundaries.jsonl` holds them, a line for an object of a kind. They were searched for among values of all fields (numbers and lengths
beside every constant of the rules, odd texts, lists that are empty, doubled or long), and kept where the answer changes from one
value to the next, or says what no other edit of the kind does.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

from tests.differential.rule_tables import State, tell

FILE = Path(__file__).with_suffix(".jsonl")

tell_of = functools.partial(tell, module="rules_boundaries")

for line in FILE.read_text(encoding="utf-8").splitlines():
    row = json.loads(line)
    states = [State(update=row["update"])] if row.get("update") else []
    if status := row.get("status"):
        states.append(State(status={"status": status}, status_update=row["status_update"]))
    tell_of(row["title"], row["place"], row["base"], create=row.get("create", ()), states=states)
