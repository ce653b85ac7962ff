"""Links in answers that lead back to the server behind: they name it by the host that the API server knows.

Specified by: k8s.io/apimachinery/pkg/util/proxy/transport.go (rewriteURL, rewriteHTML).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from html import escape
from html.parser import HTMLParser
from urllib.parse import urlsplit, urlunsplit

from fakekube.aggregator.backends import BackendError

__all__ = ["rewritten", "rewritten_location"]

#: Attributes that hold URLs, by the tag.
_LINKS = {
    "a": ("href",), "applet": ("codebase",), "area": ("href",), "audio": ("src",), "base": ("href",), "blockquote": ("cite",),
    "body": ("background",), "button": ("formaction",), "command": ("icon",), "del": ("cite",), "embed": ("src",),
    "form": ("action",), "frame": ("longdesc", "src"), "head": ("profile",), "html": ("manifest",),
    "iframe": ("longdesc", "src"), "img": ("longdesc", "src", "usemap"), "input": ("src", "usemap", "formaction"),
    "ins": ("cite",), "link": ("href",), "object": ("classid", "codebase", "data", "usemap"), "q": ("cite",),
    "script": ("src",), "source": ("src",), "video": ("poster", "src"),
}  # fmt: skip
_LONGEST_TAG = 1 << 20


def rewritten_location(url: str, host: str) -> str:
    """A URL with the host as the API server knows it, if it leads to that host or has none and an absolute path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if parts.netloc not in ("", host) or not parts.path.startswith("/"):
        return url
    return urlunsplit(("https", host, parts.path, parts.query, parts.fragment))


def rewritten(pieces: Iterable[bytes], host: str, *, packed: bool) -> Iterator[bytes]:
    """An HTML page with its links rewritten, as it arrives; `packed` with gzip, and so again."""
    reader = _Rewriter(host)
    unpacker = zlib.decompressobj(wbits=31) if packed else None
    packer = zlib.compressobj(wbits=31) if packed else None
    for piece in pieces:
        try:
            text = unpacker.decompress(piece) if unpacker else piece
        except zlib.error:
            raise BackendError("gzip: invalid header") from None
        page = reader.rewrite(text)
        if page:
            yield packer.compress(page) if packer else page
    page = reader.finish()
    if packer:
        yield packer.compress(page) + packer.flush()
    elif page:
        yield page


class _Rewriter(HTMLParser):
    """Writes what it reads, but for the links."""

    def __init__(self, host: str) -> None:
        super().__init__(convert_charrefs=False)
        self._host = host
        self._out: list[str] = []

    def rewrite(self, data: bytes) -> bytes:
        """What can be written after some more of the page."""
        self.feed(data.decode("latin-1"))
        if len(self.rawdata) > _LONGEST_TAG:
            raise BackendError("a tag of the page does not end")
        return self._written()

    def finish(self) -> bytes:
        """The rest."""
        rest, self.rawdata = self.rawdata, ""
        self._out.append(rest)
        return self._written()

    def _written(self) -> bytes:
        text = "".join(self._out)
        self._out.clear()
        return text.encode("latin-1")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag(tag, attrs, ">")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag(tag, attrs, "/>")

    def _tag(self, tag: str, attrs: list[tuple[str, str | None]], end: str) -> None:
        links = _LINKS.get(tag, ())
        shown = "".join(
            f' {name}="{escape(rewritten_location(value or "", self._host) if name in links else value or "")}"'
            for name, value in attrs
        )
        self._out.append(f"<{tag}{shown}{end}")

    def handle_endtag(self, tag: str) -> None:
        self._out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._out.append(data)

    def handle_entityref(self, name: str) -> None:
        self._out.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._out.append(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        self._out.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self._out.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self._out.append(f"<?{data}>")
