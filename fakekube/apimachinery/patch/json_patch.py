"""Decodes and applies JSON patches.

`decode` parses a list of operations, and `apply` applies it to a document. `perform` applies it with the library's
errors instead of a Status, for webhooks and policies. The semantics are those of evanphx/json-patch v4, which
deviates from RFC 6902: an absent member is null, negative and padded indexes are legal, the root can be replaced but
not added or removed, the text before the first slash of a pointer is ignored, and `test` compares scalars by their
text.

Invariant: the given document is never changed. Containers on the way to a change are copied once per patch
(their keys sorted, as the real server prints what it has opened); all others are shared with the result.

Specified by: gopkg.in/evanphx/json-patch.v4/patch.go, k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Final

import orjson

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import StatusError
from fakekube.apimachinery.errors.status import bad_request, request_entity_too_large
from fakekube.apimachinery.patch import unprocessable
from fakekube.apimachinery.patch.literals import (
    Literal,
    as_written,
    has_ambiguous_literals,
    literal_text,
    loads_with_literals,
    without_literals,
)
from fakekube.apimachinery.schema.strict import Strict
from fakekube.base.golang.json_writer import write_json
from fakekube.base.golang.strconv import go_quote, json_kind, unmarshal_error

#: The maximum number of operations in a patch.
MAX_OPERATIONS: Final = 10_000

#: The maximum number of bytes of JSON that the `copy` operations of a patch may add.
MAX_COPY_BYTES: Final = 3 * 1024 * 1024

Operation = Mapping[str, Any]
"""One operation of a patch; its members are validated when it is applied."""

_STRING_MEMBERS = ("op", "path", "from")
_MEMBERS = frozenset({*_STRING_MEMBERS, "value"})
#: The maximum number of digits of a 64-bit index.
_DIGITS = 18
_INDEX = re.compile(r"[+-]?[0-9]+")


class PatchRejected(Exception):
    """An operation cannot be applied to the document. The message is the library's."""


class TestFailed(PatchRejected):
    """The value of a `test` operation differs."""

    __test__ = False


#: Ends of messages.
_MISSING = "missing value"
_INVALID_INDEX = "invalid index referenced"


def decode(
    patch: Any, *, strict: bool, duplicates: Sequence[str] = (), members: Callable[[], Iterable[str]] | None = None
) -> tuple[list[Operation], list[str]]:
    """Decodes a parsed body as the operations of a JSON patch.

    Args:
        strict: fieldValidation is Warn or Strict: members are checked, with other error messages than without it.
        duplicates: the paths of duplicate members (`[0].path`), from the codec.
        members: returns the paths of all members in the order of the document, duplicates included; the errors are in
            this order.

    Returns:
        the operations, and the strict decoding errors (warnings with fieldValidation Warn).

    Raises:
        StatusError: 400 if the body is not a list of operations.
    """
    if patch is None:
        return [], []
    if not strict:
        return _decode_leniently(patch), []
    if not isinstance(patch, list):
        raise _undecodable(patch, "[]handlers.jsonPatchOp")
    unknown: list[str] = []
    for index, operation in enumerate(patch):
        if operation is None:
            continue
        if not isinstance(operation, dict):
            raise _undecodable(operation, "handlers.jsonPatchOp")
        for member, value in operation.items():
            if member in _STRING_MEMBERS and not isinstance(value, str | None):
                raise _undecodable(value, "string", f"jsonPatchOp.{member}")
            if member not in _MEMBERS:
                unknown.append(f"[{index}].{member}")
    if not unknown and not duplicates:
        return _operations(patch), []
    errors = Strict([path for path in duplicates if not _is_below(path, unknown)], members)
    errors.unknown = unknown
    return _operations(patch), [f"json patch {text}" for text in errors.messages]


def _is_below(path: str, parents: Iterable[str]) -> bool:
    """Reports whether a path is one of the others, or a member or an item within one of them."""
    return any(path.startswith(parent) and path[len(parent) : len(parent) + 1] in ("", ".", "[") for parent in parents)


def _decode_leniently(patch: Any) -> list[Operation]:
    if not isinstance(patch, list):
        raise bad_request(unmarshal_error(json_kind(patch), "jsonpatch.Patch"))
    for operation in patch:
        if not isinstance(operation, dict | None):
            raise bad_request(unmarshal_error(json_kind(operation), "jsonpatch.Operation"))
    return _operations(patch)


def _operations(patch: list[Any]) -> list[Operation]:
    return [operation if operation is not None else {} for operation in patch]


def _undecodable(value: Any, wanted: str, field: str | None = None) -> StatusError:
    return bad_request(f"error decoding patch: {unmarshal_error(json_kind(value), wanted, field)}")


def apply(document: dict[str, Any], operations: Sequence[Operation], body: bytes = b"") -> Any:
    """Applies operations to `document`. The result shares parts with both.

    Args:
        operations: from `decode`.
        body: the encoded patch. `test` compares scalars by their JSON text, which differs for equal values if
            characters are escaped differently; without the body, it compares values.

    Returns:
        an object, or a list if the root was replaced by one.

    Raises:
        StatusError: 413 for too many operations, 422 if one of them cannot be applied.
    """
    if len(operations) > MAX_OPERATIONS:
        problem = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise request_entity_too_large(problem)
    literal = has_ambiguous_literals(body) and any(operation.get("op") == "test" for operation in operations)
    if literal:
        operations = _with_literal_values(operations, loads_with_literals(body))
    try:
        result = perform(document, operations)
    except PatchRejected:
        raise unprocessable() from None
    return without_literals(result) if literal else result


def text_of_result(document: Any, operations: Sequence[Operation], body: bytes) -> str:
    """Encodes the patched document; the values of operations are written as in the body. Raises PatchRejected."""
    return as_written(perform(document, _with_literal_values(operations, loads_with_literals(body))))


def perform(document: Any, operations: Sequence[Operation]) -> Any:
    """Applies operations to `document`. The result shares parts with both. Raises PatchRejected."""
    editor = _Editor(document)
    for operation in operations:
        editor.perform(operation)
    return editor.finish()


def _with_literal_values(operations: Sequence[Operation], patch: list[Any]) -> list[Operation]:
    """Replaces the values of operations by those of the same patch, parsed with literals."""
    return [
        {**plain, "value": literal["value"]} if "value" in plain else plain
        for plain, literal in zip(operations, _operations(patch), strict=True)
    ]


class _Editor:
    """A document during a patch; tracks the containers that are its own copies."""

    def __init__(self, document: Any) -> None:
        self._opened: list[Any] = []
        self._own: set[int] = set()
        """The identities of the copied containers that are in one place of the document only."""
        self._copied_bytes = 0
        self.root = self._open(document)

    def finish(self) -> Any:
        """Returns the changed document; the keys of copied objects are sorted."""
        for container in self._opened:
            if isinstance(container, dict):
                members = list(container.items())
                in_order = sorted(members, key=itemgetter(0))
                if in_order != members:
                    container.clear()
                    container.update(in_order)
        return self.root

    def perform(self, operation: Operation) -> None:
        kind = operation.get("op")
        action = _ACTIONS.get(kind) if isinstance(kind, str) else None
        if action is None:
            raise PatchRejected(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        action(self, operation)

    def _open(self, container: Any) -> Any:
        """Returns a mutable copy of the container."""
        if id(container) in self._own:
            return container
        copy = container.copy()
        self._opened.append(copy)
        self._own.add(id(copy))
        return copy

    def _find(self, operation: Operation, missing: str, member: str = "path") -> tuple[Any, str]:
        """Returns the container that a pointer refers to, and the last token of the pointer.

        `missing` is the error message if it does not exist, with `{}` for the pointer.
        """
        pointer = _pointer(operation, member)
        _, *tokens = pointer.split("/")
        if not tokens:
            raise PatchRejected(missing.format(pointer))
        container = self.root
        for token in tokens[:-1]:
            key = _unescape(token)
            try:
                child = _get(container, key)
            except PatchRejected:
                child = None
            if not isinstance(child, dict | list):
                raise PatchRejected(missing.format(pointer))
            opened = self._open(child)
            if opened is not child:
                container[key if isinstance(container, dict) else int(key)] = opened
            container = opened
        return container, _unescape(tokens[-1])

    def add(self, operation: Operation) -> None:
        _require(operation, "add operation failed to decode path: missing value")
        container, key = self._find(operation, _NOT_APPLICABLE.format("add", '"{}"'))
        with _prefix_errors(f"error in add for path: '{operation['path']}'"):
            _add(container, key, operation.get("value"))

    def remove(self, operation: Operation) -> None:
        _require(operation, "remove operation failed to decode path: missing value")
        container, key = self._find(operation, _NOT_APPLICABLE.format("remove", '"{}"'))
        with _prefix_errors(f"error in remove for path: '{operation['path']}'"):
            _remove(container, key)

    def replace(self, operation: Operation) -> None:
        _require(operation, "replace operation failed to decode path: operation missing path field: missing value")
        value = operation.get("value")
        if operation["path"] == "":
            if not isinstance(value, dict | list):
                if features.current().minor < 35:
                    return  # the library of older minors wraps an error that is nil, which is none
                raise PatchRejected("replace operation value must be object or array: %!w(<nil>)")
            self.root = self._open(value)
            return
        container, key = self._find(operation, _NOT_APPLICABLE.format("replace", "{}"))
        try:
            _put(container, key, value)
        except PatchRejected:
            text = f"replace operation does not apply: doc is missing key: {operation['path']}: {_MISSING}"
            raise PatchRejected(text) from None

    def move(self, operation: Operation) -> None:
        _require(operation, "move operation failed to decode from: operation, missing from field: missing value", "from")
        container, key = self._find(operation, _NOT_FOUND.format("move", "from"), "from")
        with _prefix_errors(f"error in move for path: '{key}'"):
            value = _get(container, key)
            _remove(container, key)
        _require(operation, "move operation failed to decode path: operation missing path field: missing value")
        container, key = self._find(operation, _NOT_FOUND.format("move", "destination"))
        with _prefix_errors(f"error in move for path: '{operation['path']}'"):
            _add(container, key, value)

    def test(self, operation: Operation) -> None:
        _require(operation, "test operation failed to decode path: operation missing path field: missing value")
        path = operation["path"]
        if path == "":
            found = self.root
        else:
            container, key = self._find(operation, "test operation does not apply: is missing path: {}: " + _MISSING)
            with _prefix_errors(f"error in test for path: '{path}'"):
                found = _get(container, key)
        if not _equal(found, operation.get("value")):
            raise TestFailed(f"testing value {path} failed: test failed")
        if isinstance(found, dict | list):
            opened = self._open_throughout(found)
            if path == "":
                self.root = opened
            else:
                _put(container, key, opened)

    def _open_throughout(self, container: Any) -> Any:
        """Copies the container at all depths, the effect of a comparison in the library."""
        opened = self._open(container)
        for key, item in list(opened.items() if isinstance(opened, dict) else enumerate(opened)):
            if isinstance(item, dict | list):
                opened[key] = self._open_throughout(item)
        return opened

    def copy(self, operation: Operation) -> None:
        _require(operation, "copy operation failed to decode from: operation, missing from field: missing value", "from")
        source, destination = _NOT_FOUND.format("copy", "from"), _NOT_FOUND.format("copy", "destination")
        with _prefix_errors(f"error in copy for from: '{operation['from']}'", unless=source.format(operation["from"])):
            _get(*self._find(operation, source, "from"))
        _require(operation, "copy operation failed to decode path: missing value")
        self._find(operation, destination)  # containers copied on the way may be part of the value: their keys are sorted
        value = _get(*self._find(operation, source, "from"))
        # The value is now in two places, so everything within it must be copied before a change.
        self._own.clear()
        self.root = self._open(self.root)
        container, key = self._find(operation, destination)
        if value is not None:
            self._copied_bytes += _encoded_size(value)
        if self._copied_bytes > MAX_COPY_BYTES:
            raise PatchRejected(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied_bytes}, exceeding the "
                f"limit {MAX_COPY_BYTES}"
            )
        with _prefix_errors("error while adding value during copy"):
            _add(container, key, value)


#: Error messages for pointers to missing values; `{}` is the pointer.
_NOT_APPLICABLE = "{} operation does not apply: doc is missing path: {}: " + _MISSING
_NOT_FOUND = "{} operation does not apply: doc is missing {} path: {{}}: " + _MISSING


def _pointer(operation: Operation, member: str) -> str:
    pointer = operation.get(member)
    if not isinstance(pointer, str):
        raise PatchRejected(f"operation missing {member} field: {_MISSING}")
    return pointer


def _require(operation: Operation, problem: str, member: str = "path") -> None:
    """Raises PatchRejected for an operation without the pointer."""
    if not isinstance(operation.get(member), str):
        raise PatchRejected(problem)


@contextmanager
def _prefix_errors(what: str, *, unless: str = "") -> Iterator[None]:
    """Prefixes the message of an error with the operation, unless it has the given text."""
    try:
        yield
    except PatchRejected as error:
        if str(error) == unless:
            raise
        raise PatchRejected(f"{what}: {error}") from None


_ACTIONS: dict[str, Callable[[_Editor, Operation], None]] = {
    "add": _Editor.add,
    "copy": _Editor.copy,
    "move": _Editor.move,
    "remove": _Editor.remove,
    "replace": _Editor.replace,
    "test": _Editor.test,
}


def _unescape(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


def _index(key: str) -> int:
    if not _INDEX.fullmatch(key):
        raise PatchRejected(f"strconv.Atoi: parsing {go_quote(key)}: invalid syntax")
    if len(key.lstrip("+-0")) > _DIGITS:
        raise PatchRejected(f"strconv.Atoi: parsing {go_quote(key)}: value out of range")
    return int(key)


def _no_index(index: int) -> PatchRejected:
    return PatchRejected(f"Unable to access invalid index: {index}: {_INVALID_INDEX}")


def _existing(items: list[Any], key: str) -> int:
    """Returns the position of an item; negative indexes count from the end."""
    index = _index(key)
    if not -len(items) <= index < len(items):
        raise _no_index(index)
    return index


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_existing(container, key)]


def _put(container: Any, key: str, value: Any) -> None:
    """Replaces an existing value."""
    container[key if isinstance(container, dict) else _existing(container, key)] = value


def _add(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        with _prefix_errors(f"value was not a proper array index: '{key}'"):
            index = _index(key)
        places = len(container) + 1
        if not -places <= index < places:
            raise _no_index(index)
        container.insert(index if index >= 0 else index + places, value)


def _remove(container: Any, key: str) -> None:
    if isinstance(container, dict):
        if key not in container:
            raise PatchRejected(f"Unable to remove nonexistent key: {key}: {_MISSING}")
        del container[key]
    else:
        del container[_existing(container, key)]


def _equal(found: Any, value: Any) -> bool:
    if isinstance(found, dict):
        return (
            isinstance(value, dict)
            and found.keys() == value.keys()
            and all(_equal(item, value[key]) for key, item in found.items())
        )
    if isinstance(found, list):
        return isinstance(value, list) and len(found) == len(value) and all(map(_equal, found, value))
    if isinstance(found, Literal) or isinstance(value, Literal):
        return not isinstance(value, dict | list) and literal_text(found) == literal_text(value)
    return type(found) is type(value) and bool(found == value)


def _encoded_size(value: Any) -> int:
    try:
        return len(orjson.dumps(value, default=literal_text))
    except orjson.JSONEncodeError:  # nested too deep for orjson, or with an integer too large
        return len(write_json(value, _scalar))


def _scalar(value: Any) -> bytes:
    return json.dumps(value, default=literal_text, ensure_ascii=False).encode("utf-8", "surrogatepass")
