"""Writes kubeconfig files with inline credentials, readable by their owner only."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from fakekube.apimachinery.codecs import yaml
from fakekube.base.private_files import write_private

__all__ = ["kubeconfig", "write_kubeconfig"]

NAME = "fakekube"


def kubeconfig(url: str, *, token: str = "", authority: str = "", certificate: str = "", key: str = "") -> dict[str, Any]:
    """Returns a kubeconfig with one context.

    Args:
        url: The URL of the API server.
        token: The bearer token of the user.
        authority, certificate, key: The CA bundle, and the user's certificate and key (PEM).
    """
    cluster: dict[str, Any] = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = _inline(authority)
    elif url.startswith("http://"):
        cluster["insecure-skip-tls-verify"] = True  # without it the client for JavaScript refuses plain HTTP
    user: dict[str, Any] = {}
    if certificate:
        user = {"client-certificate-data": _inline(certificate), "client-key-data": _inline(key)}
    elif token:
        user = {"token": token}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": user}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
    }


def write_kubeconfig(path: Path, config: dict[str, Any]) -> None:
    """Writes a kubeconfig to a file that only its owner can read. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, yaml.dumps(config))


def _inline(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
