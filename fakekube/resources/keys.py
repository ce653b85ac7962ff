"""Names by which clients of the server's own storage ask for objects: what cannot be a key is refused before it is looked up.

Specified by: k8s.io/apiserver/pkg/registry/generic/registry/store.go (NamespaceKeyFunc).
"""

from __future__ import annotations

from fakekube.errors import status
from fakekube.errors.field import go_quote
from fakekube.resources.names import path_segment

__all__ = ["check_key_name"]


def check_key_name(name: str) -> None:
    """Raises StatusError 400 for a name that no object can be stored under."""
    if not name:
        raise status.bad_request("Name parameter required.")
    problems = path_segment(name)
    if problems:
        raise status.bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(problems)}")
