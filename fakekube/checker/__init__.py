"""`fakekube check`: reports which rules for clients of the Kubernetes API a client breaks, with evidence.

The client may be written in any language. It runs against clusters that behave in the ways that a real server or network may
behave. Each rule (docs/client-rules.md) provokes a failure on a cluster of its own and judges only what the server observes.
"""

from __future__ import annotations

from fakekube.checker.api import check
from fakekube.checker.baseline import BaselineFailed
from fakekube.checker.report import Report, RuleReport
from fakekube.checker.rules import UnknownRule

__all__ = ["BaselineFailed", "Report", "RuleReport", "UnknownRule", "check"]
