"""Errors of the conversion to internal types: annotations that become fields there.

Specified by: pkg/apis/apps/v1/conversion.go.
"""

from __future__ import annotations

from fakekube.apimachinery.errors import StatusError, status

__all__ = ["cannot_be_handled"]


def cannot_be_handled(kind: str, problem: str) -> StatusError:
    """Returns the 400 for an object of apps/v1 that cannot be converted to the internal type."""
    return status.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {problem}')
