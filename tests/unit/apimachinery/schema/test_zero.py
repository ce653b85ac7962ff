from __future__ import annotations

from typing import Any

import pytest

from fakekube.apimachinery.schema import builtin
from fakekube.apimachinery.schema.printing import zero


@pytest.mark.parametrize(
    ("group", "kind", "empty"),
    [
        ("", "ConfigMap", {"metadata": {}}),
        ("", "Pod", {"metadata": {}, "spec": {"containers": None}, "status": {}}),
        (
            "apps",
            "Deployment",
            {
                "metadata": {},
                "spec": {"selector": None, "template": {"metadata": {}, "spec": {"containers": None}}, "strategy": {}},
                "status": {},
            },
        ),
        ("rbac.authorization.k8s.io", "Role", {"metadata": {}, "rules": None}),
        ("scheduling.k8s.io", "PriorityClass", {"metadata": {}, "value": 0}),
    ],
)
def test_zero_objects_of_kinds(group: str, kind: str, empty: Any) -> None:
    type = builtin.kind_type(group, "v1", kind)
    assert type is not None
    assert zero(type) == empty
