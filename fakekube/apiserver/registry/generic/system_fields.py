"""Maintains the metadata that the server owns: sets it on create, and keeps it on update.

Functions here change the request's own tree in place. Times are RFC 3339 with whole seconds, from the cluster's clock.

Specified by: k8s.io/apiserver/pkg/registry/rest/meta.go (WipeObjectMetaSystemFields, FillObjectMetaSystemFields,
EnsureObjectNamespaceMatchesRequestNamespace), names/generate.go, and the metadata parts of BeforeUpdate.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from random import Random
from struct import Struct
from typing import Any

from fakekube.apimachinery.errors import status
from fakekube.base.golang.rand import random_string
from fakekube.base.golang.timestamps import print_time

_SUFFIX_LENGTH = 5
_PREFIX_LENGTH = 63 - _SUFFIX_LENGTH

#: Of its own, so that a test that seeds the generators of its process does not get the same UUIDs again.
_RANDOM = Random()
#: The bits of a UUID that are random, and those that say its version (4) and variant (RFC 9562).
_RANDOM_BITS = (1 << 128) - 1 & ~(0xF << 76 | 0x3 << 62)
_VERSION_BITS = 0x4 << 76 | 0x2 << 62
_UUID_GROUPS = Struct("8s4s4s4s12s").unpack

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RANDOM.seed)

_WIPED = frozenset({"selfLink", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"})


def random_uuid() -> str:
    """Returns a UUID of version 4 (RFC 9562), as text."""
    digits = b"%032x" % (_RANDOM.getrandbits(128) & _RANDOM_BITS | _VERSION_BITS)
    return b"-".join(_UUID_GROUPS(digits)).decode()


def wipe(metadata: dict[str, Any]) -> None:
    """Removes fields that a client cannot set on create."""
    for name in _WIPED & metadata.keys():
        del metadata[name]


def fill(metadata: dict[str, Any], now: datetime) -> None:
    """Sets uid and creationTimestamp of a new object."""
    metadata["uid"] = random_uuid()
    metadata["creationTimestamp"] = print_time(now)


def needs_generated_name(metadata: Mapping[str, Any]) -> bool:
    return bool(metadata.get("generateName")) and not metadata.get("name")


def generate_name(prefix: str) -> str:
    """Returns a name for a generateName: the prefix, cut to 58 characters, and five random ones."""
    return prefix[:_PREFIX_LENGTH] + random_string(_SUFFIX_LENGTH)


def match_namespace(metadata: dict[str, Any], namespace: str) -> None:
    """Sets the namespace of the request ("" for cluster-scoped resources) in an object that has none or the same.

    Raises StatusError 400 if the object has another one. The namespace of a cluster-scoped object is dropped.
    """
    own = metadata.get("namespace", "")
    if namespace and own and own != namespace:
        problem = "the namespace of the provided object does not match the namespace sent on the request"
        raise status.bad_request(problem)
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)


def match_name(metadata: Mapping[str, Any], name: str) -> None:
    """Raises StatusError 400 if the name of an object differs from that in the path."""
    own = metadata.get("name", "")
    if not own:
        problem = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise status.bad_request(problem)
    if own != name:
        raise status.bad_request(f"the name of the object ({own}) does not match the name on the URL ({name})")


def keep_on_update(metadata: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Keeps the fields that an update can neither set nor remove (a missing uid is set, and validated afterwards)."""
    if not metadata.get("uid"):
        metadata["uid"] = old.get("uid", "")
    for name in ("creationTimestamp", "deletionTimestamp"):
        if name in old:
            metadata[name] = old[name]
    if "deletionGracePeriodSeconds" in old:
        metadata.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])


def deduplicate_owners(metadata: dict[str, Any], warnings: list[str], *, after_admission: bool) -> None:
    """Removes owner references that are exact duplicates, and warns the client."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    kept: dict[frozenset[tuple[str, Any]], Any] = {}
    doubled = [owner.get("uid", "") for owner in owners if kept.setdefault(frozenset(owner.items()), owner) is not owner]
    if doubled:
        metadata["ownerReferences"] = list(kept.values())
        when = " after mutating admission happens" if after_admission else ""
        warnings.append(_DOUBLED.format(when=when, uids=", ".join(doubled)))


_DOUBLED = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)
