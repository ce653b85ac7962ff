"""URLs: absolute ones, with a scheme or with a path that begins with a slash, and their parts.

Specified by: k8s.io/apiserver/pkg/cel/library/urls.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.cel.errors import EvaluationError
from fakekube.apimachinery.cel.values import Map, Opaque
from fakekube.base.golang import urls


@dataclass(frozen=True, slots=True)
class Url(Opaque):
    """A value of the type URL."""

    type_name = "kubernetes.URL"
    go_type = "*url.URL"
    parts: urls.Url

    def __str__(self) -> str:
        return self.parts.text


def _url(text: str) -> Url:
    """Parses twice: ParseRequestURI, which requires an absolute URL, treats a fragment as a part of the path or query."""
    try:
        urls.parse_request_uri(text)
        return Url(urls.parse_url(text))
    except ValueError as problem:
        raise EvaluationError(f"URL parse error during conversion from string: {problem}") from None


def _is_url(text: str) -> bool:
    try:
        urls.parse_request_uri(text)
    except ValueError:
        return False
    return True


FUNCTIONS: Final[dict[tuple[Any, ...], Callable[..., Any]]] = {
    ("url", False, str): _url,
    ("isURL", False, str): _is_url,
    ("getScheme", True, Url): lambda url: url.parts.scheme,
    ("getHost", True, Url): lambda url: url.parts.host,
    ("getHostname", True, Url): lambda url: url.parts.hostname,
    ("getPort", True, Url): lambda url: url.parts.port,
    ("getEscapedPath", True, Url): lambda url: url.parts.escaped_path,
    ("getQuery", True, Url): lambda url: Map.of(urls.query_values(url.parts.query).items()),
}
