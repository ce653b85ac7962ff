"""Reads the request from a WSGI environment, in the way of Go's net/http.

Works with any WSGI server. `REQUEST_URI` (or `RAW_URI`), if a server sets it, is the request target as sent. Repeated
headers are joined by commas and cannot be distinguished from a value with a comma.

Specified by: PEP 3333; net/http for how headers are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from fakekube.base.caches import cache_by_text
from fakekube.base.golang.strings import text_of_native

Environment = dict[str, Any]
Application = Callable[[Environment, Callable[..., Any]], Iterable[bytes]]
"""A WSGI application."""

_WITHOUT_PREFIX: Final = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}  # PEP 3333
_PREFIX: Final = "HTTP_"
SHARED_VARIABLES: Final = "fakekube.shared_variables"
"""The key of the variables, in a dict that is not changed, which requests with equal headers of one connection have in common."""
HEADER_NAMES: Final = "fakekube.header_names"
"""The key of the joined names of the variables of headers."""
#: Characters that Go does not escape in a path.
_PATH_SAFE: Final = "/:@&=+$,;~-_.!*'()"


class Headers(Mapping[str, str]):
    """The request's headers by lower-case name, looked up in the WSGI environment without copying."""

    __slots__ = ("_environment",)

    def __init__(self, environment: Mapping[str, Any]) -> None:
        self._environment = environment

    def __getitem__(self, name: str) -> str:
        return text_of_native(self._environment[environ_key(name)])

    def get(self, name: str, default: Any = None) -> Any:
        value = self._environment.get(environ_key(name))
        if value is None:
            return default
        return value if value.isascii() else text_of_native(value)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and environ_key(name) in self._environment

    def __iter__(self) -> Iterator[str]:
        for key in self._environment:
            if key.startswith(_PREFIX):
                yield key[len(_PREFIX) :].replace("_", "-").lower()
        for name, key in _WITHOUT_PREFIX.items():
            if self._environment.get(key):
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def all(self, name: str) -> list[str]:
        """Returns all values of a header, in order."""
        joined = self.get(name)
        return [] if joined is None else [value.strip() for value in joined.split(",")]


@cache_by_text(1000)
def environ_key(name: str) -> str:
    """Returns the key of a header, whose name may have any case."""
    return _WITHOUT_PREFIX.get(name.lower()) or _PREFIX + name.upper().replace("-", "_")


def negotiated_headers(environment: Environment) -> tuple[str, str, str]:
    """Returns the values of Accept, Content-Type and User-Agent, "" for each that is absent: every request needs them."""
    get = environment.get
    found = get("HTTP_ACCEPT") or "", get("CONTENT_TYPE") or "", get("HTTP_USER_AGENT") or ""
    accept, content_type, user_agent = found
    if accept.isascii() and content_type.isascii() and user_agent.isascii():
        return found
    return text_of_native(accept), text_of_native(content_type), text_of_native(user_agent)


def path_of(environment: Environment) -> str:
    """Returns the decoded path."""
    path: str = environment.get("PATH_INFO", "") or "/"
    return path if path.isascii() else text_of_native(path)


def request_uri(environment: Environment) -> str:
    """Returns the request target as sent; rebuilt if the server does not provide it."""
    uri: str | None = environment.get("REQUEST_URI") or environment.get("RAW_URI")
    if uri:
        return uri
    raw_path = quote(environment.get("PATH_INFO", "/").encode("latin-1"), safe=_PATH_SAFE)
    query = environment.get("QUERY_STRING")
    return f"{raw_path}?{query}" if query else raw_path


def body_reader(environment: Environment) -> Callable[[int], bytes]:
    """Returns a function that reads up to a number of bytes of the body; the first call triggers 100-continue."""

    def read(limit: int) -> bytes:
        length = environment.get("CONTENT_LENGTH")
        if length:
            limit = min(limit, int(length))
        elif not environment.get("wsgi.input_terminated"):
            return b""
        body: bytes = environment["wsgi.input"].read(limit)
        return body

    return read
