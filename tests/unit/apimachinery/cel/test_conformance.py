"""The language's public conformance vectors, where a folder of them is given.

`FAKEKUBE_CEL_VECTORS` names a folder with the *.textproto files of cel-spec (tests/simple/testdata). Vectors of what
Kubernetes does not enable are left out: messages of protocol buffers, containers, other extensions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakekube.apimachinery.cel.checker import check
from fakekube.apimachinery.cel.errors import CompileError, EvaluationError
from fakekube.apimachinery.cel.evaluation import program
from fakekube.apimachinery.cel.parser import parse
from fakekube.apimachinery.cel.types import DYN, Type, list_of, map_of
from fakekube.apimachinery.cel.values import CelType, Duration, Map, Timestamp, UInt, equal, kind_of
from tests.unit.apimachinery.cel.textproto import Message, read

FOLDER = os.environ.get("FAKEKUBE_CEL_VECTORS", "")
FILES = (
    "basic",
    "comparisons",
    "conversions",
    "dynamic",
    "fields",
    "fp_math",
    "integer_math",
    "lists",
    "logic",
    "macros",
    "macros2",
    "namespace",
    "optionals",
    "parse",
    "plumbing",
    "string",
    "string_ext",
    "timestamps",
)
#: What stands in expressions that are about messages, or about what is not enabled.
FOREIGN = ("TestAllTypes", "google.protobuf.", "proto2", "proto3", "GlobalEnum", "NestedEnum", "cel.bind")
#: Kubernetes knows the strings extension at version 2 only, prints numbers as the library at this version does, has no
#: names in backticks, and looks at keys before anything runs.
DIFFERENT = frozenset(
    {
        "fields/map_fields/map_bad_key_type_or_true",
        "fields/map_fields/map_bad_key_type_and_false",
        "fields/qualified_identifier_resolution/map_value_repeat_key",
        "namespace/namespace_shadowing/comprehension_shadowing_selector",
        "optionals/optionals/map_null_entry_no_such_key",
        "optionals/optionals/map_present_key_invalid_field",
        "string_ext/value_errors/indexof_out_of_range",
        "string_ext/value_errors/lastindexof_out_of_range",
    }
)
DIFFERENT_SECTIONS = ("fields/quoted_map_fields/", "string_ext/reverse/")
#: Clauses of `format` that print otherwise.
OTHERWISE_PRINTED = ("scientific", "NaN", "infinity", "default precision", "list support", "map support", "dyntype")


def vectors() -> Iterator[Any]:
    for name in FILES if FOLDER else ():
        for section in read(Path(FOLDER, f"{name}.textproto").read_text("utf-8"))["section"]:
            for test in section["test"]:
                label = f"{name}/{section['name'][0].decode()}/{test['name'][0].decode()}"
                if not _is_foreign(test):
                    yield pytest.param(test, id=label)


def _is_foreign(test: Message) -> bool:
    source = test["expr"][0].decode()
    return "container" in test or "disable_check" in test or any(word in f"{source}{test}" for word in FOREIGN)


@pytest.mark.skipif(not FOLDER, reason="no folder of vectors is given")
@pytest.mark.parametrize("test", list(vectors()))
def test_conformance_vector(test: Message, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    if name in DIFFERENT or name.startswith(DIFFERENT_SECTIONS):
        pytest.skip("Kubernetes does otherwise")
    if name.startswith("string_ext/format/") and any(word in name for word in OTHERWISE_PRINTED):
        pytest.skip("printed otherwise")
    found = _result(test)
    if isinstance(found, CompileError) and "expected type '" in str(found):
        pytest.skip("Kubernetes refuses lists and maps of mixed types")
    if "eval_error" in test or "any_eval_errors" in test:
        assert isinstance(found, EvaluationError | CompileError)
        return
    wanted = _value(test["value"][0]) if "value" in test else True
    assert not isinstance(found, Exception), found
    assert kind_of(found) is kind_of(wanted)
    assert equal(found, wanted) or str(found) == str(wanted) == "nan"


def _result(test: Message) -> Any:
    source = test["expr"][0].decode()
    declared = {_text(each["name"]): _type(each["ident"][0]["type"][0]) for each in test.get("type_env", ()) if "ident" in each}
    bindings = {_text(each["key"]): each["value"][0] for each in test.get("bindings", ())}
    values = {name: _value(bound["value"][0]) for name, bound in bindings.items() if "value" in bound}
    try:
        checked = check(source, parse(source), {**dict.fromkeys(values, DYN), **declared})
        value, _ = program(checked).evaluate(values)
    except (CompileError, EvaluationError) as error:
        return error
    return value


def _text(values: list[Any]) -> str:
    return str(values[0].decode())


_SCALAR_TYPES = {"INT64": "int", "UINT64": "uint", "DOUBLE": "double", "BOOL": "bool", "STRING": "string", "BYTES": "bytes"}


def _type(message: Message) -> Type:
    match message:
        case {"primitive": [name]}:
            return Type(_SCALAR_TYPES[name])
        case {"well_known": [name]}:
            return Type(name.lower()) if name != "ANY" else DYN
        case {"list_type": [{"elem_type": [items]}]}:
            return list_of(_type(items))
        case {"map_type": [{"key_type": [keys], "value_type": [values]}]}:
            return map_of(_type(keys), _type(values))
    return DYN


def _value(message: Message) -> Any:
    """A value of the language from its message."""
    [(kind, [content])] = message.items()
    match kind:
        case "int64_value":
            return int(content, 0)
        case "uint64_value":
            return UInt(int(content, 0))
        case "double_value":
            return float(content)
        case "bool_value":
            return content == "true"
        case "string_value":
            return content.decode()
        case "bytes_value":
            return content
        case "null_value":
            return None
        case "list_value":
            return [_value(each) for each in content.get("values", ())]
        case "map_value":
            return Map.from_pairs((_value(each["key"][0]), _value(each["value"][0])) for each in content.get("entries", ()))
        case "type_value":
            return CelType(content.decode())
    return _object(content)


def _object(message: Message) -> Any:
    """Durations and timestamps: seconds and nanoseconds."""
    [(name, [content])] = message.items()
    nanoseconds = int(content.get("seconds", ["0"])[0]) * 10**9 + int(content.get("nanos", ["0"])[0])
    return Duration(nanoseconds) if name.endswith("Duration") else Timestamp(nanoseconds)
