"""Other values for what an object contains, as another client would write them: the next number, the same amount in its unit, the
other boolean, other bytes, a longer text.

Invariant: a value keeps its type and, if one can be seen, its form. The API may still refuse it, so that there are several
candidates.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.patch.merge_patch import apply_merge_patch
from fakekube.checker.reaction import is_time, leaves_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fakekube.base.objects import Object

Path = tuple[str | int, ...]

#: The fields of objects that are no content: what identifies an object, and what is observed of it.
_NO_CONTENT = ("metadata", "status", "apiVersion", "kind")
#: How many changes of an object are tried until the API accepts one.
_MOST_CHANGES = 12
#: Texts that mean yes or no, each with the other one.
_WORDS = {"true": "false", "yes": "no", "on": "off", "enabled": "disabled", "enable": "disable"}
_OPPOSITES = {word: other for pair in _WORDS.items() for word, other in (pair, pair[::-1])}
#: The choices in the refusal of a value that is none of them.
_CHOICES = re.compile(r'supported values: (?P<choices>"[^"]*"(?:, "[^"]*")*)')
#: A number, or an amount with a unit: 3, 1.5, 64Mi, 30s, 50%.
_AMOUNT = re.compile(r"(?P<whole>\d{1,9})(?P<rest>(\.\d+)?[A-Za-z%]{0,3})")


def is_content(part: str | int) -> bool:
    """Reports whether a field of an object is content that says what is wanted: spec, data, rules, subjects, …"""
    return part not in _NO_CONTENT


def parts_of(obj: Object) -> Iterator[tuple[str, Any]]:
    """Yields the fields of an object that are content, data and spec first."""
    names = dict.fromkeys(("data", "spec", *obj))
    return ((name, obj[name]) for name in names if name in obj and is_content(name))


def other_values(value: Any, ending: str, times: int = 1) -> list[Any]:
    """Returns values that may replace another one, the likeliest first; none for what is no string, number or boolean.

    Args:
        value: the present value.
        ending: what is appended to a text.
        times: by how much a number grows.
    """
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + times, value - times]
    if not isinstance(value, str):
        return []
    if (opposite := _OPPOSITES.get(value.lower())) is not None:
        return [opposite.capitalize() if value.istitle() else opposite]
    found: list[Any] = []
    amount = _AMOUNT.fullmatch(value)
    if amount is not None:
        found.append(f"{int(amount['whole']) + times}{amount['rest']}")
    if is_time(value):
        found.append(f"{int(value[:4]) + times:04}{value[4:]}")
    found.append(f"{value}-{ending}")
    decoded = from_base64(value)
    if decoded is not None:
        found.append(base64.b64encode(decoded + ending.encode()).decode())
    return found


def is_switch(value: Any) -> bool:
    """Reports whether a value is a boolean, also one in words."""
    return isinstance(value, bool) or (isinstance(value, str) and value.lower() in _OPPOSITES)


def is_number(value: Any) -> bool:
    """Reports whether a value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_amount(value: Any) -> bool:
    """Reports whether a value is a number, also one in a string, with or without a unit."""
    return is_number(value) or (isinstance(value, str) and _AMOUNT.fullmatch(value) is not None)


def choices_of(refusal: str) -> list[str]:
    """Returns the values that the API would accept instead, if it has refused one that is no choice of an enumeration."""
    found = _CHOICES.search(refusal)
    return re.findall(r'"([^"]*)"', found["choices"]) if found else []


def to_base64(text: str) -> str:
    """Returns a text in base64, as the data of Secrets and `binaryData` have it."""
    return base64.b64encode(text.encode()).decode()


def from_base64(value: str) -> bytes | None:
    """Returns what a string has in base64; None if it is too short, or has none."""
    try:
        return base64.b64decode(value, validate=True) if len(value) > 3 else None
    except ValueError:
        return None


def leaves_to_change(obj: Object) -> Iterator[tuple[Path, Any]]:
    """Yields the paths and values of all strings, numbers and booleans in the content of an object."""
    for part, content in parts_of(obj):
        for path, value in leaves_of(content):
            if isinstance(value, str | int | float):
                yield (part, *path), value


def is_encoded(obj: Object, path: Path) -> bool:
    """Reports whether the API takes only base64 at a path of an object."""
    return path[0] == "binaryData" or (path[0] == "data" and obj.get("kind") == "Secret")


def containers_of(obj: Object) -> Iterator[Path]:
    """Yields the paths of all maps and lists in the content of an object that are not empty; not that of the spec."""
    for part, content in parts_of(obj):
        for path in _containers_of(content, (part,)):
            if path != ("spec",):
                yield path


def _containers_of(value: Any, path: Path) -> Iterator[Path]:
    if value and isinstance(value, dict | list):
        yield path
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _containers_of(inner, (*path, key))


def at_path(value: Any, path: Path) -> Any:
    """Returns what a value has at a path that exists in it."""
    for part in path:
        value = value[part]
    return value


def path_text(path: Path) -> str:
    """Returns a path as people read it, such as "spec.containers.0.image"."""
    return ".".join(map(str, path))


def changes_between(old: Object, new: Object) -> Object:
    """Returns the merge patch that makes an object equal to another one."""
    changes: Object = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            inner = changes_between(old[key], value)
            changes |= {key: inner} if inner else {}
        elif key not in old or old[key] != value:
            changes[key] = value
    return changes


def patch_of(value: Any, path: Path, new: Any) -> Any:
    """Returns the merge patch that sets what a value has at a path. It has lists as a whole."""
    if not path:
        return new
    first, *rest = path
    if isinstance(value, list):
        return with_value(value, path, new)
    return {first: patch_of(value[first], tuple(rest), new)}


def keep_added(now: Any, change: Any) -> Any:
    """Returns a merge patch that sets the same values as another one, and keeps what the items of lists have besides; not in
    lists that get longer or shorter."""
    if isinstance(change, dict):
        return {key: keep_added(now.get(key) if isinstance(now, dict) else None, inner) for key, inner in change.items()}
    if not isinstance(change, list) or not isinstance(now, list) or len(now) != len(change):
        return change
    kept = [keep_added(*pair) for pair in zip(now, change, strict=True)]
    return [apply_merge_patch(*pair) if isinstance(pair[0], dict) else pair[1] for pair in zip(now, kept, strict=True)]


def with_value(value: Any, path: Path, new: Any) -> Any:
    """Returns a copy of a value with something else at a path that exists in it."""
    if not path:
        return new
    first, *rest = path
    if isinstance(value, list):
        return [with_value(inner, tuple(rest), new) if number == first else inner for number, inner in enumerate(value)]
    return {key: with_value(inner, tuple(rest), new) if key == first else inner for key, inner in value.items()}


def changes_of_texts(obj: Object, ending: str) -> list[Object]:
    """Returns some merge patches; each appends an ending to one string in the data, the spec or the annotations of an object, and
    replaces the data of Secrets.

    The first annotation comes second: a client may react to nothing else in an object with a large spec.
    """
    texts = _text_changes(obj, ending)
    annotations = [{"metadata": {"annotations": {key: f"{value}-{ending}"}}} for key, value in _annotations_of(obj).items()]
    return [*texts[:1], *annotations[:1], *texts[1:], *annotations[1:]][:_MOST_CHANGES]


def changes_of_amounts(obj: Object, times: int) -> list[Object]:
    """Returns some merge patches; each lets one number or amount in the data, the spec or the annotations of an object grow so
    many times."""
    leaves = [(path, value) for path, value in leaves_to_change(obj) if not is_encoded(obj, path)]
    annotations = [(("metadata", "annotations", key), value) for key, value in _annotations_of(obj).items()]
    amounts = [(path, value) for path, value in (*leaves, *annotations) if is_amount(value)]
    return [patch_of(obj, path, other_values(value, "", times)[0]) for path, value in amounts][:_MOST_CHANGES]


def changes_of_all(objects: Sequence[Object], ending: str, times: int) -> list[tuple[int, Object]]:
    """Returns the changes of texts of several objects and then those of amounts, each with the position of its object.

    Args:
        objects: as they were made.
        ending: what is appended to a text.
        times: by how much a number grows: how many times the objects are changed by that.
    """
    texts = [(number, change) for number, obj in enumerate(objects) for change in changes_of_texts(obj, ending)]
    return [*texts, *((number, change) for number, obj in enumerate(objects) for change in changes_of_amounts(obj, times))]


def _text_changes(obj: Object, ending: str) -> list[Object]:
    return [
        patch_of(obj, path, to_base64(ending) if is_encoded(obj, path) else f"{value}-{ending}")
        for path, value in leaves_to_change(obj)
        if isinstance(value, str)
    ]


def _annotations_of(obj: Object) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}
