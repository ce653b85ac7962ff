"""OpenAPI documents merged with those of other servers: the index of v3, the document of v2, and v3 documents of servers that
only publish v2.

Each is cached for one state of the documents of all servers.

Specified by: k8s.io/kube-aggregator/pkg/controllers/openapi/aggregator, pkg/controllers/openapiv3/aggregator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import orjson

from fakekube.apiserver.aggregator.aggregator import Aggregator
from fakekube.apiserver.aggregator.controller import Remote
from fakekube.apiserver.aggregator.openapi import published
from fakekube.apiserver.aggregator.swagger import convert_v2_to_v3, filter_paths, merge_specs
from fakekube.apiserver.http.openapi.documents import Encoded, encoded

_ROOT: Final = "/openapi/v3/"


class AggregatedDocuments:
    """The merged documents of one cluster."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator
        self._state: object = None
        self._made: dict[tuple[str, str], Encoded] = {}
        """By kind of document, and the hash of the document of this server."""

    def index(self, own: Encoded) -> Encoded:
        """Returns the index of /openapi/v3."""
        return self._kept("index", own, lambda: self._index(own))

    def v2(self, own: Encoded) -> Encoded:
        """Returns the document of /openapi/v2."""
        others = [(document, _name(remote)) for remote in self._remotes() if (document := published(remote).v2)]
        if not others:
            return own
        shown = (filter_paths(document, f"/{name}/") for document, name in others)
        return self._kept("v2", own, lambda: encoded(merge_specs(orjson.loads(own.json), shown)))

    def converted(self, name: str) -> Encoded | None:
        """Returns the v3 document of a server that only publishes v2; None if there is none of that name."""
        for remote in self._remotes():
            document = published(remote).v2 if published(remote).index is None else None
            if document is not None and name == _name(remote):
                empty = Encoded(b"", "")
                return self._kept(name, empty, lambda document=document: encoded(convert_v2_to_v3(document)))  # type: ignore[misc]
        return None

    def _remotes(self) -> list[Remote]:
        """Returns the APIServices of other servers, sorted by descending priority."""
        found = self._aggregator.remotes.values()
        return sorted(found, key=lambda one: (-one.spec["groupPriorityMinimum"], one.name))

    def _index(self, own: Encoded) -> Encoded:
        paths: dict[str, Any] = orjson.loads(own.json)["paths"]
        for remote in self._remotes():
            listed = published(remote).index
            if listed is None:
                document = self.converted(_name(remote))
                listed = {}
                if document is not None:
                    listed[_name(remote)] = {"serverRelativeURL": f"{_ROOT}{quote(_name(remote))}?hash={document.hash}"}
            paths = {**listed, **paths}
        return encoded({"paths": dict(sorted(paths.items()))})

    def _kept(self, what: str, own: Encoded, make: Callable[[], Encoded]) -> Encoded:
        state = self._aggregator.state
        if state is not self._state:
            self._state, self._made = state, {}
        found = self._made.get((what, own.hash))
        if found is None:
            found = self._made[what, own.hash] = make()
        return found


def _name(remote: Remote) -> str:
    return "apis/{}/{}".format(*remote.group_version)
