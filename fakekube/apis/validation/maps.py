"""Maps of strings with a limit on their total total_size.

Specified by: pkg/apis/storage/validation (validateParameters, validateAttachmentMetadata).
"""

from __future__ import annotations

from collections.abc import Mapping

from fakekube.base.golang.strings import bytes_of

__all__ = ["total_size"]


def total_size(mapping: Mapping[str, str]) -> int:
    """Returns the number of bytes of keys and values."""
    return sum(len(bytes_of(key)) + len(bytes_of(value)) for key, value in mapping.items())
