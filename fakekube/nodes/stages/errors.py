"""What is wrong with a stage."""

from __future__ import annotations

__all__ = ["StageError"]


class StageError(ValueError):
    """A stage cannot be used: it is malformed, or it uses what is not supported, which the message names."""
