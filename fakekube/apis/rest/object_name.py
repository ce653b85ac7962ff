"""Checks names with which the server itself looks up objects.

The storage and the clients of the real server have different error messages for invalid names.

Specified by: k8s.io/apiserver/pkg/registry/generic/registry/store.go (NamespaceKeyFunc), k8s.io/client-go/rest/request.go (Name).
"""

from __future__ import annotations

from fakekube.apimachinery.errors import status
from fakekube.apis.validation.names import path_segment
from fakekube.base.golang.strconv import go_quote

__all__ = ["check_key_name", "unusable_name"]


def check_key_name(name: str) -> None:
    """Raises StatusError 400 for a name that cannot be part of a storage key."""
    if not name:
        raise status.bad_request("Name parameter required.")
    problems = path_segment(name)
    if problems:
        raise status.bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(problems)}")


def unusable_name(name: str) -> str:
    """Returns why a client cannot request an object of this name; "" if it can."""
    if not name:
        return "resource name may not be empty"
    problems = path_segment(name)
    return f"invalid resource name {go_quote(name)}: [{' '.join(problems)}]" if problems else ""
