"""A client of the cluster of a kubeconfig: discovery, lists in pages, watches, and single requests.

It has the methods of `powers.export.Reader`. The credentials are those of the kubeconfig: a
client certificate, a bearer token (also from a file), or basic authentication; exec plugins are not run.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from fakekube.apimachinery.codecs import DecodeError, yaml
from fakekube.apiserver.endpoints.negotiation import JSON
from fakekube.base.objects import Object
from fakekube.controllers.client.client import (
    ACCEPT,
    ApiError,
    DiscoveredResource,
    RESTMapping,
    UnknownResource,
    collection_path,
    resources_in,
)

#: The number of objects in a page of a list.
PAGE: Final = 500
TIMEOUT: Final = 60.0
"""Seconds for one request."""


class KubeconfigError(ValueError):
    """A kubeconfig is invalid or not supported; the text is the reason."""


class RemoteClient:
    """A client of one cluster.

    Args:
        cluster, user: entries of a kubeconfig.
        folder: the folder of the kubeconfig; paths in the entries are relative to it.
        timeout: seconds for one request.

    Raises KubeconfigError.
    """

    def __init__(self, cluster: Object, user: Object, folder: Path, timeout: float = TIMEOUT) -> None:
        self._server = str(cluster.get("server", "")).rstrip("/")
        if not self._server.startswith(("http://", "https://")):
            raise KubeconfigError("the cluster of the kubeconfig has no server")
        try:
            _ = urlsplit(self._server).port
        except ValueError as error:
            raise KubeconfigError(f"the server of the kubeconfig is {self._server!r}: {error}") from None
        self._headers = _authorization_headers(folder, user)
        self._context = _tls_context(folder, cluster, user) if self._server.startswith("https://") else None
        self._timeout = timeout
        self._resources: list[DiscoveredResource] | None = None

    @classmethod
    def of_kubeconfig(cls, path: Path, context: str = "") -> RemoteClient:
        """Returns the client of a context of a kubeconfig file, by default of the current one. Raises KubeconfigError."""
        chosen = read_context(path, context)
        return cls(chosen.cluster, chosen.user, path.parent)

    # --- Interface for exports ----------------------------------------------------------------------------------------

    def resources(self) -> list[DiscoveredResource]:
        """Returns all versions of all resources; requested once. Raises ApiError."""
        if self._resources is None:
            self._resources = [one for root in ("/api", "/apis") for one in resources_in(self.get(root, accept=ACCEPT))]
        return self._resources

    def listable_resources(self) -> list[DiscoveredResource]:
        """Returns the preferred version of every resource that can be listed and created. Raises ApiError."""
        preferred = {(one.group, one.plural): one for one in reversed(self.resources()) if {"list", "create"} <= one.verbs}
        return list(reversed(preferred.values()))

    def resource(self, name: str) -> DiscoveredResource:
        """Returns the resource for a name that kubectl accepts. Raises UnknownResource and ApiError."""
        for one in self.listable_resources():
            if one.is_called(name):
                return one
        raise UnknownResource(f"no resource is called {name!r}")

    @staticmethod
    def path(resource: RESTMapping, namespace: str | None = None) -> str:
        """Returns the path of a collection."""
        return collection_path(resource, namespace)

    def call(self, method: str, path: str) -> Object:
        """Returns a list with the items of all pages; an empty list if the response is 403, 404 or 405. Raises ApiError."""
        items: list[Object] = []
        token = ""
        while True:
            try:
                page = self.get(path, {"limit": str(PAGE), **({"continue": token} if token else {})})
            except ApiError as error:
                if error.code in (403, 404, 405):
                    return {"items": []}
                raise
            items += page.get("items") or ()
            token = page.get("metadata", {}).get("continue", "")
            if not token:
                return {**page, "items": items}

    # --- Interface for recordings -------------------------------------------------------------------------------------

    def watch(self, path: str, revision: str) -> RemoteWatch:
        """Opens a watch of a collection after a revision. Raises ApiError."""
        query = urlencode({"watch": "true", "resourceVersion": revision, "allowWatchBookmarks": "true"})
        parts = urlsplit(f"{self._server}{path}?{query}")
        if parts.scheme == "https":
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.netloc, timeout=TIMEOUT, context=self._context
            )
        else:
            connection = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT)
        try:
            connection.request(
                "GET",
                f"{parts.path}?{parts.query}",
                headers={"Accept": "application/json", "User-Agent": "fakekube", **self._headers},
            )
            if connection.sock is not None:
                connection.sock.settimeout(None)  # a quiet collection sends nothing for minutes
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ApiError({"message": f"{path}: {error}", "code": 0}) from None
        if response.status != 200:
            text = response.read().decode("utf-8", "replace")
            connection.close()
            raise ApiError({"message": text.strip(), "code": response.status})
        return RemoteWatch(connection, response)

    # --- Requests -----------------------------------------------------------------------------------------------------

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> Object:
        """Returns the object in the response to a GET. Raises ApiError."""
        return self.request("GET", path + (f"?{urlencode(query)}" if query else ""), accept=accept)

    def request(self, method: str, path: str, body: Object | None = None, content_type: str = JSON, accept: str = JSON) -> Object:
        """Sends a request with a JSON body and returns the object in the response.

        Raises ApiError; its code is 0 if there was no response.
        """
        url = f"{self._server}{path}"
        headers = {"Accept": accept, "User-Agent": "fakekube", **self._headers}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = content_type
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout, context=self._context) as response:
                found: Object = json.loads(response.read())
                return found
        except urllib.error.HTTPError as error:
            with error:
                text = error.read().decode("utf-8", "replace")
            raise ApiError(_parse_status(text, error)) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ApiError({"message": f"{url}: {error}", "code": 0}) from None


def _parse_status(text: str, error: urllib.error.HTTPError) -> Object:
    """Returns the Status in a response, or one whose message is the text of another body."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict) and found.get("kind") == "Status":
        return {**found, "code": error.code}
    return {"message": text.strip() or error.reason, "code": error.code}


class RemoteWatch:
    """The events of an open watch; iterate in one thread, and `close` from any."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._socket = connection.sock
        self._connection = connection
        self._response = response

    def __iter__(self) -> Iterator[Object]:
        """Yields events, until the server or `close` ends the watch."""
        try:
            for line in self._response:
                yield json.loads(line)
        except (OSError, ValueError, http.client.HTTPException):
            return
        finally:
            self._response.close()
            self._connection.close()

    def close(self) -> None:
        """Ends the watch."""
        with suppress(OSError, AttributeError):
            self._socket.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True, frozen=True)
class KubeconfigContext:
    """A context of a kubeconfig: the entries of its cluster and its user, and its namespace."""

    cluster: Object
    user: Object
    namespace: str


#: The members of contexts, clusters and users that are strings.
_TEXTS: Final = frozenset((
    "cluster", "user", "namespace", "server", "certificate-authority", "certificate-authority-data", "client-certificate",
    "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile", "username", "password",
))  # fmt: skip


def read_context(path: Path, name: str = "") -> KubeconfigContext:
    """Returns a context, by default the current one, of a kubeconfig file. Raises KubeconfigError."""
    config = read_kubeconfig(path)
    chosen = _find_named_entry(config, "contexts", name or config.get("current-context", ""))
    cluster = _find_named_entry(config, "clusters", chosen.get("cluster", ""))
    user = _find_named_entry(config, "users", chosen.get("user", ""))
    return KubeconfigContext(cluster, user, chosen.get("namespace", ""))


def read_kubeconfig(path: Path) -> Object:
    """Returns the content of a kubeconfig file. Raises KubeconfigError."""
    try:
        config, _ = yaml.loads(path.read_bytes())
    except OSError as error:
        raise KubeconfigError(f"{path}: {error.strerror}") from None
    except DecodeError as error:
        raise KubeconfigError(f"{path}: {error}") from None
    if not isinstance(config, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig")
    return config


def _find_named_entry(config: Object, part: str, name: Any) -> Object:
    """Returns the context, cluster or user of that name. Raises KubeconfigError."""
    kind, entries = part[:-1], config.get(part)
    if not isinstance(entries, list):
        entries = []
    found = next((one for one in entries if isinstance(one, dict) and one.get("name") == name), None)
    if found is None:
        raise KubeconfigError(f"the kubeconfig has no {kind} {name!r}")
    content: Object = found.get(kind) or {}
    if not isinstance(content, dict):
        raise KubeconfigError(f"the {kind} {name!r} of the kubeconfig is not an object")
    for key, value in content.items():
        if key in _TEXTS and not isinstance(value, str):
            raise KubeconfigError(f"the {kind} {name!r} of the kubeconfig has {key} {value!r}, which is not a string")
    return content


def _authorization_headers(folder: Path, user: Object) -> dict[str, str]:
    if user.get("exec") or user.get("auth-provider"):
        raise KubeconfigError("exec and auth-provider plugins are not run: give a kubeconfig with a token or a certificate")
    token = user.get("token")
    try:
        if not token and user.get("tokenFile"):
            token = (folder / user["tokenFile"]).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"the token of the kubeconfig cannot be read: {error}") from None
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}"
        return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
    return {}


def _tls_context(folder: Path, cluster: Object, user: Object) -> ssl.SSLContext:
    """Returns the TLS context: CA bundle and client certificate."""
    try:
        authority = _read_pem(folder, cluster, "certificate-authority")
        context = ssl.create_default_context(cadata=authority or None)
        # As in Go, a CA bundle may contain the server's own certificate, and extensions may be missing.
        context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate, key = _read_pem(folder, user, "client-certificate"), _read_pem(folder, user, "client-key")
        if certificate and key:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # the ssl module reads keys from files only
                file.write(f"{certificate}\n{key}")
                file.flush()
                context.load_cert_chain(file.name)
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"the certificates of the kubeconfig cannot be used: {error}") from None
    return context


def _read_pem(folder: Path, part: Object, name: str) -> str:
    """Returns inline data, or the content of the file."""
    if part.get(f"{name}-data"):
        return base64.b64decode(part[f"{name}-data"]).decode()
    return (folder / part[name]).read_text(encoding="utf-8") if part.get(name) else ""
