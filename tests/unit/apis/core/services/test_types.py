"""What a change of type clears of a Service (dropTypeDependentFields)."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apis.core.services.types import drop_type_dependent_fields

OLD = {"type": "ClusterIP", "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"]}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"]}, {}),
        ({"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.8"]}, {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.8"]}),
        ({"clusterIP": "10.96.0.8", "clusterIPs": ["10.96.0.7"]}, {"clusterIP": "10.96.0.8", "clusterIPs": ["10.96.0.7"]}),
    ],
)
def test_addresses_are_cleared_only_if_the_client_changed_neither_field(sent: dict[str, Any], kept: dict[str, Any]) -> None:
    new: dict[str, Any] = {"spec": {"type": "ExternalName", "externalName": "example.com", **sent}}
    drop_type_dependent_fields(new, {"spec": dict(OLD)})
    assert {name: new["spec"][name] for name in ("clusterIP", "clusterIPs") if name in new["spec"]} == kept
