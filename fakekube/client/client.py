"""A client of the API in the same process: the WSGI application called without a socket.

It sends what any client sends and sees what any client sees; test authors' conveniences and controllers stand on it.
Resources are named as kubectl names them: plural, singular, short name, kind, or plural.group.

Invariant: objects that come out are the caller's own, parsed from the answer.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode

from fakekube.auth.authentication import IN_PROCESS_USER
from fakekube.client.elsewhere import ACCEPT, Place, ResourceElsewhere, resources_in
from fakekube.client.errors import ApiError
from fakekube.clock import Clock
from fakekube.codecs import json
from fakekube.codecs.errors import DecodeError
from fakekube.golang.timestamps import print_time
from fakekube.registry.request import User
from fakekube.registry.resource import Registry, Resource
from fakekube.streams import BrokenStreamError, Stream

__all__ = ["Client", "UnknownResource"]

Object = dict[str, Any]
Application = Callable[[dict[str, Any], Callable[..., Any]], Any]

#: In the environment of a request of a client in the same process.
OWN = "fakekube.own"

APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON = "application/json"


class UnknownResource(LookupError):
    """There is no resource of that name."""


@dataclass(slots=True, frozen=True)
class Answer:
    """Status code, and the body as bytes or as a stream of a watch."""

    code: int
    body: bytes | Stream


class Client:
    """Speaks to one application as one user agent.

    Args:
        application: the WSGI application of a cluster.
        registry: to find resources by their names.
        clock: of the cluster.
        user_agent: its part before the slash becomes the field manager of writes.
        user: as whom it asks; by default as whoever asks without credentials, an administrator.
    """

    def __init__(
        self, application: Application, registry: Registry, clock: Clock, *, user_agent: str = "fakekube",
        user: User | None = None,
    ) -> None:
        self._application = application
        self._registry = registry
        self._clock = clock
        self._user_agent = user_agent
        self._user = user
        self._found: dict[tuple[str, str | None], Resource] = {}
        self._found_in: object = None
        self._elsewhere: tuple[bytes, tuple[ResourceElsewhere, ...]] = (b"", ())
        """A discovery document, and the resources in it."""

    def now(self) -> str:
        """The time of the cluster, as objects tell it."""
        return print_time(self._clock.now())

    def namespaced_resources(self) -> list[Resource]:
        """One version of every namespaced resource."""
        found = {(r.group, r.plural): r for r in self._registry if r.namespaced}
        return list(found.values())

    def listable_resources(self) -> list[Resource]:
        """One version of every resource that can be listed and created."""
        found = {r.bucket: r for r in reversed(list(self._registry)) if {"list", "create"} <= r.verbs}
        return list(reversed(found.values()))

    # ---- paths

    def resource(self, name: str, api_version: str | None = None) -> Resource:
        """The resource that a name means (pods, deploy, deployments.apps, deployments.v1.apps, Deployment), of that
        apiVersion if one is given. Raises UnknownResource."""
        state = self._registry.state
        if self._found_in is not state:
            self._found_in, self._found = state, {}
        found = self._found.get((name, api_version))
        if found is None:
            found = self._found[name, api_version] = self._search(name, api_version)
        return found

    def _search(self, name: str, api_version: str | None) -> Resource:
        wanted, _, group = name.lower().partition(".")
        for resource in self._registry:
            if api_version is not None and resource.api_version != api_version:
                continue
            if group not in ("", resource.group, f"{resource.version}.{resource.group}"):
                continue
            if wanted in (resource.plural, resource.singular, resource.kind.lower(), *resource.short_names):
                return resource
        raise UnknownResource(f"no resource is called {name!r}" + (f" in {api_version}" if api_version else ""))

    def _place_of(self, name: str, api_version: str | None = None) -> Place:
        """The resource that a name means, here or on another server. Raises UnknownResource."""
        try:
            return self.resource(name, api_version)
        except UnknownResource:
            wanted, _, group = name.lower().partition(".")
            for found in self._discovered():
                fits = api_version in (None, found.api_version) and group in ("", found.group, f"{found.version}.{found.group}")
                if fits and wanted in found.names:
                    return found
            raise

    def _discovered(self) -> tuple[ResourceElsewhere, ...]:
        """All resources of the cluster, whoever serves them."""
        answer = self.request("GET", "/apis", accept=ACCEPT)
        if answer.code != 200 or not isinstance(answer.body, bytes):
            return ()
        document, found = self._elsewhere
        if document != answer.body:
            found = tuple(resources_in(json.reread(answer.body)))
            self._elsewhere = answer.body, found
        return found

    def path(self, resource: Place, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """The path of a collection, or of an object in it; `namespace` counts for namespaced resources only."""
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        scope = f"/namespaces/{quote(namespace)}" if resource.namespaced and namespace else ""
        return "/".join(part for part in (f"{root}{scope}/{resource.plural}", quote(name), subresource) if part)

    # ---- requests

    def request(
        self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None, *, content_type: str = JSON,
        accept: str = JSON,
    ) -> Answer:
        """Send a request; `body` is bytes or an object to be sent as JSON."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body)
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method, "PATH_INFO": unquote(path, "latin-1"), "QUERY_STRING": urlencode(query or {}),
            "SCRIPT_NAME": "",
            "SERVER_NAME": "fakekube", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http",
            "wsgi.version": (1, 0), "wsgi.input": io.BytesIO(data), "wsgi.errors": None, "wsgi.multithread": True,
            "wsgi.multiprocess": False, "wsgi.run_once": False, "HTTP_ACCEPT": accept, "HTTP_USER_AGENT": self._user_agent,
            OWN: True,
        }
        if self._user is not None:
            environ[IN_PROCESS_USER] = self._user
        if body is not None:
            environ |= {"CONTENT_TYPE": content_type, "CONTENT_LENGTH": str(len(data))}
        started: list[str] = []
        try:
            result = self._application(environ, lambda line, headers, error=None: started.append(line))
        except BrokenStreamError as error:
            raise ConnectionResetError(str(error)) from None
        code = int(started[0].partition(" ")[0])
        return Answer(code, result if hasattr(result, "take") else b"".join(result))

    def call(
        self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None, *, content_type: str = JSON,
    ) -> Object:
        """The same, for the object in the answer. Raises ApiError if the API refuses."""
        answer = self.request(method, path, body, query, content_type=content_type)
        assert isinstance(answer.body, bytes)
        try:
            value = json.reread(answer.body)
        except DecodeError:
            value = {"message": answer.body.decode("utf-8", "replace").strip(), "code": answer.code}
        if answer.code >= 400:
            raise ApiError(value)
        result: Object = value
        return result

    def watch(self, path: str, query: Mapping[str, str]) -> Stream:
        """A watch as a stream of JSON lines. Raises ApiError if the API refuses."""
        answer = self.request("GET", path, None, {**query, "watch": "true"})
        if isinstance(answer.body, bytes):
            raise ApiError(json.reread(answer.body))
        return answer.body

    # ---- objects

    def create(self, obj: Object, *, namespace: str | None = None) -> Object:
        """Create an object that says its kind and apiVersion."""
        resource, namespace, _ = self._place(obj, namespace)
        return self.call("POST", self.path(resource, namespace), obj)

    def apply(
        self, obj: Object, *, field_manager: str, force: bool = True, namespace: str | None = None, subresource: str = "",
    ) -> Object:
        """Server-side apply of an object that says its kind, apiVersion and name."""
        resource, namespace, name = self._place(obj, namespace)
        query = {"fieldManager": field_manager, "force": "true" if force else "false"}
        return self.call("PATCH", self.path(resource, namespace, name, subresource), obj, query, content_type=APPLY)

    def get(self, resource: str, name: str, *, namespace: str | None = None) -> Object:
        """One object."""
        return self.call("GET", self._of(resource, namespace, name))

    def list(
        self, resource: str, *, namespace: str | None = None, label_selector: str = "", field_selector: str = "",
    ) -> list[Object]:
        """The objects of one namespace, or (without one) of all; each with its kind and apiVersion."""
        found = self._place_of(resource)
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        answer = self.call("GET", self.path(found, namespace), None, {k: v for k, v in query.items() if v})
        kind = {"kind": found.kind, "apiVersion": found.api_version}
        return [{**kind, **item} for item in answer["items"]]

    def update(self, obj: Object, *, namespace: str | None = None, subresource: str = "") -> Object:
        """Replace an object (or what a subresource shows of it)."""
        resource, namespace, name = self._place(obj, namespace)
        return self.call("PUT", self.path(resource, namespace, name, subresource), obj)

    def patch(
        self, resource: str, name: str, patch: Object, *, namespace: str | None = None, subresource: str = "",
    ) -> Object:
        """Merge-patch an object."""
        path = self._of(resource, namespace, name, subresource)
        return self.call("PATCH", path, patch, content_type=MERGE_PATCH)

    def strategic_patch(
        self, resource: str, name: str, patch: Object, *, namespace: str | None = None, subresource: str = "",
    ) -> Object:
        """Patch an object of a built-in kind by a strategic merge patch."""
        path = self._of(resource, namespace, name, subresource)
        return self.call("PATCH", path, patch, content_type=STRATEGIC_MERGE_PATCH)

    def delete(self, resource: str, name: str, *, namespace: str | None = None, **options: Any) -> Object:
        """Delete an object; `options` are fields of DeleteOptions."""
        return self.call("DELETE", self._of(resource, namespace, name), options or None)

    def _of(self, resource: str, namespace: str | None, name: str, subresource: str = "") -> str:
        found = self._place_of(resource)
        return self.path(found, namespace or "default", name, subresource)

    def _place(self, obj: Object, namespace: str | None) -> tuple[Place, str, str]:
        """Where an object belongs: its resource, namespace and name."""
        resource = self._place_of(obj.get("kind", ""), obj.get("apiVersion"))
        metadata = obj.get("metadata") or {}
        return resource, namespace or metadata.get("namespace") or "default", metadata.get("name", "")
