"""The files of the page: modules, styles, their media types, and one hash of all, which is part of their addresses.

Modules import each other by bare names: `fk/store` is static/store.js, `lit` is vendor/lit.js.

Invariant: the files of an address never change, because any change of a file changes the hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

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
        """Returns the bare names of all modules, with the names of their files."""
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
