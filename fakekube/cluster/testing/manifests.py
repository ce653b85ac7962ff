"""Loads manifests from files, folders, YAML or JSON text, or objects; and kwok's Stage files: `cluster.stages.load("pods.yaml")`.

The order is: CustomResourceDefinitions, then namespaces, then the rest in the given order.

Invariant: no text, however it is nested, overflows the stack or the memory of the process.

Specified by: kubectl (k8s.io/cli-runtime/pkg/resource); sigs.k8s.io/yaml for scalars.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fakekube.cluster_options import Object, Source

if TYPE_CHECKING:
    import yaml

    from fakekube.nodes.stages.stage import Stage


_SUFFIXES = (".yaml", ".yml", ".json")
#: The kinds that are created before all others.
_FIRST = ("CustomResourceDefinition", "Namespace")


class ManifestError(ValueError):
    """A source does not contain valid manifests; the text contains the source and the reason."""


def objects(*sources: Source) -> list[Object]:
    """Returns the objects in manifests, in the order in which they can be created.

    A string that contains a line break or starts with a brace is parsed as YAML, any other string is the path of a file or
    folder. Raises ManifestError.
    """
    found = [obj for source in sources for obj in _read_source(source)]
    return sorted(found, key=lambda obj: _FIRST.index(obj["kind"]) if obj["kind"] in _FIRST else len(_FIRST))


def _read_source(source: Source) -> Iterator[Object]:
    if isinstance(source, Mapping):
        yield from _expand(dict(source), "an object")
    elif isinstance(source, Path):
        yield from _read_path(source)
    elif isinstance(source, str):
        if "\n" in source or source.lstrip().startswith("{"):
            yield from _parse_text(source, "the text")
        else:
            yield from _read_path(Path(source))
    else:
        for part in source:
            yield from _read_source(part)


def _read_path(path: Path) -> Iterator[Object]:
    try:
        if path.is_dir():
            for file in sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES):
                yield from _parse_text(file.read_text(encoding="utf-8"), str(file))
            return
        yield from _parse_text(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ManifestError(f"{path}: {reason}") from None


def _parse_text(text: str, origin: str) -> Iterator[Object]:
    import pickle

    import yaml

    try:
        documents = pickle.loads(_pickle_documents(text))
    except (yaml.YAMLError, _TooLargeError) as error:
        raise ManifestError(f"{origin}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ManifestError(f"{origin}: nested too deeply") from None
    except ValueError:  # Python's bound on the digits of an integer, which PyYAML does not turn into an error of its own
        raise ManifestError(f"{origin}: an integer has too many digits") from None
    for document in documents:
        if document is not None:
            yield from _expand(document, origin)


@lru_cache(maxsize=256)
def _pickle_documents(text: str) -> bytes:
    """Returns the documents of a text, pickled. The result is cached because suites load the same manifests for every test, and
    parsing YAML takes forty times as long as unpickling."""
    import pickle

    import yaml

    _check_depth(text)
    documents = list(yaml.load_all(text, Loader=_loader()))
    if "&" in text:
        _check_size(documents)
    return pickle.dumps(documents)


class _TooLargeError(Exception):
    """A text is nested more deeply, or expands to more values, than any manifest."""


#: The maximum depth of a document: libyaml's composer has no limit and overflows the stack of the process.
_MAX_DEPTH = 1000
#: The maximum number of values in a text whose aliases are expanded.
_MAX_VALUES = 10_000_000
_INDENTATION = re.compile(rf"^[ ?:-]{{{_MAX_DEPTH // 2},}}", re.MULTILINE)


def _check_depth(text: str) -> None:
    """Raises _TooLargeError for a text that is nested too deeply. Texts with few brackets and little indentation are not parsed
    for this."""
    if text.count("[") + text.count("{") < _MAX_DEPTH // 2 and not _INDENTATION.search(text):
        return
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise _TooLargeError("nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_size(documents: list[Any]) -> None:
    """Raises _TooLargeError for documents whose aliases contain themselves, or expand to too many values."""
    sizes: dict[int, int] = {}

    def size_of(value: Any) -> int:
        if not isinstance(value, dict | list):
            return 1
        known = sizes.get(id(value))
        if known is None:
            sizes[id(value)] = _MAX_VALUES + 1  # of a value that contains itself
            parts = value.values() if isinstance(value, dict) else value
            known = sizes[id(value)] = 1 + sum(map(size_of, parts))
        return known

    if size_of(documents) > _MAX_VALUES:
        raise _TooLargeError("its aliases contain themselves or expand to too many values")


@cache
def _loader() -> type[yaml.CSafeLoader]:
    """Returns a YAML loader with the scalar rules of Kubernetes: timestamps and a single `=` are strings."""
    import yaml

    class Loader(yaml.CSafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        first: [known for known in found if known[0] not in _STRING_TAGS]
        for first, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


#: The tags of scalars that are read as strings.
_STRING_TAGS = frozenset({"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"})


def _expand(document: Any, origin: str) -> Iterator[Object]:
    """Yields a document, or the items of a List. Raises ManifestError."""
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str) or "apiVersion" not in document:
        raise ManifestError(f"{origin}: not a Kubernetes object: kind and apiVersion are missing")
    problem = _describe_problem(document)
    if problem:
        raise ManifestError(f"{origin}: not a Kubernetes object: {problem}")
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _expand(item, origin)
    else:
        yield document


def _describe_problem(document: Mapping[str, Any]) -> str:
    """Returns what is wrong with the fields that say which object it is; "" if nothing is."""
    metadata = document.get("metadata") or {}
    if not isinstance(document["apiVersion"], str):
        return "apiVersion is no string"
    if not isinstance(metadata, dict):
        return "metadata is no object"
    wrong = [name for name in ("name", "namespace") if not isinstance(metadata.get(name), str | None)]
    if wrong:
        return f"metadata.{wrong[0]} is no string"
    owners = metadata.get("ownerReferences") or []
    if not isinstance(owners, list) or not all(isinstance(owner, dict) for owner in owners):
        return "metadata.ownerReferences is no list of objects"
    return ""


class Stages:
    """The stages of a cluster. If there are stages for pods, they replace the default behaviour of pods.

    Args:
        known: the stages by name, which the controllers read.
        changed: called after each change.
    """

    def __init__(self, known: dict[str, Any], changed: Callable[[], None]) -> None:
        self._known: dict[str, Stage] = known
        self._changed = changed

    def load(self, *sources: Source) -> list[str]:
        """Adds stages: files, folders, YAML text or objects; stages of the same name are replaced. Returns their names.

        Raises ManifestError for an invalid manifest, and StageError, a ValueError, for an invalid or unsupported
        stage.
        """
        from fakekube.nodes.stages.stage import new_stage

        made = {}
        for obj in objects(*sources):
            name = (obj.get("metadata") or {}).get("name")
            if not name:
                raise ManifestError("a Stage has no name")
            made[name] = new_stage(obj)
        self._known |= {name: stage for name, stage in made.items() if stage is not None}
        self._changed()
        return list(made)

    def remove(self, name: str) -> None:
        """Removes a stage; unknown names are ignored."""
        self._known.pop(name, None)
        self._changed()

    def clear(self) -> None:
        """Removes all stages: pods and nodes have their default behaviour again."""
        self._known.clear()
        self._changed()

    def __iter__(self) -> Iterator[str]:
        """Yields the names of the stages."""
        return iter(list(self._known))

    def __len__(self) -> int:
        return len(self._known)
