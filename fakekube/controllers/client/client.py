"""A client of the API in the same process: the WSGI application called without a socket.

It sends the same requests and gets the same responses as an HTTP client; controllers and `testing` use it. Resources
have the names that kubectl accepts: plural, singular, short name, kind, or plural.group.

Invariant: returned objects are parsed from the response, so that the caller may change them.

Specified by: k8s.io/api/apidiscovery/v2; k8s.io/apimachinery/pkg/api/meta/interfaces.go (RESTMapping).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import quote, unquote, urlencode

from fakekube.apimachinery.codecs import DecodeError, json
from fakekube.apimachinery.patch import APPLY_YAML, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apiserver.auth.authentication import IN_PROCESS_USER
from fakekube.apiserver.endpoints.negotiation import JSON
from fakekube.apiserver.endpoints.request import User
from fakekube.base.clock import Clock
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object, group_version, group_version_path
from fakekube.net.streams import BrokenStreamError, Stream, is_stream
from fakekube.net.wsgi import Application, environ_key


class ApiError(Exception):
    """The API server responded with an error. `status` is the Status object, the text is its message."""

    def __init__(self, status: dict[str, Any]) -> None:
        super().__init__(status.get("message", ""))
        self.status = status

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return int(self.status.get("code", 0))

    @property
    def reason(self) -> str:
        """The machine-readable reason, such as NotFound."""
        return str(self.status.get("reason", ""))


ACCEPT: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class RESTMapping(Protocol):
    """The properties of a resource that a client needs for requests."""

    @property
    def group(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def plural(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def namespaced(self) -> bool: ...

    @property
    def api_version(self) -> str: ...


@dataclass(slots=True, frozen=True)
class DiscoveredResource:
    """A resource in the aggregated discovery document."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    names: frozenset[str]
    """All in lower case: plural, singular, kind, short names."""
    verbs: frozenset[str] = frozenset()

    @property
    def api_version(self) -> str:
        """The apiVersion of objects."""
        return group_version(self.group, self.version)

    def is_called(self, name: str) -> bool:
        """Reports whether a name is one of the resource: a name, `name.group` or `name.version.group`, in any case."""
        first, _, group = name.lower().partition(".")
        return first in self.names and group in ("", self.group, f"{self.version}.{self.group}")


def collection_path(mapping: RESTMapping, namespace: str | None = None) -> str:
    """Returns the path of a collection; `namespace` is ignored for cluster-scoped resources."""
    root = group_version_path(mapping.group, mapping.version)
    scope = f"/namespaces/{quote(namespace)}" if mapping.namespaced and namespace else ""
    return f"{root}{scope}/{mapping.plural}"


def resources_in(document: dict[str, Any]) -> Iterator[DiscoveredResource]:
    """Returns the resources of a discovery document, in its order."""
    for group in document.get("items") or ():
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            for entry in version.get("resources") or ():
                kind = (entry.get("responseKind") or {}).get("kind", "")
                names = {entry["resource"], entry.get("singularResource", ""), kind, *(entry.get("shortNames") or ())}
                known = frozenset(one.lower() for one in names if one)
                yield DiscoveredResource(
                    name,
                    version["version"],
                    entry["resource"],
                    kind,
                    entry.get("scope") == "Namespaced",
                    known,
                    frozenset(entry.get("verbs") or ()),
                )


#: The key in the WSGI environment that marks in-process requests.
OWN: Final = "fakekube.own"


class UnknownResource(LookupError):
    """There is no resource of that name."""


@dataclass(slots=True, frozen=True)
class Answer:
    """A response: status code, the body as bytes or as the stream of a watch, and the headers."""

    code: int
    body: bytes | Stream
    headers: Sequence[tuple[str, str]] = ()


class Client:
    """A client of one application with one user agent.

    Args:
        application: the WSGI application of a cluster.
        registry: the resources of the API server.
        clock: the clock of the cluster.
        user_agent: the value of User-Agent; the part before the slash is the field manager of writes.
        user: the user of the requests; by default an administrator.
    """

    def __init__(
        self,
        application: Application,
        registry: Registry,
        clock: Clock,
        *,
        user_agent: str = "fakekube",
        user: User | None = None,
    ) -> None:
        self._application = application
        self._registry = registry
        self._clock = clock
        self._user_agent = user_agent
        self._user = user
        self._found: dict[tuple[str, str | None], Resource] = {}
        self._found_in: object = None
        self._discovery: tuple[bytes, tuple[DiscoveredResource, ...]] = (b"", ())
        """A discovery document, and the resources in it."""

    def now(self) -> str:
        """Returns the time of the cluster in the format of timestamps."""
        return print_time(self._clock.now())

    def namespaced_resources(self) -> list[Resource]:
        """Returns one version of every namespaced resource."""
        found = {(r.group, r.plural): r for r in self._registry if r.namespaced}
        return list(found.values())

    def aggregated_namespaced_resources(self) -> list[DiscoveredResource]:
        """Returns the preferred version of every namespaced resource of other API servers."""
        own = {(r.group, r.plural) for r in self._registry}
        found = {(r.group, r.plural): r for r in reversed(self._all_resources()) if r.namespaced}
        return [found[name] for name in reversed(found) if name not in own]

    def listable_resources(self) -> list[Resource]:
        """Returns one version of every resource that can be listed and created."""
        found = {r.bucket: r for r in reversed(list(self._registry)) if {"list", "create"} <= r.verbs}
        return list(reversed(found.values()))

    # --- Paths --------------------------------------------------------------------------------------------------------

    def resource(self, name: str, api_version: str | None = None) -> Resource:
        """Returns the resource for a name (pods, deploy, deployments.apps, deployments.v1.apps, Deployment), in the
        given apiVersion, if any. Raises UnknownResource."""
        state = self._registry.state
        if self._found_in is not state:
            self._found_in, self._found = state, {}
        found = self._found.get((name, api_version))
        if found is None:
            found = self._found[name, api_version] = self._search_discovery(name, api_version)
        return found

    def forget_resources(self) -> None:
        """Drops the resources that were found by their names: some of them are no longer served."""
        self._found_in, self._found = None, {}

    def _search_discovery(self, name: str, api_version: str | None) -> Resource:
        wanted, _, group = name.lower().partition(".")
        for resource in self._registry:
            if api_version is not None and resource.api_version != api_version:
                continue
            if group not in ("", resource.group, f"{resource.version}.{resource.group}"):
                continue
            if wanted in (resource.plural, resource.singular, resource.kind.lower(), *resource.short_names):
                return resource
        raise UnknownResource(f"no resource is called {name!r}" + (f" in {api_version}" if api_version else ""))

    def _mapping_of(self, name: str, api_version: str | None = None) -> RESTMapping:
        """Returns the resource for a name, on this or an aggregated API server. Raises UnknownResource."""
        try:
            return self.resource(name, api_version)
        except UnknownResource:
            for found in self._all_resources():
                if api_version in (None, found.api_version) and found.is_called(name):
                    return found
            raise

    def _all_resources(self) -> tuple[DiscoveredResource, ...]:
        """Returns all resources of the cluster, including those of aggregated APIs."""
        answer = self.request("GET", "/apis", accept=ACCEPT)
        if answer.code != 200 or not isinstance(answer.body, bytes):
            return ()
        document, found = self._discovery
        if document != answer.body:
            found = tuple(resources_in(json.reread(answer.body)))
            self._discovery = answer.body, found
        return found

    def path(self, resource: RESTMapping, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """Returns the path of a collection or of an object in it; `namespace` is ignored for cluster-scoped resources."""
        return "/".join(part for part in (collection_path(resource, namespace), quote(name), subresource) if part)

    @property
    def application(self) -> Callable[..., Any]:
        """The WSGI application of the API server."""
        return self._application

    # --- Requests -----------------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Sends a request and returns the response, also if it is an error.

        Args:
            method: of HTTP.
            path: such as "/api/v1/pods".
            body: bytes, or an object that is sent as JSON; None for no body.
            query: the query parameters.
            content_type, accept: the headers of these names.
            headers: further headers, which take precedence over these.

        Raises ConnectionResetError if a fault drops the connection.
        """
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body)
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "PATH_INFO": unquote(path, "latin-1"),
            "QUERY_STRING": urlencode(query or {}),
            "SCRIPT_NAME": "",
            "SERVER_NAME": "fakekube",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.url_scheme": "http",
            "wsgi.version": (1, 0),
            "wsgi.input": io.BytesIO(data),
            "wsgi.errors": None,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "HTTP_ACCEPT": accept,
            "HTTP_USER_AGENT": self._user_agent,
            OWN: True,
        }
        if self._user is not None:
            environ[IN_PROCESS_USER] = self._user
        if body is not None:
            environ |= {"CONTENT_TYPE": content_type, "CONTENT_LENGTH": str(len(data))}
        for name, value in (headers or {}).items():
            environ[environ_key(name)] = value
        started: list[tuple[str, Sequence[tuple[str, str]]]] = []
        try:
            result = self._application(environ, lambda line, fields, error=None: started.append((line, fields)))
        except BrokenStreamError as error:
            raise ConnectionResetError(str(error)) from None
        line, fields = started[0]
        return Answer(int(line.partition(" ")[0]), result if is_stream(result) else b"".join(result), fields)

    def call(
        self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None, *, content_type: str = JSON
    ) -> Object:
        """Sends a request and returns the object in the response. Raises ApiError for an error response."""
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
        """Starts a watch and returns its stream of JSON lines. Raises ApiError for an error response."""
        answer = self.request("GET", path, None, {**query, "watch": "true"})
        if isinstance(answer.body, bytes):
            raise ApiError(json.reread(answer.body))
        return answer.body

    # --- Objects ------------------------------------------------------------------------------------------------------

    def create(self, obj: Object, *, namespace: str | None = None) -> Object:
        """Creates an object, which must have kind and apiVersion; the default namespace is that of the object, else `default`.

        Raises ApiError and UnknownResource.
        """
        resource, namespace, _ = self._mapping_and_key(obj, namespace)
        return self.call("POST", self.path(resource, namespace), obj)

    def apply(
        self, obj: Object, *, field_manager: str, force: bool = True, namespace: str | None = None, subresource: str = ""
    ) -> Object:
        """Applies an object (server-side apply), which must have kind, apiVersion and name.

        Args:
            field_manager: the name of the field manager.
            force: take over fields of other managers; False raises ApiError (409) for a conflict.
            namespace: by default that of the object, else `default`.
            subresource: such as "status".

        Raises ApiError and UnknownResource.
        """
        resource, namespace, name = self._mapping_and_key(obj, namespace)
        query = {"fieldManager": field_manager, "force": "true" if force else "false"}
        return self.call("PATCH", self.path(resource, namespace, name, subresource), obj, query, content_type=APPLY_YAML)

    def get(self, resource: str, name: str, *, namespace: str | None = None) -> Object:
        """Gets one object; the default namespace is `default`. Raises ApiError and UnknownResource."""
        return self.call("GET", self._path_of(resource, namespace, name))

    def list(
        self, resource: str, *, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> list[Object]:
        """Lists the objects of one namespace, or of all if it is None; each has kind and apiVersion.

        Raises ApiError and UnknownResource.
        """
        found = self._mapping_of(resource)
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        answer = self.call("GET", self.path(found, namespace), None, {k: v for k, v in query.items() if v})
        kind = {"kind": found.kind, "apiVersion": found.api_version}
        return [{**kind, **item} for item in answer["items"]]

    def update(self, obj: Object, *, namespace: str | None = None, subresource: str = "") -> Object:
        """Updates an object or its subresource; the default namespace is that of the object, else `default`.

        Raises ApiError (409 if its resourceVersion is not the current one) and UnknownResource.
        """
        resource, namespace, name = self._mapping_and_key(obj, namespace)
        return self.call("PUT", self.path(resource, namespace, name, subresource), json.dumps_with_texts(obj))

    def patch(self, resource: str, name: str, patch: Object, *, namespace: str | None = None, subresource: str = "") -> Object:
        """Patches an object with a JSON merge patch; the default namespace is `default`. Raises ApiError and UnknownResource."""
        path = self._path_of(resource, namespace, name, subresource)
        return self.call("PATCH", path, patch, content_type=MERGE_PATCH)

    def strategic_patch(
        self, resource: str, name: str, patch: Object, *, namespace: str | None = None, subresource: str = ""
    ) -> Object:
        """Patches an object of a built-in kind with a strategic merge patch; the default namespace is `default`.

        Raises ApiError and UnknownResource.
        """
        path = self._path_of(resource, namespace, name, subresource)
        return self.call("PATCH", path, patch, content_type=STRATEGIC_MERGE_PATCH)

    def delete(self, resource: str, name: str, *, namespace: str | None = None, **options: Any) -> Object:
        """Deletes an object; `options` are fields of DeleteOptions; the default namespace is `default`.

        Raises ApiError and UnknownResource.
        """
        return self.call("DELETE", self._path_of(resource, namespace, name), options or None)

    def _path_of(self, resource: str, namespace: str | None, name: str, subresource: str = "") -> str:
        found = self._mapping_of(resource)
        return self.path(found, namespace or "default", name, subresource)

    def _mapping_and_key(self, obj: Object, namespace: str | None) -> tuple[RESTMapping, str, str]:
        """Returns resource, namespace and name of an object."""
        resource = self._mapping_of(obj.get("kind", ""), obj.get("apiVersion"))
        metadata = obj.get("metadata") or {}
        return resource, namespace or metadata.get("namespace") or "default", metadata.get("name", "")
