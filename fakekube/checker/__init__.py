"""`fakekube check`: says which obligations of the Kubernetes API a client breaks, with evidence.

A client, in any language, is run against clusters that do what a real server or network may do; each rule of the catalogue
(docs/client-rules.md) provokes a breach on a cluster of its own and judges by what the server sees.
"""

from __future__ import annotations

from fakekube.checker.api import CalmRunFailed, UnknownRule, check
from fakekube.checker.report import Report, RuleReport

__all__ = ["CalmRunFailed", "Report", "RuleReport", "UnknownRule", "check"]
