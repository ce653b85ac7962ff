"""What --runtime-config may say, in kube-apiserver's words."""

from __future__ import annotations

import pytest

from fakekube.apimachinery import data
from fakekube.apiserver.registry.served_apis import RuntimeConfigError, parse_runtime_config


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"api/beta": "yes"}, "invalid value api/beta=yes"),
        ({"api/all": "false"}, "invalid runtime-config with only api/all=false"),
        ({"x": "true"}, "runtime-config invalid key x"),
        ({"v9": "true"}, "runtime-config invalid key v9"),
        ({"a/b/c/d": "true"}, "runtime-config invalid key a/b/c/d"),
        ({"nope/v1": "true", "aaa/v2": "true", "apps/v1": "true"}, "unknown api groups aaa/v2,nope/v1"),
        ({"apps/v9": "true"}, "group version apps/v9 that has not been registered"),
        ({"batch/v1": "x"}, 'invalid value of batch/v1: x, err: strconv.ParseBool: parsing "x": invalid syntax'),
        (
            {"apps/v1/Deployments": "true"},
            'invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not "Deployments"',
        ),
    ],
)
def test_runtime_configs_are_refused_in_the_words_of_the_server(given: dict[str, str], problem: str) -> None:
    """The texts are those with which kube-apiserver 1.37 does not start."""
    with pytest.raises(RuntimeConfigError) as caught:
        parse_runtime_config(given, data.minor("1.37"))
    assert str(caught.value) == problem


def test_the_core_group_has_two_names() -> None:
    for name in ("v1", "/v1", "api/v1"):
        assert parse_runtime_config({name: "false"}, data.minor("1.37")).versions == frozenset({("", "v1", False)})
