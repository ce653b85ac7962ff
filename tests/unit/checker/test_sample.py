"""Samples and their copies."""

from __future__ import annotations

from fakekube.checker.sample import Sample

SAMPLE = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: shop, labels: {app: web}, annotations: {of: password}}
data: {user: YWxpY2U=}
stringData: {pin: "1234"}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: web, namespace: shop, uid: x, resourceVersion: "7"}
spec:
  secretName: password
  peers: [password, shop/web, web.shop.svc, other]
  selector: {app: web}
status: {phase: Ready}
"""


def test_definitions_and_used_namespaces_are_prerequisites() -> None:
    sample = Sample.read(SAMPLE)
    assert [obj["kind"] for obj in sample.prerequisites] == ["CustomResourceDefinition", "Namespace"]
    assert [obj["kind"] for obj in sample.stimuli] == ["Secret", "Widget"]


def test_a_namespace_that_nothing_is_in_is_also_a_stimulus_and_a_missing_one_is_made() -> None:
    text = "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: b}}"
    sample = Sample.read(text)
    assert [obj["metadata"]["name"] for obj in sample.prerequisites] == ["a", "b"]
    assert [obj["kind"] for obj in sample.stimuli] == ["Namespace", "Pod"]
    alone = Sample.read("{apiVersion: v1, kind: Namespace, metadata: {name: a}}")
    assert (list(alone.prerequisites), [obj["kind"] for obj in alone.stimuli]) == ([], ["Namespace"])


def test_a_copy_refers_to_copies_and_keeps_what_selects() -> None:
    secret, widget = Sample.read(SAMPLE).copies("t0k3n")
    assert secret["metadata"] == {
        "name": "password-t0k3n",
        "namespace": "shop",
        "labels": {"app": "web"},
        "annotations": {"of": "password-t0k3n"},
    }
    assert {name: part for name, part in secret.items() if name.lower().endswith("data")} == {
        "metadata": secret["metadata"],
        "data": {"user": "YWxpY2U=", "pin": "MTIzNA=="},
    }
    assert widget["metadata"] == {"name": "web-t0k3n", "namespace": "shop"}
    assert widget["spec"] == {
        "secretName": "password-t0k3n",
        "peers": ["password-t0k3n", "shop/web-t0k3n", "web-t0k3n.shop.svc", "other"],
        "selector": {"app": "web"},
    }
    assert "status" not in widget


def test_long_names_stay_within_their_limit() -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n" * 63}}
    (copy,) = Sample.read(obj).copies("t0k3n")
    assert len(copy["metadata"]["name"]) == 63
    assert copy["metadata"]["name"].endswith("-t0k3n")


def test_a_qualified_name_that_ends_with_the_name_of_an_object_is_no_reference() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web"},
        "data": {"signer": "example.com/web", "of": "shop/web"},
    }
    (copy,) = Sample.read(obj).copies("t0k3n")
    assert copy["data"] == {"signer": "example.com/web", "of": "shop/web-t0k3n"}
