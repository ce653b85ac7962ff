"""The error of selectors."""

from __future__ import annotations


class SelectorError(ValueError):
    """A selector is invalid; `str` of the error is the message of the real server."""
