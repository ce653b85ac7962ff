"""Loads manifests from files, folders, YAML or JSON text, or objects.

The order is: CustomResourceDefinitions, then namespaces, then the rest in the given order.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import yaml

__all__ = ["ManifestError", "Source", "objects"]

Object = dict[str, Any]
Source: TypeAlias = "str | Path | Mapping[str, Any] | Iterable[Source]"

_SUFFIXES = (".yaml", ".yml", ".json")
_FIRST = ("CustomResourceDefinition", "Namespace")


class ManifestError(ValueError):
    """A source does not contain valid manifests; the text contains the source and the reason."""


def objects(*sources: Source) -> list[Object]:
    """Returns all objects of some sources, in the order in which they can be created.

    A string with a line break, or that is not the path of a file or folder, is parsed as YAML. Raises ManifestError.
    """
    found = [obj for source in sources for obj in _objects(source)]
    return sorted(found, key=lambda obj: _FIRST.index(obj["kind"]) if obj["kind"] in _FIRST else len(_FIRST))


def _objects(source: Source) -> Iterator[Object]:
    if isinstance(source, Mapping):
        yield from _expanded(dict(source), "an object")
    elif isinstance(source, Path):
        yield from _of_path(source)
    elif isinstance(source, str):
        if "\n" in source or source.lstrip().startswith("{"):
            yield from _of_text(source, "the text")
        else:
            yield from _of_path(Path(source))
    else:
        for part in source:
            yield from _objects(part)


def _of_path(path: Path) -> Iterator[Object]:
    try:
        if path.is_dir():
            for file in sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES):
                yield from _of_text(file.read_text(encoding="utf-8"), str(file))
            return
        yield from _of_text(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ManifestError(f"{path}: {reason}") from None


def _of_text(text: str, origin: str) -> Iterator[Object]:
    import yaml

    try:
        documents = pickle.loads(_documents(text))
    except yaml.YAMLError as error:
        raise ManifestError(f"{origin}: {' '.join(str(error).split())}") from None
    for document in documents:
        if document is not None:
            yield from _expanded(document, origin)


@lru_cache(maxsize=256)
def _documents(text: str) -> bytes:
    """Returns the documents of a text, pickled: suites load the same manifests for every test, and YAML parsing takes
    forty times as long."""
    import yaml

    return pickle.dumps(list(yaml.load_all(text, Loader=_loader())))


@cache
def _loader() -> type[yaml.CSafeLoader]:
    """Returns a YAML loader with the rules of Kubernetes: times and a single `=` are strings."""
    import yaml

    class Loader(yaml.CSafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        first: [known for known in found if known[0] not in _TEXTS]
        for first, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


_TEXTS = frozenset({"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"})


def _expanded(document: Any, origin: str) -> Iterator[Object]:
    """Returns a document, or the items of a List."""
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str) or "apiVersion" not in document:
        raise ManifestError(f"{origin}: not a Kubernetes object: kind and apiVersion are missing")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _expanded(item, origin)
    else:
        yield document
