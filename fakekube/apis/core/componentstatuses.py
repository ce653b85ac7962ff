"""Component statuses, which are not stored: the real server asks the components on every request.

There are no components here, so the responses are those of a server that runs alone with its etcd.

Specified by: pkg/registry/core/componentstatus.
"""

from __future__ import annotations

from collections.abc import Sequence

from fakekube.apimachinery import data
from fakekube.apis.rest.strategy import Object

__all__ = ["statuses"]

PATH = "/api/v1/componentstatuses"


def statuses(facts: data.Facts) -> Sequence[Object]:
    """Returns all component statuses of a minor."""
    return [dict(row) for row in facts.bootstrap[PATH]]
