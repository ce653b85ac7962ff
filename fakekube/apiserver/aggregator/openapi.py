"""Collects the OpenAPI documents of extension API servers: v3 by its index, or v2, which is converted.

A server without documents is skipped; for an unavailable server the last documents are kept.

Specified by: k8s.io/kube-aggregator/pkg/controllers/openapiv3/aggregator (aggregator.go, downloader.go),
pkg/controllers/openapi/aggregator.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fakekube.apiserver.aggregator.backends import BackendError
from fakekube.apiserver.aggregator.controller import Remote
from fakekube.apiserver.aggregator.discovery import InvalidDocumentError, parse_object, read_body
from fakekube.apiserver.aggregator.locations import Location, Locations, UnresolvedError
from fakekube.apiserver.aggregator.proxy import new_request
from fakekube.apiserver.endpoints.request import User

_USER = User("system:aggregator")
_SECONDS = 60.0
_KEY = "openapi"

Json = dict[str, Any]


@dataclass(slots=True, frozen=True)
class Published:
    """The documents of a server."""

    index: Json | None = None
    """The `paths` of /openapi/v3; None if the server does not serve it."""
    v2: Json | None = None
    """The document of /openapi/v2; None if the server does not serve it."""


_NOTHING = Published()


def published(remote: Remote) -> Published:
    """Returns the documents of the server of an APIService."""
    found = remote.facts.get(_KEY, _NOTHING)
    assert isinstance(found, Published)
    return found


def facts_without_documents() -> dict[str, object]:
    """Returns the facts about a server without documents."""
    return {_KEY: _NOTHING}


class OpenAPIFetcher:
    """Fetches the OpenAPI documents of servers; see `controller.Fetcher`."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def reset(self, remote: Remote) -> bool:
        """See `Fetcher.reset`; the documents are kept until the APIService is deleted."""
        remote.facts.setdefault(_KEY, _NOTHING)
        return False

    def fetch(self, remote: Remote) -> Callable[[], bool]:
        known = self._fetch(remote)

        def apply() -> bool:
            before = published(remote)
            if known is None or known == before:
                return False
            remote.facts[_KEY] = known
            return True

        return apply

    def is_current(self, remote: Remote) -> bool:
        return True  # a server without documents is requested again at the next refresh

    def _fetch(self, remote: Remote) -> Published | None:
        """Requests the documents. None if the server is unavailable."""
        try:
            location = self._locations.locate(remote.name, remote.spec)
            if location.problem:
                return None
            index = _document(location, "/openapi/v3", "")
            v2 = _document(location, "/openapi/v2", "application/json")
        except (UnresolvedError, BackendError, InvalidDocumentError):
            return None
        paths = (index.get("paths") or {}) if index is not None else None
        return Published(paths if isinstance(paths, dict) else None, v2)


def _document(location: Location, path: str, accept: str) -> Json | None:
    """Requests a document; None if there is none. Raises BackendError, InvalidDocumentError."""
    response = location.backend.send(new_request(path, location, _USER, accept), time.monotonic() + _SECONDS)
    body = read_body(response)
    if response.status == 404:
        return None
    if response.status != 200:
        raise InvalidDocumentError(f"http error: {response.status}")
    return parse_object(body)
