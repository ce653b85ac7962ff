"""Writes the kubeconfig files that lead to a cluster: of its administrator, and of other users.

Credentials are inline: a client certificate if the server speaks TLS, else a token.

Invariants: files are readable by their owner only. Those of the cluster's own temporary folder are deleted when it stops; files
that a caller names are not. Certificates and files are made when they are first needed.

Specified by: k8s.io/client-go/tools/clientcmd/api/v1/types.go.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fakekube.apimachinery.codecs import yaml
from fakekube.apiserver.auth.identities import ADMIN
from fakekube.base.golang.net import is_loopback
from fakekube.base.private_files import write_private

if TYPE_CHECKING:
    import tempfile

    from fakekube.cluster.serving import Serving

#: The name of the cluster, the user and the context in every file.
NAME = "fakekube"


def kubeconfig(url: str, *, token: str = "", authority: str = "", certificate: str = "", key: str = "") -> dict[str, Any]:
    """Returns a kubeconfig with one context.

    Args:
        url: the URL of the API server.
        token: the bearer token of the user.
        authority, certificate, key: the CA bundle, and the user's certificate and key (PEM).
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


#: The bearer token of the administrator of a server that only this machine can reach.
TOKEN: Final = "admin-token"


#: (token, user name, groups): makes the token authenticate that user.
AddToken = Callable[[str, str, Sequence[str]], None]


class Kubeconfigs:
    """The kubeconfig files of one cluster.

    Args:
        serving: the cluster's server.
        url: starts the server if necessary; returns its URL.
        add_token: makes a token authenticate a user; used if the server does not speak TLS.
    """

    def __init__(self, serving: Serving, url: Callable[[], str], add_token: AddToken) -> None:
        self._serving = serving
        self._url = url
        self._add_token = add_token
        self._token = TOKEN if is_loopback(serving.host) else ""
        self._isolated = False
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._of_users: dict[tuple[str, tuple[str, ...]], Path] = {}
        """User name and groups → file."""

    @property
    def token(self) -> str:
        """A bearer token of an administrator: the well-known one, or a random one if other hosts can reach the server."""
        if not self._token:
            self._token = self._token_of(ADMIN.name, ADMIN.groups)
        return self._token

    @property
    def admin(self) -> Path:
        """The file of the administrator; written on first use. Raises RuntimeError if the cluster is not started."""
        if self._folder is None:
            self._url()  # raises before there is a folder
            import tempfile

            self._folder = tempfile.TemporaryDirectory(prefix="fakekube-")
            self.write(Path(self._folder.name) / "kubeconfig")
        return Path(self._folder.name) / "kubeconfig"

    def file_of(self, user: str, groups: tuple[str, ...]) -> Path:
        """Returns the file of a user; written on first use. Raises RuntimeError if the cluster is not started."""
        path = self._of_users.get((user, groups))
        if path is None:
            path = self.admin.parent / f"{len(self._of_users)}-{re.sub('[^A-Za-z0-9.-]', '-', user)}.kubeconfig"
            self.write(path, user, groups)
            self._of_users[user, groups] = path
        return path

    def write(self, path: Path, user: str = "", groups: tuple[str, ...] = ()) -> None:
        """Writes a file for an administrator, or for a user: with a client certificate if the server speaks TLS, else with
        a token. Raises OSError, and RuntimeError if the cluster is not started."""
        write_kubeconfig(path, self._config(user, groups))

    def text(self) -> str:
        """Returns the content of a file for an administrator. Raises RuntimeError if the cluster is not started."""
        return yaml.dumps(self._config()).decode()

    def isolate(self) -> None:
        """Uses random tokens only, which are valid for this cluster alone."""
        self._isolated, self._token = True, ""

    def _config(self, user: str = "", groups: tuple[str, ...] = ()) -> dict[str, Any]:
        serving = self._serving
        if not serving.tls:
            return kubeconfig(self._url(), token=self._token_of(user, groups) if user else self.token)
        if self._isolated:
            return kubeconfig(
                self._url(), authority=serving.authority, token=self._token_of(user, groups) if user else self.token
            )
        certificate, key = serving.credentials.client_certificate, serving.credentials.client_key
        if user:
            from fakekube.net.certificates import client_credentials

            certificate, key = client_credentials(user, groups)
        return kubeconfig(self._url(), authority=serving.authority, certificate=certificate, key=key)

    def remove(self) -> None:
        """Deletes the files of the cluster's own folder."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
            self._of_users.clear()

    def _token_of(self, user: str, groups: tuple[str, ...]) -> str:
        import secrets

        token = f"fakekube-{secrets.token_urlsafe(24)}"
        self._add_token(token, user, groups)
        return token
