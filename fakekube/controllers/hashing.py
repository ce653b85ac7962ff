"""The hashes that workload controllers put into names and labels.

`pod-template-hash` (Deployments, DaemonSets) is FNV-1a of the template printed as a Go struct, `controller.kubernetes.io/hash`
and the names of ControllerRevisions are FNV-1 of the revision's data. Both are written in an alphabet without vowels, so
that no word comes out.

Specified by: pkg/controller/controller_utils.go (ComputeHash), pkg/controller/history/controller_history.go
(HashControllerRevision), k8s.io/apimachinery/pkg/util/rand/rand.go (SafeEncodeString).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fakekube.codecs import json
from fakekube.controllers.go_structs import print_pod_template

__all__ = ["compute_hash", "fnv1", "fnv1a", "hash_controller_revision", "safe_encode"]

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_OFFSET = 2166136261
_PRIME = 16777619
_MASK = 0xFFFFFFFF


def fnv1(data: bytes) -> int:
    """FNV-1 with 32 bits."""
    result = _OFFSET
    for byte in data:
        result = (result * _PRIME & _MASK) ^ byte
    return result


def fnv1a(data: bytes) -> int:
    """FNV-1a with 32 bits."""
    result = _OFFSET
    for byte in data:
        result = (result ^ byte) * _PRIME & _MASK
    return result


def safe_encode(text: str) -> str:
    """The text in the alphabet of generated names."""
    return "".join(_ALPHABET[ord(character) % len(_ALPHABET)] for character in text)


def compute_hash(template: dict[str, Any], collision_count: int | None) -> str:
    """The hash of a pod template.

    Args:
        template: `spec.template` of a Deployment or a DaemonSet, as it is stored.
        collision_count: `status.collisionCount`, None if it is absent (which is not the same as 0).
    """
    return _compute_hash(json.dumps(template), collision_count)


@lru_cache(maxsize=256)
def _compute_hash(template: bytes, collision_count: int | None) -> str:
    data = print_pod_template(json.reread(template)).encode("utf-8", "surrogateescape")
    if collision_count is not None:
        data += collision_count.to_bytes(8, "little")
    return safe_encode(str(fnv1a(data)))


def hash_controller_revision(data: bytes, probe: int | None) -> str:
    """The hash of a ControllerRevision's data, and of the number of collisions so far (None: absent)."""
    return safe_encode(str(fnv1(data + (b"" if probe is None else str(probe).encode()))))
