"""What the tests of tables share: a moment, and the cells of an object at that moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from fakekube.apimachinery.printers.table import convertor_for
from fakekube.apimachinery.printers.texts import ages_at

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
AGES = ages_at(NOW)


def ago(**units: float) -> str:
    return (NOW - timedelta(**units)).strftime("%Y-%m-%dT%H:%M:%SZ")


def cells(path: str, obj: dict[str, Any], **metadata: Any) -> list[Any]:
    """The cells of an object named x, an hour old.

    Args:
        path: `group/version/plural`, the core group being empty.
        obj: what it has besides metadata.
        metadata: what its metadata has besides.
    """
    group, version, plural = path.split("/")
    whole = {"metadata": {"name": "x", "creationTimestamp": ago(hours=1), **metadata}, **obj}
    return convertor_for(group, version, plural).cells(whole, AGES)
