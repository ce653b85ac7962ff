"""The error of stages."""

from __future__ import annotations

__all__ = ["StageError"]


class StageError(ValueError):
    """A stage is malformed or uses something unsupported, which the message names."""
