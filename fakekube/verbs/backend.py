"""What a cluster gives to the verbs: one object that `cluster.py` fills and that no verb changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakekube.admission.chain import Chain
    from fakekube.clock import Clock
    from fakekube.resources.registry import Registry
    from fakekube.resources.services import Services
    from fakekube.store import Store

__all__ = ["Backend", "Settings"]


@dataclass(slots=True)
class Settings:
    """What the owner of a cluster may choose. Times are seconds."""

    version: str = "1.36"
    """The emulated minor of Kubernetes."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    too_large_resource_version_wait: float = 3.0
    """How long a read waits for a revision that is not there yet (blockTimeout of the watch cache)."""
    min_request_timeout: float = 1800.0
    """A watch without timeoutSeconds lasts between one and two times this (--min-request-timeout)."""
    bookmark_period: float = 60.0
    """How often a watch that allows bookmarks gets one."""


@dataclass(slots=True)
class Backend:
    """The rooms behind the verbs, of one cluster."""

    store: Store
    registry: Registry
    clock: Clock
    services: Services
    admission: Chain
    settings: Settings = field(default_factory=Settings)
