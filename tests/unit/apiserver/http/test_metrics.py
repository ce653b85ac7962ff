"""Request metrics in the text format of Prometheus."""

from __future__ import annotations

from fakekube.apimachinery.features import emulation
from fakekube.apiserver.endpoints.request import Query
from fakekube.apiserver.http.metrics import Metrics, labels_of
from fakekube.apiserver.http.request_info import request_info

PODS = labels_of(request_info("GET", "/api/v1/namespaces/a/pods", Query()), dry_run=False)


def _text(metrics: Metrics) -> str:
    return metrics.response().body.decode()  # type: ignore[union-attr]


def test_requests_are_counted_by_labels() -> None:
    metrics = Metrics()
    metrics.count_response(PODS, 200, 0.01)
    metrics.count_response(PODS, 200, 70)
    metrics.count_response(PODS, 404, 0.01)
    text = _text(metrics)
    labels = 'component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"'
    assert f'apiserver_request_total{{code="200",{labels}}} 2\n' in text
    assert f'apiserver_request_total{{code="404",{labels}}} 1\n' in text
    name = "apiserver_request_duration_seconds"
    assert f'{name}_bucket{{{labels},le="0.005"}} 0\n' in text
    assert f'{name}_bucket{{{labels},le="0.025"}} 2\n' in text
    assert f'{name}_bucket{{{labels},le="60"}} 2\n' in text
    assert f'{name}_bucket{{{labels},le="+Inf"}} 3\n' in text
    assert f"{name}_count{{{labels}}} 3\n" in text


def test_every_metric_has_help_and_type_once() -> None:
    metrics = Metrics(lambda: [("", "pods", 3), ("apps", "deployments", 0)])
    metrics.count_response(PODS, 200, 0.01)
    lines = _text(metrics).splitlines()
    helped = [line.split()[2] for line in lines if line.startswith("# HELP")]
    assert len(helped) == len(set(helped))
    for line in lines:
        if not line.startswith("#"):
            name = line.partition("{")[0].partition(" ")[0]
            assert any(name == known or name.startswith(f"{known}_") for known in helped), line
            float(line.rpartition(" ")[2])
    assert 'apiserver_resource_objects{group="",resource="pods"} 3' in lines
    assert 'apiserver_storage_objects{resource="deployments.apps"} 0' in lines


def test_label_values_are_escaped() -> None:
    metrics = Metrics()
    metrics.count_response(labels_of(request_info("GET", '/a"b\\\n', Query()), dry_run=False), 404, 0)
    assert 'subresource="/a\\"b\\\\\\n"' in _text(metrics)


def test_number_of_label_sets_is_limited() -> None:
    metrics = Metrics()
    for number in range(3000):
        metrics.count_response(labels_of(request_info("GET", f"/{number}", Query()), dry_run=False), 404, 0)
    text = _text(metrics)
    assert text.count("apiserver_request_total{") < 2500
    assert 'verb="other"' in text


def test_reset_clears_the_counters() -> None:
    metrics = Metrics()
    metrics.count_response(PODS, 200, 0.01)
    metrics.reset()
    assert "apiserver_request_total" not in _text(metrics)


def test_feature_gate_metrics() -> None:
    text = _text(Metrics(emulation=emulation(gates={"CBORServingAndStorage": True})))
    assert 'kubernetes_feature_enabled{name="CBORServingAndStorage",stage="ALPHA"} 1\n' in text
    assert 'kubernetes_feature_enabled{name="AllAlpha",stage="ALPHA"} 0\n' in text
    assert 'kubernetes_feature_enabled{name="ClusterTrustBundle",stage=""} 1\n' in text


def test_unavailable_apiservice_metrics() -> None:
    text = _text(Metrics(unavailable=lambda: {"v1.apps": False, "v1.a.example.com": True}))
    assert 'aggregator_unavailable_apiservice{name="v1.a.example.com"} 1\n' in text
    assert 'aggregator_unavailable_apiservice{name="v1.apps"} 0\n' in text
