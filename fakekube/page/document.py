"""The files of the page, and its HTML documents: of a live page, of its terminal, and of trace files and reports.

The files are modules and styles with their media types, and one hash of all, which is part of their addresses. Modules import
each other by bare names: `fk/store` is static/store.js, `lit` is vendor/lit.js.

A template has two markers: `<!-- fakekube head -->`, which becomes styles, import map and the entry module, and
`<!-- fakekube data -->`, which becomes the data. A live document gets addresses below `/fakekube/page/HASH/`; the document of a
file contains everything it needs, with `data:` URLs. All scripts and styles have a nonce, and the policy allows no others.

Invariants: the files of an address never change, because any change of a file changes the hash. Data are JSON whose `<` and line
separators are escaped, so that no text of a cluster becomes markup.

Specified by: HTML (import maps, scripts), CSP Level 3.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

# --- The files of the page --------------------------------------------------------------------------------------------


_FOLDER: Final = Path(__file__).parent
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
#: Styles that come first, in this order; the terminal has its own document.
_FIRST: Final = ("tokens.css", "page.css")
_TERMINAL: Final = "xterm.css"
_PRINT: Final = "print.css"


@dataclass(slots=True, frozen=True)
class Asset:
    """One file."""

    name: str
    data: bytes
    media_type: str
    vendored: bool


@dataclass(slots=True, frozen=True)
class Assets:
    """All files, by name."""

    files: Mapping[str, Asset]
    hash: str
    templates: Mapping[str, str]
    """Name of a document → its HTML with markers."""

    @property
    def modules(self) -> dict[str, str]:
        """The bare names of all modules, with the names of their files."""
        found = {}
        for name, one in self.files.items():
            if name.endswith(".js"):
                stem = name.removesuffix(".js")
                found[stem if one.vendored else f"fk/{stem}"] = name
        return found

    def styles(self, *, terminal: bool = False) -> list[str]:
        """Returns the names of the styles of a document, in their order."""
        names = sorted(name for name in self.files if name.endswith(".css"))
        chosen = [name for name in names if name != _TERMINAL or terminal]
        return sorted(chosen, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name == _PRINT))


@cache
def assets() -> Assets:
    """Reads all files, once in a process."""
    files, templates = {}, {}
    for folder in ("static", "vendor"):
        for path in sorted((_FOLDER / folder).glob("*")):
            if path.suffix == ".html":
                templates[path.name] = path.read_text(encoding="utf-8")
            elif path.suffix in _TYPES:
                files[path.name] = Asset(path.name, path.read_bytes(), _TYPES[path.suffix], folder == "vendor")
    digest = hashlib.sha256()
    for name, one in sorted(files.items()):
        digest.update(f"{name}\0{len(one.data)}\0".encode())
        digest.update(one.data)
    return Assets(files, digest.hexdigest()[:16], templates)


def asset(name: str) -> Asset | None:
    """Returns a file; None if there is none with this name."""
    return assets().files.get(name)


HEAD, DATA = "<!-- fakekube head -->", "<!-- fakekube data -->"

_LIVE: Final = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self'{style}; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; frame-ancestors {ancestors}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
    "trusted-types lit-html"
)
LIVE_POLICY: Final = _LIVE.replace("{style}", "").replace("{ancestors}", "'none'")
#: xterm.js creates style elements, so its document is another one, which only the page may frame.
TERMINAL_POLICY: Final = _LIVE.replace("{style}", " 'unsafe-inline'").replace("{ancestors}", "'self'")
_FILE_POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types lit-html"
)

_TEMPLATE: Final = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>fakekube</title>
{HEAD}
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript.</noscript>
{DATA}
</body>
</html>
"""
_MAX_TITLE: Final = 200


def document(base: str = "/fakekube/") -> tuple[str, str]:
    """Returns the document of a live page, and the value of its Content-Security-Policy.

    Args:
        base: the path below which the page is served.
    """
    return _live("index.html", "fk/app", base, LIVE_POLICY, terminal=False)


def terminal_document(base: str = "/fakekube/") -> tuple[str, str]:
    """Returns the document of the terminal, and the value of its Content-Security-Policy."""
    return _live("terminal.html", "fk/terminal", base, TERMINAL_POLICY, terminal=True)


def _live(template: str, entry: str, base: str, policy: str, *, terminal: bool) -> tuple[str, str]:
    found, nonce = assets(), secrets.token_urlsafe(16)
    folder = f"{base}page/{found.hash}/"
    links = "".join(f'<link rel="stylesheet" href="{folder}{name}"{_media(name)}>\n' for name in found.styles(terminal=terminal))
    imports = {bare: folder + name for bare, name in found.modules.items()}
    head = links + _scripts(imports, entry, nonce)
    data = _json_script("fakekube", {"mode": "live", "base": f"{base}v1/", "page": folder})
    return _fill(found, template, head, data), policy.format(nonce=nonce)


_REFUSAL: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>fakekube: no access</title></head>
<body>
<h1>This page needs the rights of an administrator</h1>
<p>The server answered: {message}</p>
<p>fakekube serve prints an address with a token, /fakekube/?token=…, which opens the page. A user needs the permission for the
path /fakekube/*.</p>
</body>
</html>
"""


def refusal(message: str) -> tuple[str, str]:
    """Returns the document for those who may not see the page, and its policy."""
    return _REFUSAL.format(message=_escape(message)), "default-src 'none'; frame-ancestors 'none'"


def trace_document(mode: str, data: Mapping[str, Any], packed: Mapping[str, bytes], title: str = "") -> str:
    """Returns a document that needs nothing else: a trace file or a report.

    Args:
        mode: `trace` or `report`.
        data: name of a script element → its value, as JSON.
        packed: name of a script element → its content, compressed.
        title: of the document.
    """
    found, nonce = assets(), secrets.token_urlsafe(16)
    imports = {
        bare: "data:text/javascript;base64," + base64.b64encode(found.files[name].data).decode()
        for bare, name in found.modules.items()
        if bare not in ("xterm", "fk/terminal")
    }
    styles = "".join(f'<style nonce="{nonce}"{_media(name)}>\n{_style(found, name)}</style>\n' for name in found.styles())
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_FILE_POLICY.format(nonce=nonce)}">\n'
    scripts = [_json_script("fakekube", {"mode": mode})]
    scripts += [_json_script(name, value) for name, value in data.items()]
    for name, content in packed.items():
        text = base64.b64encode(content).decode()
        scripts.append(f'<script type="application/octet-stream;base64" id="{name}">{text}</script>\n')
    html = _fill(found, "index.html", policy + styles + _scripts(imports, "fk/app", nonce), "".join(scripts))
    return html.replace("<title>fakekube</title>", f"<title>{_escape(title[:_MAX_TITLE])}</title>", 1) if title else html


def _fill(found: Assets, template: str, head: str, data: str) -> str:
    html = found.templates.get(template, _TEMPLATE)
    before, _, rest = html.partition(HEAD)
    middle, _, end = rest.partition(DATA)
    return f"{before}{head}{middle}{data}{end}"


def _scripts(imports: Mapping[str, str], entry: str, nonce: str) -> str:
    text = embedded_json({"imports": dict(imports)})
    start = f'<script type="module" nonce="{nonce}">import "{entry}";</script>\n'
    return f'<script type="importmap" nonce="{nonce}">{text}</script>\n{start}'


def _media(name: str) -> str:
    return ' media="print"' if name == "print.css" else ""


def _style(found: Assets, name: str) -> str:
    return found.files[name].data.decode().replace("</", "<\\/")


def _json_script(name: str, value: Any) -> str:
    return f'<script type="application/json" id="{name}">{embedded_json(value)}</script>\n'


def embedded_json(value: Any) -> str:
    """Encodes a value as JSON that can stand in a script element."""
    text = json.dumps(value, separators=(",", ":"))  # in ASCII, so that line separators and lone surrogates are escaped
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _escape(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # without lone surrogates
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
