"""The stand-in for kubectl where there is no real one."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Runs a command and returns the exit code."""
    print("error: kubectl is not installed", file=sys.stderr)
    return 1
