"""Kinds that are served in more than one form: nothing is lost on the way to storage and back."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apis import events
from fakekube.apis.autoscaling import v1_conversion

WORDS = st.text('abcxyz<&"é', min_size=1, max_size=6)
NUMBERS = st.integers(1, 100)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


TIMES = st.just("2026-01-02T03:04:05.000006Z")

NEW_EVENTS = st.fixed_dictionaries(
    {"metadata": some(name=WORDS), "eventTime": TIMES},
    optional={
        "series": some(count=NUMBERS, lastObservedTime=TIMES), "reportingController": WORDS, "reportingInstance": WORDS,
        "action": WORDS, "reason": WORDS, "regarding": some(kind=WORDS, name=WORDS), "related": some(kind=WORDS), "note": WORDS,
        "type": WORDS, "deprecatedSource": some(component=WORDS), "deprecatedFirstTimestamp": TIMES,
        "deprecatedLastTimestamp": TIMES, "deprecatedCount": NUMBERS,
    },
)  # fmt: skip


@given(NEW_EVENTS)
def test_event_conversion_round_trip(event: dict[str, Any]) -> None:
    stored = events.to_storage(copy.deepcopy(event))
    assert not {"note", "regarding", "deprecatedCount", "reportingController"} & stored.keys()
    assert {key: value for key, value in events.from_storage(stored).items() if value} == {
        key: value for key, value in event.items() if value
    }


def test_events_k8s_io_fields_are_converted_to_core_fields() -> None:
    stored = events.to_storage(
        {"metadata": {}, "note": "n", "regarding": {"name": "p"}, "reportingController": "c", "deprecatedCount": 2}
    )
    assert stored == {"metadata": {}, "message": "n", "involvedObject": {"name": "p"}, "reportingComponent": "c", "count": 2}


METRICS = st.one_of(
    st.builds(
        lambda name, value: {"type": "Resource", "resource": {"name": name, "target": {"type": "Utilization", "averageUtilization": value}}},
        st.sampled_from(["memory", "disk"]), NUMBERS,
    ),
    st.builds(
        lambda name, value: {"type": "Pods", "pods": {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": str(value)}}},
        WORDS, NUMBERS,
    ),
    st.builds(
        lambda name, value: {"type": "External", "external": {"metric": {"name": name}, "target": {"type": "Value", "value": str(value)}}},
        WORDS, NUMBERS,
    ),
    st.builds(
        lambda name, value: {
            "type": "ContainerResource",
            "containerResource": {"name": "memory", "container": name, "target": {"type": "AverageValue", "averageValue": str(value)}},
        },
        WORDS, NUMBERS,
    ),
)  # fmt: skip

CPU = st.builds(
    lambda value: {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": value}},
    },
    NUMBERS,
)

POLICY = st.fixed_dictionaries({"type": st.sampled_from(["Pods", "Percent"]), "value": NUMBERS, "periodSeconds": NUMBERS})
RULES = some(
    stabilizationWindowSeconds=NUMBERS,
    selectPolicy=st.sampled_from(["Max", "Min"]),
    policies=st.lists(POLICY, min_size=1, max_size=2),
)

AUTOSCALERS = st.builds(
    lambda cpu, metrics, behavior, labels: {
        "metadata": {"name": "a", "annotations": labels},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3, "metrics": [*cpu, *metrics],
            **({"behavior": behavior} if behavior else {}),
        },
    },
    st.lists(CPU, max_size=1), st.lists(METRICS, max_size=3), some(scaleUp=RULES), st.dictionaries(WORDS, WORDS, max_size=2),
)  # fmt: skip


def in_order(metrics: Any) -> list[str]:
    """v1 puts the CPU first; the order of metrics says nothing."""
    return sorted(json.dumps(metric, sort_keys=True) for metric in metrics)


@given(AUTOSCALERS)
def test_autoscaler_v1_conversion_round_trip(autoscaler: dict[str, Any]) -> None:
    old_form = v1_conversion.from_storage(copy.deepcopy(autoscaler))
    assert "metrics" not in old_form["spec"]
    back = v1_conversion.to_storage(copy.deepcopy(old_form))
    assert in_order(back["spec"].get("metrics") or ()) == in_order(autoscaler["spec"]["metrics"])
    assert back["metadata"].get("annotations", {}) == autoscaler["metadata"]["annotations"]
    for side, rules in autoscaler["spec"].get("behavior", {}).items():
        kept = back["spec"]["behavior"][side]
        assert {field: kept[field] for field in rules} == rules


@pytest.mark.parametrize("noise", ["not json", "[1]", '{"a":', "null", '[{"type":"Pods"}]', '"text"'])
@pytest.mark.parametrize(
    "key", [v1_conversion.METRICS, v1_conversion.CURRENT_METRICS, v1_conversion.BEHAVIOR, v1_conversion.CONDITIONS]
)
def test_malformed_conversion_annotations_are_ignored(key: str, noise: str) -> None:
    obj = {"metadata": {"annotations": {key: noise}}, "spec": {"scaleTargetRef": {}, "maxReplicas": 1}, "status": {}}
    assert v1_conversion.to_storage(obj)["spec"]["maxReplicas"] == 1
