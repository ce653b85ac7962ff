"""The order of preference of the versions of a custom group: GA before beta before alpha, then higher numbers first.

Versions that do not have the form of a Kubernetes version come last, in alphabetical order.

Specified by: k8s.io/apimachinery/pkg/version/helpers.go (CompareKubeAwareVersionStrings).
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["preference"]

_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def preference(version: str) -> tuple[int, int, int, int, str]:
    """Returns a key that sorts the preferred version first."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, 0, version)
    major, stability, minor = match.groups()
    return (0, _STABILITY[stability], -int(major), -int(minor or 0), "")
