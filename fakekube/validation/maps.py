"""Maps of texts that are limited as a whole.

Specified by: pkg/apis/storage/validation (validateParameters, validateAttachmentMetadata).
"""

from __future__ import annotations

from collections.abc import Mapping

from fakekube.golang.strings import bytes_of

__all__ = ["size"]


def size(mapping: Mapping[str, str]) -> int:
    """Bytes of keys and values."""
    return sum(len(bytes_of(key)) + len(bytes_of(value)) for key, value in mapping.items())
