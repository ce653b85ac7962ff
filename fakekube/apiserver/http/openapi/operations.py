"""The operations of each path, for both versions of OpenAPI, with their descriptions.

A resource has few kinds of paths, and each verb has the same parameters wherever it is served, so templates derive the
operations of a group version from its resources. `v2` and `v3` render them. The descriptions of operations are made of the verb
and the kind; those of schemas come from a package, if one is installed (`apimachinery.data`).

Specified by: k8s.io/apiserver/pkg/endpoints/installer.go (routes, their parameters and docs), pkg/endpoints/openapi/openapi.go
(ids), pkg/endpoints/handlers (GetArticleForNoun).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fakekube.apimachinery.data import META_V1, published_document
from fakekube.apis.rest.resource import GVK, Resource
from fakekube.apis.rest.strategy import Subresource
from fakekube.apiserver.aggregator.documents import OPENAPI_METHODS, Json
from fakekube.apiserver.endpoints import negotiation
from fakekube.base.objects import group_version_path


def describe(version: str, name: str, schema: Json) -> Json:
    """Returns the schema of a built-in type with its descriptions; `schema` itself if there are none.

    Args:
        version: the minor.
        name: the name of the schema, such as `io.k8s.api.core.v1.Pod`.
        schema: the schema in the form of v3; not changed.
    """
    found = published_document(version).get("definitions", {}).get(name)
    if found is None:
        return schema
    made = _add_text(found, schema)
    if "properties" in schema:
        texts = found.get("properties", {})
        made["properties"] = {
            field: _add_text(texts.get(field, {}), property_) for field, property_ in schema["properties"].items()
        }
    return made


def _add_text(published: Mapping[str, Any], schema: Json) -> Json:
    text = published.get("description")
    return {"description": text, **schema} if text else dict(schema)


# --- Operations -------------------------------------------------------------------------------------------------------


def operations_described(version: str, paths: Paths) -> Paths:
    """Returns the operations of built-in paths with the published descriptions of them and their parameters."""
    document = published_document(version)
    items = document.get("paths", {})
    if not items:
        return paths
    shared = document.get("parameters", {})
    return {
        path: [_operation(operation, items.get(path, {}), shared) for operation in operations]
        for path, operations in paths.items()
    }


def _operation(operation: Operation, item: Mapping[str, Any], shared: Mapping[str, Any]) -> Operation:
    published = item.get(operation.method, {})
    texts = {
        (parameter["name"], parameter["in"]): parameter.get("description", "")
        for parameter in _parameters(item, published, shared)
    }
    return replace(
        operation,
        description=published.get("description") or operation.description,
        parameters=frozenset(_parameter(parameter, texts) for parameter in operation.parameters),
    )


def _parameters(item: Mapping[str, Any], operation: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yields the parameters of a path and of its operation, with references resolved."""
    for parameter in (*item.get("parameters", ()), *operation.get("parameters", ())):
        yield shared[parameter["$ref"].rpartition("/")[2]] if "$ref" in parameter else parameter


def _parameter(parameter: Parameter, texts: Mapping[tuple[str, str], str]) -> Parameter:
    return replace(parameter, description=texts.get((parameter.name, parameter.place), ""))


_PHRASES: Final = {
    "get": "read {below}the specified {kind}",
    "put": "replace {below}the specified {kind}",
    "patch": "partially update {below}the specified {kind}",
    "delete": "delete{article}{kind}",
    "deletecollection": "delete collection of {kind}",
    "connect": "connect {method} requests to {subresource} of {kind}",
    "watch": (
        "watch changes to an object of kind {kind}. deprecated: use the 'watch' parameter with a list operation instead, "
        "filtered to a single item with the 'fieldSelector' parameter."
    ),
    "watchlist": (
        "watch individual changes to a list of {kind}. deprecated: use the 'watch' parameter with a list operation instead."
    ),
}  # fmt: skip


def _operation_text(action: str, method: str, kind: str, subresource: str, *, watches: bool) -> str:
    """Returns the description of an operation.

    Args:
        action: the value of x-kubernetes-action.
        method: the HTTP method in lower case.
        kind: the kind of the main resource.
        subresource: its name; "" for none.
        watches: whether lists can be watched.
    """
    article = _article(kind)
    if action == "list":
        return f"list or watch objects of kind {kind}" if watches else f"list objects of kind {kind}"
    if action == "post":
        return f"create {subresource} of{article}{kind}" if subresource else f"create{article}{kind}"
    below = f"{subresource} of " if subresource else ""
    return _PHRASES[action].format(below=below, kind=kind, article=article, method=method.upper(), subresource=subresource)


def _article(noun: str) -> str:
    """Returns the article of a noun with spaces around it; a space for plurals."""
    if noun[-1:] == "s" and noun[-2:] != "ss":
        return " "
    return " an " if noun[:1] in "AEIOU" else " a "


@dataclass(slots=True, frozen=True, order=True)
class Parameter:
    """A parameter of a path ("path") or of the query ("query")."""

    name: str
    place: str
    type: str = "string"
    description: str = ""


@dataclass(slots=True, frozen=True)
class Operation:
    """A method of a path. Types are names of Go types (of custom resources: of schemas); "" is plain text."""

    method: str
    identifier: str
    tag: str
    answers: tuple[tuple[int, str], ...]
    """Status codes with the types of their bodies."""
    produces: tuple[str, ...]
    consumes: tuple[str, ...] = ("*/*",)
    action: str = ""
    gvk: GVK | None = None
    parameters: frozenset[Parameter] = frozenset()
    body: str = ""
    """The type of the body; "" if there is none."""
    body_required: bool = True
    description: str = ""


def _query(**types: str) -> frozenset[Parameter]:
    return frozenset(Parameter(name, "query", type_) for name, type_ in types.items())


_STRING, _BOOLEAN, _INTEGER = "string", "boolean", "integer"
_PRETTY: Final = _query(pretty=_STRING)
_SELECTION: Final = _query(
    fieldSelector=_STRING,
    labelSelector=_STRING,
    limit=_INTEGER,
    resourceVersion=_STRING,
    resourceVersionMatch=_STRING,
    sendInitialEvents=_BOOLEAN,
    shardSelector=_STRING,
    timeoutSeconds=_INTEGER,
    **{"continue": _STRING},
)
_LIST: Final = _SELECTION | _query(allowWatchBookmarks=_BOOLEAN, watch=_BOOLEAN)
#: The parameters of lists that not all minors have, with the number of the first one that does.
_NEWER_PARAMETERS: Final = {"shardSelector": 36}
_WRITE: Final = _query(dryRun=_STRING, fieldManager=_STRING, fieldValidation=_STRING)
_DELETE: Final = _query(
    dryRun=_STRING,
    gracePeriodSeconds=_INTEGER,
    ignoreStoreReadErrorWithClusterBreakingPotential=_BOOLEAN,
    orphanDependents=_BOOLEAN,
    propagationPolicy=_STRING,
)
_STREAMS: Final = _query(container=_STRING, stderr=_BOOLEAN, stdin=_BOOLEAN, stdout=_BOOLEAN, tty=_BOOLEAN)
#: The query parameters of connections to kubelets, by subresource.
_CONNECTIONS: Final = {
    "attach": _STREAMS,
    "exec": _STREAMS | _query(command=_STRING),
    "portforward": _query(ports=_INTEGER),
    "proxy": _query(path=_STRING),
}
_LOG: Final = _query(
    container=_STRING,
    follow=_BOOLEAN,
    insecureSkipTLSVerifyBackend=_BOOLEAN,
    limitBytes=_INTEGER,
    previous=_BOOLEAN,
    sinceSeconds=_INTEGER,
    stream=_STRING,
    tailLines=_INTEGER,
    timestamps=_BOOLEAN,
)

_OBJECTS: Final = (negotiation.JSON, negotiation.YAML, negotiation.PROTOBUF)
_CUSTOM_OBJECTS: Final = (negotiation.JSON, negotiation.YAML)
_OBJECTS_AND_STREAMS: Final = (*_OBJECTS, f"{negotiation.JSON};stream=watch", f"{negotiation.PROTOBUF};stream=watch")
_ANYTHING: Final = ("*/*",)
#: Media types of responses → those of a server that also has CBOR.
_OBJECTS_WITH_CBOR: Final = {
    _OBJECTS: (*_OBJECTS, negotiation.CBOR),
    _OBJECTS_AND_STREAMS: (*_OBJECTS, negotiation.CBOR, *_OBJECTS_AND_STREAMS[3:], negotiation.CBOR_SEQUENCE),
}

#: Verb on an object → method, prefix of the identifier, status codes, parameters.
_ITEM_VERBS: Final = {
    "get": ("get", "read", (200,), frozenset[Parameter]()),
    "update": ("put", "replace", (200, 201), _WRITE),
    "patch": ("patch", "patch", (200, 201), _WRITE | _query(force=_BOOLEAN)),
    "create": ("post", "create", (200, 201, 202), _WRITE),
}
DISCOVERY_TEXTS: Final = {
    "APIVersions": "get available API versions",
    "APIGroup": "get information of a group",
    "APIResources": "get available resources",
}  # fmt: skip

Paths = dict[str, list[Operation]]


def _tag_of(group: str, version: str = "") -> str:
    """Returns the tag of the operations of a group (version)."""
    name = _camel(group.removesuffix(".k8s.io") or "core", capitalised=False)
    return f"{name}_{version}" if version else name


def _camel(text: str, *, capitalised: bool) -> str:
    """Converts to camel case: removes characters other than letters and digits, and capitalizes the letter after them."""
    written: list[str] = []
    capital = capitalised
    for character in text:
        if character.isalpha() or character == "_" or (written and character.isdigit()):
            written.append(character.upper() if capital else character)
            capital = False
        else:
            capital = True
    return "".join(written)


def _prefix(group: str, version: str = "") -> str:
    """Returns the part of identifiers between the verb and the rest, from the group and version."""
    return _camel(group.removesuffix(".k8s.io") or "core", capitalised=True) + _camel(version, capitalised=True)


def path_item(
    operations: Sequence[Operation],
    operation_object: Callable[[Operation, Sequence[Parameter]], Json],
    parameter_object: Callable[[Parameter], Json],
) -> Json:
    """Returns the path item of a path: its operations by method, and the parameters that all of them have.

    Args:
        operations: those of the path.
        operation_object: makes the object of an operation with the parameters that only it has.
        parameter_object: makes the object of a parameter.
    """
    common = frozenset.intersection(*(operation.parameters for operation in operations))
    shown = {operation.method: operation_object(operation, sorted(operation.parameters - common)) for operation in operations}
    item: Json = {method: shown[method] for method in OPENAPI_METHODS if method in shown}
    if common:
        item["parameters"] = [parameter_object(parameter) for parameter in sorted(common)]
    return item


def discovery_operation(group: str, version: str, go_type: str, what: str) -> Operation:
    """Returns the GET operation of a discovery document; `what` is the suffix of its identifier."""
    prefix = _prefix(group, version) if group or version or what == "APIVersions" else ""
    return Operation(
        "get",
        f"get{prefix}{what}",
        _tag_of(group, version),
        ((200, go_type),),
        _OBJECTS,
        consumes=_OBJECTS,
        description=DISCOVERY_TEXTS[what],
    )


# --- The paths of a resource ------------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class _Place:
    """A path, and the scope in the identifiers of its operations."""

    path: str
    scope: str
    """"Namespaced" or ""."""
    parameters: frozenset[Parameter]


def _filter_known(minor: int, parameters: frozenset[Parameter]) -> frozenset[Parameter]:
    return frozenset(parameter for parameter in parameters if _NEWER_PARAMETERS.get(parameter.name, 0) <= minor)


@dataclass(slots=True, frozen=True)
class _Details:
    """The attributes of an operation besides its identifier and its responses."""

    action: str
    parameters: frozenset[Parameter] = frozenset()
    produces: tuple[str, ...] = _OBJECTS
    consumes: tuple[str, ...] = _ANYTHING
    gvk: GVK | None = None
    body: str = ""
    body_required: bool = True


_Name = tuple[str, str]
"""The verb at the start of an identifier, and its suffix."""
_Answers = Iterable[tuple[int, str]]


@dataclass(slots=True)
class _Builder:
    """Makes the operations of one resource."""

    resource: Resource
    go_type: str
    """The type of an object."""
    list_type: str
    deleted_type: str
    """The type of the response to a delete."""
    subresource_types: Mapping[str, str]
    paths: Paths = field(default_factory=dict)

    @property
    def _root(self) -> str:
        return group_version_path(self.resource.group, self.resource.version)

    def _add(self, place: _Place, method: str, name: _Name, answers: _Answers, details: _Details) -> None:
        resource = self.resource
        custom, anything = resource.custom, details.consumes == _ANYTHING
        produces = details.produces
        if resource.emulation.enabled("CBORServingAndStorage"):
            produces = _OBJECTS_WITH_CBOR.get(produces, produces)
        operation = Operation(
            method=method,
            identifier=f"{name[0]}{_prefix(resource.group, resource.version)}{name[1]}",
            tag=_tag_of(resource.group, resource.version),
            answers=tuple(answers),
            produces=_CUSTOM_OBJECTS if custom else produces,
            consumes=_CUSTOM_OBJECTS if custom and anything else details.consumes,
            action=details.action,
            gvk=resource.gvk if custom else details.gvk or resource.gvk,
            parameters=place.parameters | _filter_known(resource.emulation.minor, details.parameters),
            body=details.body,
            body_required=details.body_required,
            description=_operation_text(
                details.action, method, resource.kind, _subpath_of(place.path), watches="watch" in resource.verbs and not custom
            ),
        )
        self.paths.setdefault(place.path, []).append(operation)

    def build(self) -> Paths:
        """Returns the operations by path."""
        resource = self.resource
        scope, inside, parameters = "", "", frozenset[Parameter]()
        if resource.namespaced:
            scope, inside = "Namespaced", "/namespaces/{namespace}"
            parameters = frozenset({Parameter("namespace", "path")})
        collection = _Place(f"{self._root}{inside}/{resource.plural}", scope, parameters | _PRETTY)
        named = parameters | {Parameter("name", "path")}
        item = _Place(f"{collection.path}/{{name}}", scope, named | _PRETTY)
        self._collection(collection)
        self._item(item)
        for name in sorted(resource.subresources):
            self._subresource(_Place(f"{item.path}/{name}", scope, named), resource.subresources[name])
        if resource.namespaced and "list" in resource.verbs:
            self._list(_Place(f"{self._root}/{resource.plural}", "", _PRETTY), "ForAllNamespaces")
        if "watch" in resource.verbs and not resource.custom:
            self._watches(inside, scope, parameters)
        return self.paths

    def _collection(self, place: _Place) -> None:
        kind, verbs = self.resource.kind, self.resource.verbs
        if "list" in verbs:
            self._list(place, "")
        if "create" in verbs:
            self._object(place, "create", place.scope + kind, self.go_type, self.resource.gvk)
        if "deletecollection" in verbs:
            name, status = ("delete", f"Collection{place.scope}{kind}"), ((200, META_V1 + "Status"),)
            self._add(place, "delete", name, status, self._collection_deletion())

    def _collection_deletion(self) -> _Details:
        if self.resource.custom:
            return _Details("deletecollection", _LIST)
        options = META_V1 + "DeleteOptions"
        return _Details("deletecollection", _DELETE | _SELECTION, body=options, body_required=False)

    def _list(self, place: _Place, ending: str) -> None:
        kind = _title(self.resource.kind) if ending else self.resource.kind
        name = ("list", f"{place.scope}{kind}{ending}")
        details = _Details("list", _LIST, _OBJECTS_AND_STREAMS)
        self._add(place, "get", name, ((200, self.list_type),), details)

    def _item(self, place: _Place) -> None:
        resource = self.resource
        rest = place.scope + resource.kind
        for verb in ("get", "update", "patch"):
            if verb in resource.verbs:
                self._object(place, verb, rest, self.go_type, resource.gvk)
        if "delete" in resource.verbs:
            answers = [(code, self.deleted_type) for code in (200, 202)]
            details = _Details("delete", _DELETE, body=META_V1 + "DeleteOptions", body_required=False)
            self._add(place, "delete", ("delete", rest), answers, details)

    def _object(self, place: _Place, verb: str, rest: str, go_type: str, gvk: GVK) -> None:
        """Adds a get, or a write whose request and response have the same type."""
        method, word, codes, parameters = _ITEM_VERBS[verb]
        custom = self.resource.custom
        if verb == "get":
            details = _Details(method, _query(resourceVersion=_STRING) if custom else parameters, gvk=gvk)
        elif verb == "patch":
            codes = (200,) if custom else codes
            cbor = self.resource.emulation.enabled("CBORServingAndStorage") and not custom
            types = negotiation.patch_types(strategic=not custom, cbor=cbor)
            details = _Details(method, parameters, consumes=types, gvk=gvk, body=META_V1 + "Patch")
        else:
            details = _Details(method, parameters, gvk=gvk, body=go_type)
        self._add(place, method, (word, rest), [(code, go_type) for code in codes], details)

    def _subresource(self, place: _Place, subresource: Subresource) -> None:
        rest = f"{place.scope}{self.resource.kind}{_title(subresource.name)}"
        if subresource.name in _CONNECTIONS:
            self._connection(place, subresource, rest)
            return
        readable = _Place(place.path, place.scope, place.parameters | _PRETTY)
        if subresource.name == "log":
            details = _Details("get", _LOG, ("text/plain", *_OBJECTS))
            self._add(readable, "get", ("read", rest), ((200, ""),), details)
            return
        for verb in ("get", "update", "patch", "create"):
            if verb in subresource.verbs:
                go_type = self.subresource_types[subresource.name]
                self._object(readable, verb, rest, go_type, subresource.gvk)

    def _connection(self, place: _Place, subresource: Subresource, rest: str) -> None:
        details = _Details("connect", _CONNECTIONS[subresource.name], _ANYTHING, gvk=subresource.gvk)
        proxy = subresource.name == "proxy"
        places = [(place, rest)]
        if proxy:
            deeper = place.parameters | {Parameter("path", "path")}
            places.append((_Place(f"{place.path}/{{path}}", place.scope, deeper), f"{rest}WithPath"))
        for where, ending in places:
            for method in OPENAPI_METHODS if proxy else ("get", "post"):
                self._add(where, method, ("connect", _title(method) + ending), ((200, ""),), details)

    def _watches(self, inside: str, scope: str, parameters: frozenset[Parameter]) -> None:
        """Adds the deprecated watch paths."""
        kind, plural, root = self.resource.kind, self.resource.plural, f"{self._root}/watch"
        named = parameters | {Parameter("name", "path")}
        places = [
            (f"{root}{inside}/{plural}", parameters, f"{scope}{kind}List", "watchlist"),
            (f"{root}{inside}/{plural}/{{name}}", named, f"{scope}{kind}", "watch"),
        ]
        if inside:
            rest = f"{kind}ListForAllNamespaces"
            places.append((f"{root}/{plural}", frozenset(), rest, "watchlist"))
        events = ((200, META_V1 + "WatchEvent"),)
        for path, own, rest, action in places:
            place = _Place(path, scope, own | _PRETTY)
            self._add(place, "get", ("watch", rest), events, _Details(action, _LIST, _OBJECTS_AND_STREAMS))


def _subpath_of(path: str) -> str:
    """Returns the subresource of a path; "" if it is none."""
    _, inside, rest = path.partition("/{name}/")
    return rest.partition("/")[0] if inside else ""


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]


def operations_of(
    resource: Resource, go_type: str, list_type: str, deleted_type: str, subresource_types: Mapping[str, str]
) -> Paths:
    """Returns the operations of a resource by path.

    Args:
        resource: a served version.
        go_type: the type of its objects.
        list_type: the type of its lists.
        deleted_type: the type of the response to a delete.
        subresource_types: the types of the bodies of its subresources, by name.
    """
    return _Builder(resource, go_type, list_type, deleted_type, subresource_types).build()
