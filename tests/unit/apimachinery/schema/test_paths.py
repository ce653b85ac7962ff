"""Paths into schemas."""

from __future__ import annotations

import pytest

from fakekube.apimachinery.schema.paths import SchemaPathError, place_at

STRING = {"type": "string"}
SCHEMA = {
    "type": "object",
    "properties": {
        "a": STRING,
        "it's": STRING,
        "x.y": STRING,
        "l": {"type": "array", "items": STRING},
        "m": {"type": "object", "additionalProperties": STRING},
        "any": {"type": "object", "additionalProperties": True},
    },
}


@pytest.mark.parametrize(
    ("path", "shown", "root"),
    [
        (".a", "a", "a"),
        ("['a']", "a", "a"),
        ("['x.y']", "x.y", "x.y"),
        (r"['it\'s']", "it's", "it's"),
        (".m.key", "m[key]", "m"),
        (".m['a.b']", "m[a.b]", "m"),
    ],
)
def test_schema_paths_are_resolved(path: str, shown: str, root: str) -> None:
    place = place_at(path, SCHEMA)
    assert (place.path, place.root, place.schema) == (shown, root, STRING)


def test_values_of_untyped_maps_have_no_schema() -> None:
    assert place_at(".any.key", SCHEMA).schema is None


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("a", "expected [ or . but got: a"),
        (".", "unexpected end of JSON path"),
        (".zz", "does not refer to a valid field"),
        (".a.b", "does not refer to a valid field"),
        (".l[0]", "expected single quoted string but got 0"),
        ("['a'", "unexpected end of JSON path"),
        ("['a'.", "expected ] but got ."),
        ("['a", "expected single quoted string but got 'a"),
        (r"['\z']", r"invalid string literal: invalid escape char \z"),
        (".any.key.more", "does not refer to a valid field"),
        ("['a'x", "expected ] but got x"),
    ],
)
def test_invalid_schema_paths(path: str, complaint: str) -> None:
    with pytest.raises(SchemaPathError) as caught:
        place_at(path, SCHEMA)
    assert str(caught.value) == complaint


def test_bracket_notation_can_be_disallowed() -> None:
    with pytest.raises(SchemaPathError, match="array notation is not allowed"):
        place_at("['a']", SCHEMA, brackets=False)
