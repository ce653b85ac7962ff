"""Rewrites links to the proxied server in responses, so that they lead through the API server.

Specified by: k8s.io/apimachinery/pkg/util/proxy/transport.go (rewriteURL, rewriteHTML); golang.org/x/net/html (Tokenizer).
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from html import unescape
from urllib.parse import urlsplit, urlunsplit


@dataclass(slots=True, frozen=True)
class Front:
    """The address of a proxied server for clients of the API server."""

    own: tuple[str, ...]
    """The hosts of the proxied server and of the API server: links to them are rewritten."""
    scheme: str = ""
    host: str = ""
    """The host of rewritten links; "" to keep the host of a link, or its absence."""
    prefix: str = ""
    """The prefix of its paths."""


#: The attributes with URLs, by tag (atomsToAttrs).
_LINKS = {
    "a": ("href",), "applet": ("codebase",), "area": ("href",), "audio": ("src",), "base": ("href",), "blockquote": ("cite",),
    "body": ("background",), "button": ("formaction",), "command": ("icon",), "del": ("cite",), "embed": ("src",),
    "form": ("action",), "frame": ("longdesc", "src"), "head": ("profile",), "html": ("manifest",),
    "iframe": ("longdesc", "src"), "img": ("longdesc", "src", "usemap"), "input": ("src", "usemap", "formaction"),
    "ins": ("cite",), "link": ("href",), "object": ("classid", "codebase", "data", "usemap"), "q": ("cite",),
    "script": ("src",), "source": ("src",), "video": ("poster", "src"),
}  # fmt: skip

#: A comment or a start tag.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(?P<tag>[a-zA-Z][^\s/>]*)(?P<attributes>(?:[^>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
#: Elements whose content is raw text up to their end tag.
_RAW_TEXT = ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "plaintext")
_ATTRIBUTE = re.compile(r"([^\s=/>\"']+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+)))?")
_ESCAPES = {"&": "&amp;", "'": "&#39;", "<": "&lt;", ">": "&gt;", '"': "&#34;"}


def rewrite_url(url: str, front: Front) -> str:
    """Rewrites a URL to the proxied server (with its host, or with an absolute path) to one through the API server."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if (parts.netloc and parts.netloc not in front.own) or not parts.path.startswith("/"):
        return url
    scheme, host, path = front.scheme, front.host, parts.path
    if not (scheme or host) and parts.netloc == front.own[0]:
        scheme, host = parts.scheme, parts.netloc
    if not path.startswith(front.prefix):
        path = posixpath.normpath(front.prefix + path) + ("/" if path.endswith("/") else "")
    return urlunsplit((scheme, host, path, parts.query, parts.fragment))


def rewrite_html(page: bytes, front: Front) -> bytes:
    """Rewrites the links of an HTML page. Tags are printed like Go's tokenizer, everything else is unchanged."""
    text, out, place = page.decode("latin-1"), [], 0
    while (found := _TOKEN.search(text, place)) is not None:
        out.append(text[place : found.start()])
        place = found.end()
        tag = (found["tag"] or "").lower()
        out.append(_tag(tag, found["attributes"], front) if tag else found[0])
        if tag in _RAW_TEXT:
            end = re.compile(rf"</{tag}[\s/>]", re.IGNORECASE).search(text, place)
            stop = end.start() if end else len(text)
            out.append(text[place:stop])
            place = stop
    out.append(text[place:])
    return "".join(out).encode("latin-1")


def _tag(tag: str, attributes: str, front: Front) -> str:
    closes = attributes.endswith("/")
    shown = []
    for name, *values in _ATTRIBUTE.findall(attributes.removesuffix("/") if closes else attributes):
        value = unescape("".join(values))
        if name.lower() in _LINKS.get(tag, ()):
            value = rewrite_url(value, front)
        shown.append(f' {name.lower()}="{"".join(_ESCAPES.get(character, character) for character in value)}"')
    return f"<{tag}{''.join(shown)}{'/' if closes else ''}>"
