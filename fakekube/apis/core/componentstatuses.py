"""Component statuses: not stored, but asked of the components whenever a client asks for them.

There are no components here, so the answers are those of a server that runs alone with its etcd.

Specified by: pkg/registry/core/componentstatus.
"""

from __future__ import annotations

from collections.abc import Sequence

from fakekube import data
from fakekube.registry.strategy import Object

__all__ = ["statuses"]

PATH = "/api/v1/componentstatuses"


def statuses() -> Sequence[Object]:
    """All of them."""
    return [dict(row) for row in data.minor().bootstrap[PATH]]
