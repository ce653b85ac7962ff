"""Remembers pod specs that were found valid, and those without warnings: the pods of a workload and of a test suite are alike.

A spec is known by its JSON text, since equal texts are equal specs with equal findings. What validation says may also depend on
the metadata of the pod: specs with `resourceClaims` and with ephemeral volumes, whose claims have names of the pod, are unknown.

Invariant: a known spec is valid as that of a new pod or template, so it is valid for every update, whose options only allow more.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

import orjson

from fakekube.apimachinery import features
from fakekube.apimachinery.features import Emulation
from fakekube.base.caches import BoundedCache

#: The maximum number of known specs, and of bytes of each.
_MAX_SPECS: Final = 256
_MAX_SPEC_LENGTH: Final = 4096

_Known = BoundedCache[Hashable, None]


class KnownSpecs:
    """The specs of pods and templates in which one check finds nothing under the current emulation.

    Args:
        check: the name of the check.
    """

    def __init__(self, check: str) -> None:
        self._key = "known specs", check

    def key(self, spec: Mapping[str, Any], *, of_pod: bool) -> Hashable | None:
        """Returns the key of a spec of a pod or of a template; None if its findings may depend on more than the spec."""
        if "resourceClaims" in spec or any("ephemeral" in volume for volume in spec.get("volumes") or ()):
            return None
        try:
            text = orjson.dumps(spec)
        except orjson.JSONEncodeError:  # integers beyond 64 bits, invalid UTF-8
            return None
        return (of_pod, text) if len(text) <= _MAX_SPEC_LENGTH else None

    def __contains__(self, key: Hashable | None) -> bool:
        return key is not None and key in features.current().compiled(self._key, _make_known)

    def add(self, key: Hashable | None) -> None:
        """Remembers a spec in which the check has found nothing."""
        if key is not None:
            features.current().compiled(self._key, _make_known).add(key, None)


def _make_known(_: Emulation) -> _Known:
    return BoundedCache(_MAX_SPECS)
