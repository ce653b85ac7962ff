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

from fakekube.aggregator.backends import BackendError
from fakekube.aggregator.controller import Remote
from fakekube.aggregator.discovery import NotUnderstoodError, body_of, parsed_object
from fakekube.aggregator.locations import Location, Locations, UnresolvedError
from fakekube.aggregator.proxy import outgoing
from fakekube.registry.request import User

__all__ = ["OpenAPIInquiry", "Published", "published", "told_nothing"]

_USER = User("system:aggregator")
_SECONDS = 60.0
_KEY = "openapi"

Json = dict[str, Any]


@dataclass(slots=True, frozen=True)
class Published:
    """The documents of a server."""

    index: Json | None = None
    """The paths of its /openapi/v3; None if it has none."""
    v2: Json | None = None
    """Its /openapi/v2."""


_NOTHING = Published()


def published(remote: Remote) -> Published:
    """Returns the documents of the server of an APIService."""
    found = remote.facts.get(_KEY, _NOTHING)
    assert isinstance(found, Published)
    return found


def told_nothing() -> dict[str, object]:
    """Returns the facts about a server without documents."""
    return {_KEY: _NOTHING}


class OpenAPIInquiry:
    """See `controller.Inquiry`."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def begin(self, remote: Remote) -> bool:
        """See `Inquiry.begin`; the documents are kept until the APIService is deleted."""
        remote.facts.setdefault(_KEY, _NOTHING)
        return False

    def ask(self, remote: Remote) -> Callable[[], bool]:
        known = self._heard(remote)

        def take_over() -> bool:
            before = published(remote)
            if known is None or known == before:
                return False
            remote.facts[_KEY] = known
            return True

        return take_over

    def satisfied(self, remote: Remote) -> bool:
        return True  # a server without documents is requested again at the next refresh

    def _heard(self, remote: Remote) -> Published | None:
        """Requests the documents. None if the server is unavailable."""
        try:
            location = self._locations.locate(remote.name, remote.spec)
            if location.problem:
                return None
            index = _document(location, "/openapi/v3", "")
            v2 = _document(location, "/openapi/v2", "application/json")
        except (UnresolvedError, BackendError, NotUnderstoodError):
            return None
        paths = (index.get("paths") or {}) if index is not None else None
        return Published(paths if isinstance(paths, dict) else None, v2)


def _document(location: Location, path: str, accept: str) -> Json | None:
    """Requests a document; None if there is none. Raises BackendError, NotUnderstoodError."""
    answer = location.backend.send(outgoing(path, location, _USER, accept), time.monotonic() + _SECONDS)
    body = body_of(answer)
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise NotUnderstoodError(f"http error: {answer.status}")
    return parsed_object(body)
