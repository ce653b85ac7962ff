"""Values for the tests of all formats."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.unit.apimachinery.schema.values import CHARACTERS

TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=20),
    st.text("ab :-[]{},&*!|>'\"%@`#?~<\n\t01.\\", max_size=12),
    st.lists(st.sampled_from(["word", "it's", "#", "-", "", "é"]), min_size=15, max_size=40).map(" ".join),
    st.sampled_from(["yes", "No", "~", "null", "1e3", "0x1f", "1_000", "12:30", "2001-01-01", "<&>", ""]),
)

#: What every format can say, and Go holds without a type.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer()),
    TEXTS,
)
#: go-yaml writes `<<` as it is, and reads a merge.
_KEYS = st.text(CHARACTERS, max_size=8).filter(lambda key: key != "<<")


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4)


VALUES: st.SearchStrategy[Any] = st.recursive(SCALARS, _containers, max_leaves=12)
OBJECTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(_KEYS, VALUES, max_size=5)

POD: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"b": "2", "a": "1"}, "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
        "containers": [
            {
                "name": "c",
                "image": "i",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 10},
                "resources": {"limits": {"cpu": "500m"}},
            }
        ],
        "terminationGracePeriodSeconds": 30,
    },
    "status": {"phase": "Pending"},
}
