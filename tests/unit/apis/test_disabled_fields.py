"""Fields of gates that are off are dropped, unless the old object has them; see minors_open for recorded answers."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.features import emulation
from fakekube.apis import disabled_fields
from fakekube.apis.disabled_fields import FIELDS, drop_disabled_fields, drop_disabled_pod_fields

OFF = emulation("1.36", {"MaxUnavailableStatefulSet": False})
ON = emulation("1.36", {"MaxUnavailableStatefulSet": True})


def rolling(value: int | None) -> dict[str, Any]:
    update = {} if value is None else {"maxUnavailable": value}
    return {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1, **update}}}}


@pytest.mark.parametrize(
    ("emulated", "old", "kept"),
    [(OFF, None, False), (ON, None, True), (OFF, rolling(None), False), (OFF, rolling(2), True)],
)  # fmt: skip
def test_field_is_kept_if_its_gate_is_on_or_the_old_object_has_it(emulated: Any, old: Any, kept: bool) -> None:
    new = rolling(1)
    drop_disabled_fields(emulated, "apps", "statefulsets", new, old)
    assert new == rolling(1 if kept else None)


def test_paths_through_lists_maps_and_alternatives() -> None:
    device = {"name": "d", "attributes": {"a": {"ints": [1], "int": 1}}, "capacity": {"c": {"value": "1", "requestPolicy": {}}}}
    made = {"spec": {"devices": [device]}}
    drop_disabled_fields(emulation("1.35"), "resource.k8s.io", "resourceslices", made, None)
    assert made == {"spec": {"devices": [{"name": "d", "attributes": {"a": {"int": 1}}, "capacity": {"c": {"value": "1"}}}]}}


def test_lifecycle_is_removed_with_its_last_member() -> None:
    spec: dict[str, Any] = {
        "containers": [
            {"lifecycle": {"stopSignal": "SIGHUP"}},
            {"lifecycle": {"stopSignal": "SIGHUP", "preStop": {}}},
            {"lifecycle": {}},
        ]
    }
    drop_disabled_pod_fields(emulation("1.36"), spec, None)
    assert spec == {"containers": [{}, {"lifecycle": {"preStop": {}}}, {"lifecycle": {}}]}


def test_image_volumes_go_with_their_mounts() -> None:
    spec: dict[str, Any] = {
        "volumes": [{"name": "a", "image": {"reference": "x"}}, {"name": "b", "emptyDir": {}}],
        "containers": [{"volumeMounts": [{"name": "a"}, {"name": "b"}]}],
    }
    drop_disabled_pod_fields(emulation("1.34"), spec, None)
    assert spec == {"volumes": [{"name": "b", "emptyDir": {}}], "containers": [{"volumeMounts": [{"name": "b"}]}]}


def test_every_row_names_a_gate_of_a_minor() -> None:
    known = {gate for minor in ("1.33", "1.34", "1.35", "1.36", "1.37") for gate in emulation(minor).gates}
    rows = [row for rows in FIELDS.values() for row in rows] + [*disabled_fields.POD_SPEC, *disabled_fields.POD_STATUS]
    assert {row.gate for row in rows} <= known
