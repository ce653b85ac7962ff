from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fakekube.apimachinery.schema.trees import deep_copy

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.just("\udc80"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def parts(value: Any) -> list[Any]:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    below = [part for member in members for part in parts(member)]
    return [value, *below] if isinstance(value, (dict, list)) else below


@given(VALUES)
def test_copied_is_a_deep_copy(value: Any) -> None:
    copy = deep_copy(value)
    assert repr(copy) == repr(value)
    assert not {id(part) for part in parts(copy)} & {id(part) for part in parts(value)}
