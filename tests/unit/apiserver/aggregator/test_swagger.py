"""OpenAPI v2 documents are filter_paths, merged and converted as kube-openapi does it."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fakekube.apiserver.aggregator.documents import convert_v2_to_v3, filter_paths, merge_specs

Json = dict[str, Any]


def document(*paths: str, **definitions: Any) -> Json:
    """Each path needs the definition of its last segment."""
    return {
        "swagger": "2.0",
        "paths": {path: {"get": {"schema": {"$ref": f"#/definitions/{path.rpartition('/')[2]}"}}} for path in paths},
        "definitions": {name: {"description": text} for name, text in definitions.items()},
    }


def test_unused_definitions_are_filtered() -> None:
    whole = document("/a/one", "/b/two", one="1", two="2", never="0")
    whole["definitions"]["one"]["properties"] = {"x": {"$ref": "#/definitions/below"}}
    whole["definitions"]["below"] = {}
    found = filter_paths(whole, "/a/")
    assert set(found["paths"]) == {"/a/one"}
    assert set(found["definitions"]) == {"one", "below", "never"}


def test_the_first_document_with_a_path_takes_precedence() -> None:
    found = merge_specs(document("/a/x", x="first"), [document("/a/x", "/b/y", x="second", y="2")])
    assert found["definitions"] == {"x": {"description": "first"}, "y": {"description": "2"}}


def test_different_definitions_of_one_name_are_renamed() -> None:
    found = merge_specs(
        document("/a/x", x="first"), [document("/b/x", x="second"), document("/c/x", x="third"), document("/d/x", x="second")]
    )
    described = {name: schema["description"] for name, schema in found["definitions"].items()}
    assert described == {"x": "first", "x_v2": "second", "x_v3": "third"}
    references = {path: item["get"]["schema"]["$ref"].rpartition("/")[2] for path, item in found["paths"].items()}
    assert references == {"/a/x": "x", "/b/x": "x_v2", "/c/x": "x_v3", "/d/x": "x_v2"}


def test_kinds_of_one_definition_are_joined() -> None:
    first, second = document("/a/x", x="same"), document("/b/x", x="same")
    for number, one in enumerate((first, second)):
        one["definitions"]["x"]["x-kubernetes-group-version-kind"] = [{"kind": f"K{number}"}]
    found = merge_specs(first, [second])
    assert found["definitions"]["x"]["x-kubernetes-group-version-kind"] == [{"kind": "K0"}, {"kind": "K1"}]


def test_a_converted_document() -> None:
    old = {
        "swagger": "2.0",
        "info": {"title": "t"},
        "paths": {"/x": {
            "get": {
                "consumes": ["a/b"], "produces": ["c/d"], "operationId": "getX",
                "parameters": [
                    {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/X"}},
                    {"name": "limit", "in": "query", "type": "integer", "uniqueItems": True},
                    {"$ref": "#/parameters/p"},
                ],
                "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/X"}}, "401": {"description": "No"}},
            },
        }},
        "definitions": {"X": {"properties": {"y": {"description": "why", "$ref": "#/definitions/Y"}}}},
    }  # fmt: skip
    found = convert_v2_to_v3(old)
    assert found["paths"]["/x"]["get"] == {
        "operationId": "getX",
        "requestBody": {"content": {"a/b": {"schema": {"$ref": "#/components/schemas/X"}}}},
        "parameters": [
            {"name": "limit", "in": "query", "schema": {"type": "integer", "uniqueItems": True}},
            {"$ref": "#/components/parameters/p"},
        ],
        "responses": {
            "200": {"description": "OK", "content": {"c/d": {"schema": {"$ref": "#/components/schemas/X"}}}},
            "401": {"description": "No"},
        },
    }
    reference = {"description": "why", "allOf": [{"$ref": "#/components/schemas/Y"}]}
    assert found["components"]["schemas"]["X"]["properties"]["y"] == reference


_DOCUMENTS = st.lists(
    st.builds(
        lambda paths, described: document(*paths, **described),
        st.lists(st.sampled_from(["/a/x", "/a/y", "/b/x", "/c/z"]), max_size=3, unique=True),
        st.dictionaries(st.sampled_from("xyz"), st.sampled_from(["1", "2", "3"])),
    ),
    min_size=1,
    max_size=4,
)


@given(_DOCUMENTS)
def test_merging_keeps_every_path_and_changes_no_document(documents: list[Json]) -> None:
    before = copy.deepcopy(documents)
    found = merge_specs(documents[0], documents[1:])
    assert documents == before
    assert set(found["paths"]) == {path for one in documents for path in one["paths"]}
    for path, item in found["paths"].items():
        name = item["get"]["schema"]["$ref"].rpartition("/")[2]
        owner = next(one for one in documents if path in one["paths"])
        assert (
            found.get("definitions", {}).get(name, {}).get("description")
            == owner["definitions"].get(path.rpartition("/")[2], {}).get("description")
            or path.rpartition("/")[2] not in owner["definitions"]
        )
