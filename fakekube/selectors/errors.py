"""The one way in which a selector is wrong."""

from __future__ import annotations

__all__ = ["SelectorError"]


class SelectorError(ValueError):
    """A selector that cannot be: `str` of it is what the real server says."""
