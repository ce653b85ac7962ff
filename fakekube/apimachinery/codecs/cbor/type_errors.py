"""Finds the error of a well-formed CBOR document that does not fit its built-in type.

The real server's library decodes into Go types and has its own messages. Here documents are decoded to plain
data first, and types are checked as for JSON. Only if that fails, the document is decoded again along its
type, to find the error that the library reports. The message names the field of the outermost struct at any depth.

Specified by: github.com/fxamacker/cbor/v2 (decode.go: parseToValue, parseMapToStruct, fill…).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from fakekube.apimachinery.codecs.cbor.decoder import DuplicateError, MismatchError, Reader
from fakekube.apimachinery.codecs.cbor.items import FLOATS, MAJOR_NAMES, CBORError
from fakekube.apimachinery.schema.model import Field, Shape, Type
from fakekube.apimachinery.schema.quantity import canonical
from fakekube.base.golang import base64
from fakekube.base.golang.strconv import MAX_INT64
from fakekube.base.golang.timestamps import parse_micro_time, parse_time

_STRING_TYPE: Final = Type(Shape.STRING, go="string")
_TYPE_META: Final = Type(
    Shape.STRUCT, go="v1.TypeMeta", resolve=lambda: {name: Field(name, _STRING_TYPE) for name in ("apiVersion", "kind")}
)


def type_errors(body: bytes, type_: Type) -> tuple[str, str]:
    """Returns the errors of decoding a document into a type.

    Args:
        body: a well-formed document.
        type_: the struct to decode into.

    Returns:
        The first error, and the first strict decoding error; "" if there is none.
    """
    whole = replace(type_, resolve=lambda: {**_TYPE_META.fields, **type_.fields})
    finding = _problem(body, whole, strict=True)
    if not isinstance(finding, _UnknownFieldError):
        return str(finding or ""), ""
    return str(_problem(body, whole, strict=False) or ""), str(finding)


def _problem(body: bytes, type_: Type, *, strict: bool) -> CBORError | None:
    try:
        _Walk(body, strict=strict).document(type_)
    except CBORError as problem:
        return problem
    return None


def type_meta(body: bytes) -> tuple[str, str]:
    """Decodes only the apiVersion and kind of a well-formed document. Raises CBORError."""
    found = _Walk(body, strict=False).document(_TYPE_META) or {}
    return found.get("apiVersion", ""), found.get("kind", "")


class _UnknownFieldError(CBORError):
    """A struct has no field of this name; this takes precedence over earlier errors in the struct."""

    def __init__(self, index: int) -> None:
        super().__init__(f"cbor: found unknown field at map element index {index}")


#: The parsers of textual types that may be null.
_PARSERS: Final[dict[Shape, Callable[[str], Any]]] = {
    Shape.TIME: parse_time, Shape.MICRO_TIME: parse_micro_time, Shape.QUANTITY: lambda text: canonical(text.strip()),
}  # fmt: skip
_RAW: Final = {
    Shape.RAW: "failed to transcode RawExtension to JSON: failed to parse RawExtension bytes as CBOR",
    Shape.FIELDS_V1: "failed to transcode FieldsV1 to JSON: metav1.FieldsV1 cbor invalid",
}
#: The Go names of key types.
_KEY_TYPES: Final = {
    "v1.ResourceList": "v1.ResourceName", "v1.JSONSchemaDefinitions": "string", "v1.JSONSchemaDependencies": "string",
}  # fmt: skip
_LIMITS: Final = {"int32": 2**31, "int64": 2**63}
_NULL: Final = (0xF6, 0xF7)


class _Walk(Reader):
    """Decodes a document along its type; returns the values of strings and structs only."""

    def __init__(self, body: bytes, *, strict: bool) -> None:
        super().__init__(body)
        self._strict = strict
        self.raw_problem = ""
        """The first error of the parts that Go decodes after all others (RawExtension, FieldsV1)."""

    def document(self, type_: Type) -> Any:
        """Decodes the document into a struct. Raises CBORError."""
        found = self.read(type_)
        if self.raw_problem:
            raise CBORError(self.raw_problem)
        return found

    def read(self, type_: Type, *, pointer: bool = False) -> Any:
        """Decodes the next item. Raises CBORError."""
        if self.first in _NULL and (pointer or type_.shape in _PARSERS):
            self.at += 1
            return None
        with self.below_tags():
            return _READERS.get(type_.shape, _Walk._skip_value)(self, type_)

    def _skip_value(self, _type: Type) -> None:
        self.value()

    # --- Structs ------------------------------------------------------------------------------------------------------

    def _struct(self, type_: Type) -> dict[str, Any]:
        members: dict[str, Any] = {}
        if self.major != 5:
            note = "cannot decode CBOR array to struct without toarray option" if self.major == 4 else ""
            self.refuse(type_.go, note)
            return members
        problem: CBORError | None = None
        others: set[tuple[type, Any]] = set()
        indexes = self.indexes()
        for index in indexes:
            try:
                name, wrong = self._name()
            except CBORError as found:
                problem = problem or found
                self.skip()
                continue
            problem = problem or wrong
            field = type_.fields.get(name) if isinstance(name, str) and wrong is None else None
            if field is None and self._strict:
                self._pass_rest(indexes)
                raise _UnknownFieldError(index)
            if name in members if field is not None else (type(name), name) in others:
                self._pass_rest(indexes)
                raise DuplicateError(name, index)
            if field is None:
                others.add((type(name), name))
                self.skip()
                continue
            members[field.name] = None
            try:
                members[field.name] = self.read(field.type, pointer=field.pointer)
            except CBORError as found:
                if isinstance(found, MismatchError):
                    found.field = f"{type_.go}.{field.name}"
                problem = problem or found
        if problem is not None:
            raise problem
        return members

    def _name(self) -> tuple[Any, CBORError | None]:
        """Decodes a key. Returns it and its error, if any. Raises CBORError for a key that cannot be compared."""
        major = self.major
        if major == 0:
            return self.argument(), None
        if major == 1:
            number = self.argument()
            if number > MAX_INT64:
                raise MismatchError(1, "int64", f"-1-{number} overflows Go's int64")
            return -1 - number, None
        if major == 2:
            return self.octets(), None
        if major == 3:
            return self.unicode(), None
        note = f"map key is of type {MAJOR_NAMES[major]} and cannot be used to match struct field name"
        wrong = MismatchError(major, "string", note)
        try:
            key = self.value()
        except CBORError:
            raise wrong from None
        if isinstance(key, dict | list):
            raise wrong
        return key, wrong

    # --- Containers ---------------------------------------------------------------------------------------------------

    def _members(self, type_: Type) -> None:
        if self.major != 5 or type_.items is None:
            self.refuse(type_.go)
            return
        problem: CBORError | None = None
        key, names = "", set[str]()
        indexes = self.indexes()
        for index in indexes:
            try:
                key = self.text(key, _KEY_TYPES.get(type_.go) or type_.go[4:].partition("]")[0])
            except CBORError as found:
                problem = problem or found
                self.skip()
                continue
            try:
                self.read(type_.items)
            except CBORError as found:
                problem = problem or found
                continue
            if key in names:
                self.skip_members(indexes)
                raise DuplicateError(key, index)
            names.add(key)
        if problem is not None:
            raise problem

    def _list(self, type_: Type) -> None:
        if self.major != 4 or type_.items is None:
            self.refuse(type_.go)
            return
        problem: CBORError | None = None
        for _ in self.indexes():
            try:
                self.read(type_.items)
            except CBORError as found:
                problem = problem or found
        if problem is not None:
            raise problem

    def _pass_rest(self, indexes: Iterator[int]) -> None:
        """Skips the value of a member, and all members that follow."""
        self.skip()
        self.skip_members(indexes)

    # --- Scalars ------------------------------------------------------------------------------------------------------

    def _string(self, type_: Type) -> str:
        return self.text(go_type=type_.go)

    def _parse(self, type_: Type) -> None:
        text = self.text()
        try:
            _PARSERS[type_.shape](text)
        except ValueError as problem:
            raise CBORError(str(problem)) from None

    def _integer(self, type_: Type) -> None:
        self._check_integer(type_.go, _LIMITS.get(type_.format, MAX_INT64 + 1))

    def _check_integer(self, go_type: str, limit: int) -> None:
        major, begin = self.major, self.at
        if major > 1:
            self.refuse(go_type)
            return
        number = self.argument() if major == 0 else -1 - self.argument()
        if number < -MAX_INT64 - 1:
            self.at = begin
            self.refuse(go_type)
        if not -limit <= number < limit:
            raise MismatchError(major, go_type, f"{number} overflows {go_type}")

    def _number(self, type_: Type) -> None:
        if self.first in FLOATS:
            self.value()
        elif self.major == 0:
            self.argument()
        else:
            self._check_integer(type_.go, MAX_INT64 + 1)

    def _boolean(self, type_: Type) -> None:
        if self.first in (0xF4, 0xF5):
            self.at += 1
        else:
            self.refuse(type_.go)

    def _bytes(self, type_: Type) -> None:
        if self.major != 2:
            self.refuse(type_.go)
            return
        text = self.octets()
        if not self.later:  # else they are no text yet
            try:
                base64.canonical(text)
            except base64.Base64Error as problem:
                raise CBORError(f"cbor: failed to decode base64 from byte string: {problem}") from None

    def _int_or_string(self, _type: Type) -> None:
        begin = self.at
        try:
            self.text()
        except CBORError:
            self.at = begin
            self._check_integer("int32", _LIMITS["int32"])

    def _raw(self, type_: Type) -> None:
        """Go decodes it after all other fields."""
        begin = self.at
        self.skip()
        if self.raw_problem:
            return
        reader = Reader(self.body)
        reader.at = begin
        try:
            if type_.shape is Shape.RAW:
                reader.value()
            elif reader.major == 5:
                reader.content()
        except CBORError as problem:
            self.raw_problem = f"{_RAW[type_.shape]}: {problem}"


_READERS: Final[dict[Shape, Callable[[_Walk, Type], Any]]] = {
    Shape.STRUCT: _Walk._struct, Shape.MAP: _Walk._members, Shape.LIST: _Walk._list, Shape.STRING: _Walk._string,
    Shape.INTEGER: _Walk._integer, Shape.NUMBER: _Walk._number, Shape.BOOLEAN: _Walk._boolean, Shape.BYTES: _Walk._bytes,
    Shape.TIME: _Walk._parse, Shape.MICRO_TIME: _Walk._parse, Shape.QUANTITY: _Walk._parse,
    Shape.INT_OR_STRING: _Walk._int_or_string, Shape.RAW: _Walk._raw, Shape.FIELDS_V1: _Walk._raw,
}  # fmt: skip
