"""The OpenAPI document of the control API: complete enough for generators of clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from fakekube.cluster.control.endpoints import ENDPOINTS
from fakekube.cluster.control.openapi import openapi
from fakekube.powers.fault_actions import ACTIONS


def nodes(value: Any) -> Iterator[Any]:
    yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(part)


def test_every_reference_resolves() -> None:
    document = openapi(ENDPOINTS)
    references = {one["$ref"] for one in nodes(document) if isinstance(one, dict) and "$ref" in one}
    assert references
    assert {one.rpartition("/")[2] for one in references} <= document["components"]["schemas"].keys()


def test_operations_have_unique_ids_responses_and_the_parameters_of_their_paths() -> None:
    operations = [(path, one) for path, methods in openapi(ENDPOINTS)["paths"].items() for one in methods.values()]
    assert len(operations) == len(ENDPOINTS)
    assert [name for name, count in Counter(one["operationId"] for _, one in operations).items() if count > 1] == []
    for path, one in operations:
        named = {parameter["name"] for parameter in one["parameters"] if parameter["in"] == "path"}
        assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}
        assert all("schema" in parameter for parameter in one["parameters"])
        assert "default" in one["responses"]


def test_every_member_of_every_body_has_a_type() -> None:
    for path, methods in openapi(ENDPOINTS)["paths"].items():
        for one in methods.values():
            for content in one.get("requestBody", {}).get("content", {}).values():
                for name, schema in content["schema"].get("properties", {}).items():
                    assert schema.keys() & {"type", "$ref", "oneOf"}, (path, name)


def test_every_action_that_can_be_armed_over_http_has_a_schema_of_its_arguments() -> None:
    schemas = openapi(ENDPOINTS)["components"]["schemas"]
    assert schemas["FaultAction"]["properties"].keys() == ACTIONS.keys() - {"intercept"}
    status = schemas["FaultStatus"]
    assert status["required"] == ["code"]
    assert status["properties"]["code"]["type"] == "integer"
