"""The Common Expression Language, as the rules of custom resources use it."""

from __future__ import annotations

from fakekube.apimachinery.cel.rules import Rules, compile_rules

__all__ = ["Rules", "compile_rules"]
