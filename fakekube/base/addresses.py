"""Addresses on which a server listens."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address


@lru_cache(maxsize=64)  # each cluster asks several times
def is_loopback(host: str) -> bool:
    """Reports whether a server that listens on a host is reachable from this machine only."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def reachability_warning(host: str, rights: str = "need the token or a certificate of the kubeconfig") -> str:
    """Returns the warning that other hosts can reach a server, and what they need; "" if they cannot."""
    return "" if is_loopback(host) else f"warning: other hosts can reach the server at {host or '0.0.0.0'}; they {rights}"


def is_address(host: str) -> bool:
    """Reports whether a host is an IP address and not a name."""
    try:
        return bool(ip_address(host))
    except ValueError:
        return False
