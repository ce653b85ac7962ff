"""Negotiates the media types of responses and determines those of request bodies.

Every request for a resource is checked twice, with different error messages:

* the *router* (`route`) compares media types without parameters, as exact strings, before anything else; it
  also checks the media type of a patch. Requests for custom resources do not pass through it;
* the *handler* (`Offer.output`, `Offer.stream`, `Offer.input`) evaluates qualities, wildcards and parameters.

The format of errors is negotiated separately (`error_output`), without transformations; if the client accepts no
offered format, errors are indented JSON.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers/negotiation, responsewriters (writers.go), rest.go
(AllowsMediaTypeTransform), github.com/munnerz/goautoneg and go-restful's jsr311 router; Go's
mime.ParseMediaType.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cmp_to_key, lru_cache, partial
from typing import TYPE_CHECKING, Final

from fakekube.apimachinery.errors import StatusError, status
from fakekube.base.caches import LONGEST_TEXT, cache_by_text, cache_if

if TYPE_CHECKING:
    from fakekube.apiserver.registry.scope import Scope

from fakekube.apimachinery.patch import APPLY_CBOR, APPLY_YAML, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from fakekube.base.objects import group_version

PLAIN_TEXT: Final = "text/plain; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
CBOR: Final = "application/cbor"
CBOR_SEQUENCE: Final = "application/cbor-seq"
TEXT: Final = "text/plain"


#: Media types of patches, in the order in which the real server lists them.
PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_YAML, APPLY_CBOR)

#: Names of formats. Only pages for operators (such as /flagz) offer text.
_FORMATS: Final = {JSON: "json", YAML: "yaml", PROTOBUF: "protobuf", CBOR: "cbor", TEXT: "text"}
_NOT_STREAMED: Final = frozenset({YAML, TEXT})
_META_VERSIONS: Final = frozenset({"v1", "v1beta1"})
_TRANSFORMS: Final = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


@dataclass(slots=True, frozen=True)
class Target:
    """The requested transformation of a response: `;as=Table;g=meta.k8s.io;v=v1`."""

    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def api_version(self) -> str:
        return group_version(self.group, self.version)


@dataclass(slots=True, frozen=True)
class MediaType:
    """The negotiated media type."""

    format: str
    """json, yaml, protobuf or cbor."""
    media_type: str
    """The Content-Type of the response (of a watch, with its ;stream=watch)."""
    target: Target | None = None
    """The requested transformation; None: the object is not transformed."""
    pretty: bool = False
    """Indented (JSON only)."""


@dataclass(slots=True, frozen=True)
class Clause:
    """One range of an Accept header."""

    type: str
    subtype: str
    quality: float
    parameters: tuple[tuple[str, str], ...]

    def matches(self, media_type: str) -> bool:
        kind, _, subtype = media_type.partition("/")
        if self.type == "*":
            return self.subtype == "*"
        return self.type == kind and self.subtype in (subtype, "*")


_MEDIA_TYPES: Final = (JSON, YAML, PROTOBUF)
_ALL_MEDIA_TYPES: Final = (*_MEDIA_TYPES, CBOR)


@dataclass(slots=True, frozen=True)
class Offer:
    """The media types that an endpoint reads and writes."""

    cbor: bool = False
    """The feature gate CBORServingAndStorage is on."""
    transforms: bool = True
    """Responses can be transformed to metadata only (resources); False: no transformation (errors, discovery)."""
    tables: bool = True
    """Responses can be transformed to Tables."""
    custom: bool = False
    """A custom resource: its objects have no Protobuf encoding, but their metadata has one."""
    choose: Callable[[str], MediaType | None] = field(init=False, repr=False, compare=False)
    """Returns the media type of single documents for an Accept header; it keeps its results."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "choose", cache_by_text(256)(partial(_choose, self)))

    @property
    def media_types(self) -> tuple[str, ...]:
        """The media types of single documents, in order of preference."""
        return _ALL_MEDIA_TYPES if self.cbor else _MEDIA_TYPES

    @property
    def stream_types(self) -> tuple[str, ...]:
        """The media types of watches."""
        types = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
        return (*types, CBOR_SEQUENCE) if self.cbor else types

    def output(self, accept: str, *, pretty: bool = False) -> MediaType:
        """Negotiates the media type of a response.

        Args:
            accept: the Accept header; "" if there is none.
            pretty: the result of `is_pretty` for the request.

        Raises:
            StatusError: 406.
        """
        chosen = self.choose(accept)
        if chosen is None:
            accepted = ", ".join(self.media_types)
            raise status.not_acceptable(f"only the following media types are accepted: {accepted}")
        if pretty and chosen.format == "json" and not chosen.pretty:
            return MediaType(chosen.format, chosen.media_type, chosen.target, pretty=True)
        return chosen

    def stream(self, accept: str) -> MediaType:
        """Negotiates the media type of a watch's events.

        Raises:
            StatusError: 406.
        """
        chosen = self.choose(accept)
        if chosen is None or chosen.format == "yaml":
            accepted = ", ".join(self.stream_types)
            raise status.not_acceptable(f"only the following media types are accepted: {accepted}")
        return MediaType(chosen.format, _STREAMED[chosen.format], chosen.target)

    def input(self, content_type: str) -> str:
        """Returns the format of a body; without a Content-Type it is JSON.

        Raises:
            StatusError: 415.
        """
        media_type = _bare(content_type) if content_type else JSON
        if media_type not in self.media_types:
            raise _unknown_format(self.media_types)
        return _FORMATS[media_type]

    def allows(self, media_type: str, target: Target | None) -> bool:
        """Reports whether the endpoint offers a transformation in a format (AllowsMediaTypeTransform)."""
        if target is None:
            return not (self.custom and self.transforms and media_type == PROTOBUF)
        known = target.group == "meta.k8s.io" and target.version in _META_VERSIONS
        if not self.transforms or not known or target.kind not in _TRANSFORMS:
            return False
        return target.kind != "Table" or (self.tables and media_type in (JSON, YAML))


#: The Content-Type of a watch in JSON has no ;stream=watch.
_STREAMED: Final = {"json": JSON, "protobuf": f"{PROTOBUF};stream=watch", "cbor": CBOR_SEQUENCE}


def _choose(offer: Offer, accept: str) -> MediaType | None:
    """Returns the first media type that both sides support; `accept` is the whole header."""
    if not accept:
        return MediaType("json", JSON)
    for clause in clauses(accept):
        for media_type in offer.media_types:
            if clause.matches(media_type):
                chosen = _accept_media_type(clause, media_type, offer)
                if chosen is not None:
                    return chosen
    return None


def _accept_media_type(clause: Clause, media_type: str, offer: Offer) -> MediaType | None:
    """Returns the media type with the parameters of the clause; None if the endpoint does not offer it."""
    parameters = dict(clause.parameters)
    stream = parameters.get("stream", "")
    if stream and (stream != "watch" or media_type in _NOT_STREAMED):
        return None
    if parameters.get("sv"):
        return None
    target = None
    if not parameters.keys().isdisjoint(("as", "g", "v")):
        target = Target(parameters.get("g", ""), parameters.get("v", ""), parameters.get("as", ""))
    if not offer.allows(media_type, target):
        return None
    pretty = media_type == JSON and parameters.get("pretty") == "1"
    return MediaType(_FORMATS[media_type], media_type, target, pretty)


#: The number of ranges up to which Go's sort inserts them one by one.
_MAX_INSERTED: Final = 12


def clauses(accept: str) -> list[Clause]:
    """Parses an Accept header into ranges, the preferred ones first; malformed ranges are ignored."""
    found: list[Clause] = []
    for part in accept.split(","):
        clause = _clause(part.strip(" "))
        if clause is not None:
            found.append(clause)
    if len(found) > _MAX_INSERTED:
        return sorted(found, key=cmp_to_key(_compare))
    for end in range(1, len(found)):  # insertion sort, as in Go: the comparison is not a strict order
        place = end
        while place and _is_preferred(found[place], found[place - 1]):
            found[place - 1], found[place] = found[place], found[place - 1]
            place -= 1
    return found


def _compare(one: Clause, other: Clause) -> int:
    return -1 if _is_preferred(one, other) else 1 if _is_preferred(other, one) else 0


def _is_preferred(one: Clause, other: Clause) -> bool:
    if one.quality > other.quality:
        return True
    if one.type != "*" and other.type == "*":
        return True
    return one.subtype != "*" and other.subtype == "*"


def _clause(part: str) -> Clause | None:
    media_range, _, rest = part.partition(";")
    kind, _, subtype = media_range.partition("/")
    kind = kind.strip(" ")
    if not subtype:
        if kind != "*":
            return None
        subtype = "*"
    subtype, _, more = subtype.partition("/")
    if more:
        return None
    quality = 1.0
    parameters: dict[str, str] = {}
    for parameter in rest.split(";") if rest else ():
        name, _, value = parameter.partition("=")
        value, _, more = value.partition("=")
        name = name.strip(" ")
        if more or not value:
            continue
        if name == "q":
            quality = parse_quality(value)
        else:
            parameters[name] = value.strip(" ")
    return Clause(kind, subtype.strip(" "), quality, tuple(parameters.items()))


_NUMBER: Final = re.compile(r"[+-]?(?:(?:[0-9]++\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity)", re.I)


def parse_quality(text: str) -> float:
    """Parses a quality as strconv.ParseFloat does; 0 if it is malformed."""
    return float(text) if _NUMBER.fullmatch(text) else math.nan if text.lower() == "nan" else 0.0


# --- Errors and pretty printing ---------------------------------------------------------------------------------------


def error_output(accept: str, *, cbor: bool = False, pretty: bool = False) -> MediaType:
    """Negotiates the media type of an error: one that the client accepts, else indented JSON."""
    try:
        return plain_offer(cbor).output(accept, pretty=pretty)
    except StatusError:
        return MediaType("json", JSON, pretty=True)


_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})


def is_pretty(pretty: str, user_agent: str) -> bool:
    """Reports whether a response is indented JSON, which is the default for command line tools and browsers.

    Args:
        pretty: the (first) query parameter of that name; "" if absent.
        user_agent: the header of that name.
    """
    if pretty:
        return pretty in _TRUE
    return user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))


# --- The router -------------------------------------------------------------------------------------------------------


def _is_short(accept: str, _produced: Sequence[str], content_type: str = "", *_rest: object) -> bool:
    return len(accept) + len(content_type) <= LONGEST_TEXT


@cache_if(_is_short, 1024)
def route(
    accept: str, produced: Sequence[str], content_type: str = "", consumed: Sequence[str] = (), empty: str | None = None
) -> None:
    """Checks the media types of a request as the router does, before its handler is called.

    Args:
        accept: the Accept header; "" if there is none.
        produced: the media types of the route: `Offer.media_types`, and for collections also `stream_types`.
        content_type: the Content-Type header; "" if there is none.
        consumed: the media types of a patch route (`patch_types`); empty for the others, which take any.
        empty: the Content-Length header ("" if there is none) of a request without a body, if such requests need no
            media type, as in 1.33; they are refused all the same.

    Raises:
        StatusError: 415 or 406, with empty details.
    """
    if consumed and not any(media_type in consumed for media_type in _bare_list(content_type)):
        available = "" if empty is None else "\n\nAvailable representations: "
        if empty:
            raise StatusError(406, "NotAcceptable", f"406: Not Acceptable{available}", {})
        raise StatusError(415, "UnsupportedMediaType", f"415: Unsupported Media Type{available}", {})
    if accept and not any(media_type == "*/*" or media_type in produced for media_type in _bare_list(accept)):
        available = ", ".join(produced)
        message = f"406: Not Acceptable\n\nAvailable representations: {available}"
        raise StatusError(406, "NotAcceptable", message, {})


def _bare_list(header: str) -> Iterable[str]:
    parts = header.split(",")
    if len(parts) > 1 and not parts[-1]:  # an empty element after the last comma is ignored
        parts.pop()
    return (part.partition(";")[0].strip(" ") for part in parts)


# --- The types of bodies ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def patch_types(*, strategic: bool = True, cbor: bool = False) -> tuple[str, ...]:
    """Returns the media types of patches that a resource accepts.

    Args:
        strategic: it has a type with merge keys (custom resources have none).
        cbor: the feature gate CBORServingAndStorage is on.
    """
    known = {STRATEGIC_MERGE_PATCH: strategic, APPLY_CBOR: cbor}
    return tuple(media_type for media_type in PATCHES if known.get(media_type, True))


def patch_input(content_type: str, types: Sequence[str]) -> str:
    """Returns the media type of a patch.

    Raises:
        StatusError: 415.
    """
    media_type, semicolon, _ = content_type.partition(";")
    chosen = media_type if semicolon and media_type else content_type
    if chosen not in types:
        raise _unknown_format(types)
    return chosen


def _unknown_format(accepted: Iterable[str]) -> StatusError:
    known = ", ".join(accepted)
    return status.unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {known}"
    )


_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED: Final = r'"(?:[^"\\\r\n]|\\[^\r\n]|\\)*"'
_PARAMETER: Final = re.compile(rf"\s*;\s*({_TOKEN})\s*=\s*({_TOKEN}|{_QUOTED})")
_MEDIA_TYPE: Final = re.compile(rf"{_TOKEN}(?:/{_TOKEN})?")


@cache_by_text(256)
def _bare(content_type: str) -> str:
    """Returns the media type without its parameters, in lower case; "" if the header is malformed."""
    media_type = content_type.partition(";")[0].strip().lower()
    if not _MEDIA_TYPE.fullmatch(media_type):
        return ""
    rest = content_type[content_type.find(";") :] if ";" in content_type else ""
    seen: dict[str, str] = {}
    while rest.strip() not in ("", ";"):
        parameter = _PARAMETER.match(rest)
        if parameter is None:
            return ""
        name, value = parameter[1].lower(), parameter[2]
        if seen.setdefault(name, value) != value:
            return ""
        rest = rest[parameter.end() :]
    return media_type


@cache
def plain_offer(cbor: bool) -> Offer:
    """Returns the media types of documents that are not objects of a resource."""
    return Offer(cbor=cbor, transforms=False)


@cache
def _offer(cbor: bool, custom: bool, tables: bool) -> Offer:
    return Offer(cbor=cbor, custom=custom, tables=tables)


def offer_of(scope: Scope) -> Offer:
    """Returns the media types that the endpoint of a request reads and writes."""
    tables = scope.resource.action is None if scope.subresource is None else scope.subresource.tables
    return _offer(scope.backend.settings.emulation.enabled("CBORServingAndStorage"), scope.resource.custom, tables)


def negotiate(scope: Scope, offer: Offer | None = None) -> MediaType:
    """Negotiates the representation of a response; `offer` is that of the endpoint, if known. Raises StatusError 406."""
    request, query = scope.request, scope.request.query
    pretty = is_pretty((query.get("pretty") or "") if query.raw else "", request.user_agent)
    return (offer or offer_of(scope)).output(request.accept, pretty=pretty)


def negotiate_stream(scope: Scope) -> MediaType:
    """Negotiates the representation of a watch's events. Raises StatusError 406."""
    return offer_of(scope).stream(scope.request.accept)
