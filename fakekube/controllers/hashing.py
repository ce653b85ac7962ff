"""The hashes that workload controllers put into names and labels.

`pod-template-hash` (Deployments, DaemonSets) is the FNV-1a hash of the template printed as a Go struct.
`controller.kubernetes.io/hash` and the names of ControllerRevisions contain the FNV-1 hash of the revision's data. Both are
encoded in an alphabet without vowels, so that they contain no words.

Specified by: pkg/controller/controller_utils.go (ComputeHash), pkg/controller/history/controller_history.go
(HashControllerRevision).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fakekube.apimachinery.codecs import json
from fakekube.base.golang.rand import safe_encode_string
from fakekube.controllers.go_structs import print_pod_template

__all__ = ["compute_hash", "fnv1", "fnv1a", "hash_controller_revision"]

_OFFSET = 2166136261
_PRIME = 16777619
_MASK = 0xFFFFFFFF


def fnv1(data: bytes) -> int:
    """Returns the 32-bit FNV-1 hash."""
    result = _OFFSET
    for byte in data:
        result = (result * _PRIME & _MASK) ^ byte
    return result


def fnv1a(data: bytes) -> int:
    """Returns the 32-bit FNV-1a hash."""
    result = _OFFSET
    for byte in data:
        result = (result ^ byte) * _PRIME & _MASK
    return result


def compute_hash(template: dict[str, Any], collision_count: int | None) -> str:
    """Returns the hash of a pod template.

    Args:
        template: `spec.template` of a Deployment or a DaemonSet, as it is stored.
        collision_count: `status.collisionCount`; None if it is absent, which gives another hash than 0.
    """
    return _compute_hash(json.dumps(template), collision_count)


@lru_cache(maxsize=256)
def _compute_hash(template: bytes, collision_count: int | None) -> str:
    data = print_pod_template(json.reread(template)).encode("utf-8", "surrogateescape")
    if collision_count is not None:
        data += collision_count.to_bytes(8, "little")
    return safe_encode_string(str(fnv1a(data)))


def hash_controller_revision(data: bytes, probe: int | None) -> str:
    """Returns the hash of a ControllerRevision's data and of the number of collisions so far (None if absent)."""
    return safe_encode_string(str(fnv1(data + (b"" if probe is None else str(probe).encode()))))
