"""Loads the endpoint of a webhook from a kubeconfig file, as kube-apiserver does for its flags.

Specified by: k8s.io/apiserver/pkg/util/webhook/webhook.go (LoadKubeconfig), k8s.io/client-go/tools/clientcmd.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fakekube.apiserver.webhooks.transport import Endpoint


class KubeconfigError(ValueError):
    """A kubeconfig file is invalid."""


def endpoint_of(path: str) -> Endpoint:
    """Returns the server and the credentials of the current context of a kubeconfig file. Raises KubeconfigError."""
    file = Path(path)
    try:
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise KubeconfigError(f"open {path}: {(error.strerror or 'unreadable').lower()}") from None
    except (UnicodeDecodeError, yaml.YAMLError):
        raise KubeconfigError(f"error loading config file {path!r}: not YAML") from None
    if not isinstance(config, dict):
        raise KubeconfigError("invalid configuration: no configuration has been provided")
    name = config.get("current-context") or ""
    context = _named(config, "contexts", name).get("context") or {}
    cluster = _named(config, "clusters", context.get("cluster", "")).get("cluster") or {}
    user = _named(config, "users", context.get("user", "")).get("user") or {}
    server = cluster.get("server") or ""
    if not server:
        raise KubeconfigError("invalid configuration: no server found for cluster " + repr(context.get("cluster", "")))
    url = server if "://" in server else f"http://{server}"
    if not url.startswith("https:"):  # as client-go: no credentials without TLS
        return Endpoint(url, None, b"")
    return Endpoint(
        url,
        None,
        _material(cluster, "certificate-authority", file).encode(),
        cluster.get("tls-server-name") or "",
        not cluster.get("insecure-skip-tls-verify"),
        _authorization(user, file),
        "\n".join(filter(None, (_material(user, "client-key", file), _material(user, "client-certificate", file)))),
    )


def _named(config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    for entry in config.get(kind) or ():
        if entry.get("name") == name:
            found: Mapping[str, Any] = entry
            return found
    return {}


def _material(holder: Mapping[str, Any], field: str, file: Path) -> str:
    """Reads a PEM text from the -data field (base64) or from a file beside the kubeconfig; "" without either."""
    inline = holder.get(f"{field}-data")
    try:
        if inline:
            return base64.b64decode(inline).decode("ascii")
        return (file.parent / holder[field]).read_text(encoding="ascii") if holder.get(field) else ""
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"invalid configuration: unable to read {field}: {error}") from None


def _authorization(user: Mapping[str, Any], file: Path) -> str:
    token = user.get("token") or ""
    if user.get("tokenFile"):
        try:
            token = (file.parent / user["tokenFile"]).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise KubeconfigError(f"invalid configuration: unable to read tokenFile: {error}") from None
    if token:
        return f"Bearer {token}"
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password') or ''}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    return ""
