"""The report of a check as a page: one HTML file with the verdicts, and the traces of the runs that failed or warned.

Invariant: the file needs no server, and contains no credentials: its traces are redacted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fakekube.checker.trial import BASELINE
from fakekube.checker.verdict import Outcome
from fakekube.page import trace_document

if TYPE_CHECKING:
    from fakekube.checker.report_data import CheckResult, RuleReport

#: The order of the verdicts in the page.
_ORDER = (Outcome.FAIL, Outcome.WARN, Outcome.NOT_EXERCISED, Outcome.PASS)


def report_html(report: CheckResult) -> str:
    """Returns the HTML of a report."""
    names = {key: _name_of(key) for key in report.traces}
    packed = {f"{part}-{names[key]}": content for key, parts in report.traces.items() for part, content in parts.pack().items()}
    ordered = sorted(report.rules, key=lambda rule: [str(one) for one in _ORDER].index(rule.verdict))
    data: dict[str, Any] = {
        "client": report.client,
        "command": report.client,
        "seed": report.seed,
        "seconds": round(report.seconds, 1),
        "profile": report.profile,
        "ok": report.ok,
        "remarks": list(report.remarks),
        "verdicts": [_verdict(rule, report, names) for rule in ordered],
        "baseline": names.get(BASELINE),
        "trials": {names[key]: parts.trace for key, parts in report.traces.items()},
    }
    return trace_document("report", {"report": data}, packed, title=f"fakekube check: {report.client}")


def _name_of(key: str) -> str:
    """Returns the key of a provocation as a name of an element."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", key)


def _verdict(rule: RuleReport, report: CheckResult, names: dict[str, str]) -> dict[str, Any]:
    """Returns a row of the page."""
    keys = [one.key for one in rule.provocations if one.key in report.traces]
    best = next((one.key for one in rule.provocations if one.key in keys and one.verdict == rule.verdict), None)
    reason = rule.evidence[0] if rule.evidence else ""
    return {
        "rule": rule.id,
        "verdict": rule.verdict,
        "class": rule.legality,
        "title": rule.obligation,
        "text": rule.obligation,
        "reason": reason,
        "fix": rule.advice,
        "source": rule.source,
        "evidence": list(rule.evidence),
        "sameAs": rule.same_as,
        "accepted": rule.accepted,
        "trial": names[best] if best is not None else names[keys[0]] if keys else None,
        "provocations": [{**one.as_json(), "trial": names.get(one.key)} for one in rule.provocations],
    }
