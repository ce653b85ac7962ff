"""Hashes of pod templates and revisions: the values that the real controllers gave."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube import Cluster
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.schema.trees import in_order
from fakekube.base.chance import safe_encode_string
from fakekube.controllers.hash import compute_hash, fnv1, fnv1a, hash_controller_revision, print_pod_template
from fakekube.controllers.history import template_patch


def template(name: str, image: str, **spec: Any) -> dict[str, Any]:
    """A pod template with its defaults, as it is stored."""
    container = {
        "name": "c",
        "image": image,
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            **spec,
        },
    }


@pytest.mark.parametrize(
    ("name", "image", "hash_"),
    [
        ("web", "app:1", "68b4fdb489"),
        ("web", "app:2", "7b9f957f94"),
        ("agent", "app:1", "659745577b"),
        ("agent", "app:2", "6fc5dbf5c5"),
        ("manual", "app:1", "99f49b66f"),
        ("surge", "app:2", "75db8cb5c4"),
    ],
)
def test_a_template_has_the_real_hash(name: str, image: str, hash_: str) -> None:
    assert compute_hash(template(name, image), None, "1.36") == hash_


def test_collision_count_absent_and_zero_differ() -> None:
    hashes = {compute_hash(template("web", "app:1"), count, "1.36") for count in (None, 0, 1)}
    assert len(hashes) == 3


#: What the scenario `templates_hash` of the comparison with the real controllers makes, and the names that they gave.
RICH = {
    "metadata": {"labels": {"app": "rich"}, "annotations": {"a": "b"}},
    "spec": {
        "containers": [
            {"name": "c", "image": "registry.example/app:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
        ],
        "terminationGracePeriodSeconds": 5,
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "x"}}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "priorityClassName": "system-node-critical",
    },
}
MANY = {
    "metadata": {"labels": {"app": "many"}},
    "spec": {
        "initContainers": [{"name": "i", "image": "init", "command": ["sh", "-c", "true"], "env": [{"name": "A", "value": "1"}]}],
        "containers": [
            {
                "name": "c",
                "image": "x",
                "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
                "env": [{"name": "P", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "securityContext": {"runAsUser": 1},
            },
            {"name": "d", "image": "y", "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}},
        ],
    },
}


@pytest.mark.parametrize(("name", "written", "hash_"), [("rich", RICH, "544df4848"), ("many", MANY, "85cb46b98c")])
def test_defaults_quantities_pointers_and_probes_count(name: str, written: dict[str, Any], hash_: str) -> None:
    with Cluster(version="1.36") as cluster:
        stored = cluster.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": written},
            }
        )
    assert compute_hash(stored["spec"]["template"], None, "1.36") == hash_


@pytest.mark.parametrize(
    ("quantity", "printed"),
    [
        ("100m", "{value:(int64)100 scale:(resource.Scale)-3} d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string)100m"),
        ("64Mi", "{value:(int64)67108864 scale:(resource.Scale)0} d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string) "),
        ("1Ei", "{Dec:(*inf.Dec){unscaled:(big.Int){neg:(bool)false abs:(big.nat)[0 62500000]} scale:(inf.Scale)9}} s:(string) "),
        ("10Ei", "{unscaled:(big.Int){neg:(bool)false abs:(big.nat)[9223372036854775807]} scale:(inf.Scale)0}} s:(string) "),
        ("-1250m", "{value:(int64)-1250 scale:(resource.Scale)-3}"),
        ("0", "{value:(int64)0 scale:(resource.Scale)0} d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string)0 "),
    ],
)
def test_a_quantity_is_printed_as_parsed_by_go(quantity: str, printed: str) -> None:
    assert printed in print_pod_template(template("x", "x", overhead={"cpu": quantity}))


def test_empty_slices_equal_nil_but_pointers_to_empty_structs_do_not() -> None:
    bare = template("x", "x")
    assert print_pod_template(bare) == print_pod_template(template("x", "x", volumes=[], nodeSelector={}))
    assert print_pod_template(bare) != print_pod_template({**bare, "spec": {**bare["spec"], "securityContext": None}})


@given(st.permutations(list(template("x", "x", nodeSelector={"b": "1", "a": "2"})["spec"].items())))
def test_the_order_of_keys_does_not_matter(items: list[tuple[str, Any]]) -> None:
    same = template("x", "x", nodeSelector={"a": "2", "b": "1"})
    assert compute_hash({**same, "spec": dict(items)}, None, "1.36") == compute_hash(same, None, "1.36")


@pytest.mark.parametrize(("image", "hash_"), [("app:1", "fbfc8b6b8")])
def test_a_revision_of_a_stateful_set_has_the_real_hash(image: str, hash_: str) -> None:
    data = json.dumps(in_order(template_patch(template("db", image))))
    assert hash_controller_revision(data, 0) == hash_
    assert hash_controller_revision(data, None) != hash_


def test_fnv_and_safe_encode_string() -> None:
    assert fnv1(b"") == fnv1a(b"") == 2166136261
    assert (fnv1(b"foobar"), fnv1a(b"foobar")) == (0x31F0B262, 0xBF9CF968)
    assert safe_encode_string("0123456789") == "456789bcdf"
