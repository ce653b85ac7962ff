"""The warning about Indexed Jobs of very many pods (WarningsForJobSpec)."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube.apis.batch.job_validation import job_spec_warnings

MANY = {"completions": 100_001, "parallelism": 10_001}
WARNING = (
    "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
    "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"completionMode": "Indexed", **MANY}, [WARNING]),
        ({"completionMode": "Indexed", **MANY, "completions": 100_000}, []),
        ({"completionMode": "Indexed", **MANY, "parallelism": 10_000}, []),
        ({"completionMode": "NonIndexed", **MANY}, []),
        ({"completionMode": "Indexed", "completions": 5, "parallelism": 2}, []),
    ],
)
def test_only_indexed_jobs_with_many_completions_and_pods_get_a_warning(spec: dict[str, Any], expected: list[str]) -> None:
    assert job_spec_warnings(spec, "spec") == expected


def test_the_warnings_of_the_template_are_those_of_the_job() -> None:
    template = {"spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}, "containers": []}}
    assert job_spec_warnings({"template": template}, "spec") == [
        'spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'
    ]
