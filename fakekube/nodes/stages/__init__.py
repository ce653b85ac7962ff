"""kwok's stages: `stage` parses Stage objects, matches them with objects, and computes their actions; `jq` and `go_templates` are
the languages of their expressions; `controller` plays them.

A stage that uses something unsupported is rejected when it is loaded; the error names it.

Specified by: sigs.k8s.io/kwok/pkg/kwok/controllers, sigs.k8s.io/kwok/pkg/utils/lifecycle.
"""

from __future__ import annotations

__all__ = ["StageError"]


class StageError(ValueError):
    """A stage is malformed or uses something unsupported, which the message names."""
