"""What remains known of the request that made a change, after the request itself was dropped from the recorder.

Invariant: a cause is immutable, and refers to no body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakekube.apiserver.endpoints.request import RequestInfo


@dataclass(slots=True, eq=False)  # not frozen: it is made for every write
class Cause:
    """The cause of a change: a request, or the reason of a change without one."""

    number: int
    """Of the request; -1 if there is none."""
    info: RequestInfo | None = None
    agent: str = ""
    user: str = ""
    own: bool = False
    key: str = ""
    """The bucket and the key of the first change: `pods default/web`."""
    fault: str = ""
    """The label or id of the fault that sent the request."""
    reason: str = ""
    """Why there was a change without a request: `load`, `replay`, `cluster` …"""
