"""What --runtime-config may say, in kube-apiserver's words."""

from __future__ import annotations

import pytest

from fakekube.apimachinery import data
from fakekube.apiserver.registry.served_apis import RuntimeConfigError, parse_runtime_config


def test_the_value_of_a_name_of_many_versions_is_true_or_false() -> None:
    with pytest.raises(RuntimeConfigError, match=r"\Ainvalid value api/beta=yes\Z"):
        parse_runtime_config({"api/beta": "yes"}, data.minor("1.37"))
