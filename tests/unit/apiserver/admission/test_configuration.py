"""The admission control configuration file, and the plugins that read it."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apiserver.auth.options import OptionError
from fakekube.controllers.client import ApiError

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def file_for(folder: Path, plugin: str, configuration: Any) -> Path:
    """A file that says something to one plugin."""
    entry = {"name": plugin, "configuration": configuration}
    text = json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [entry]})
    (folder / "admission.yaml").write_text(text)
    return folder / "admission.yaml"


def cluster(file: Path, *plugins: str) -> Cluster:
    return Cluster(profile="apiserver", enable_admission_plugins=plugins, admission_control_config_file=file)


def refusal(made: Cluster, obj: dict[str, Any], code: int = 403, namespace: str | None = None) -> str:
    with pytest.raises(ApiError) as caught:
        made.create(obj, namespace=namespace)
    assert caught.value.code == code
    return str(caught.value)


def problem(file: Path, *plugins: str) -> str:
    with pytest.raises(OptionError) as caught:
        cluster(file, *plugins)
    return str(caught.value)


def test_invalid_admission_configuration_files(tmp_path: Path) -> None:
    missing, other = tmp_path / "none", tmp_path / "other"
    assert problem(missing) == (
        f'unable to read admission control configuration from "{missing}" [open {missing}: no such file or directory]'
    )
    other.write_text("apiVersion: v1\nkind: Pod\n")
    assert problem(other) == 'no kind "Pod" is registered for version "v1"'
    assert problem(tmp_path / "x", "EventRateLimit").startswith("unable to read")


def test_plugin_with_missing_configuration(tmp_path: Path) -> None:
    file = file_for(tmp_path, "PodSecurity", {})
    assert problem(file, "EventRateLimit") == (
        'couldn\'t init admission plugin "EventRateLimit": limits: Invalid value: null: must not be empty'
    )
    assert problem(file, "ImagePolicyWebhook") == 'couldn\'t init admission plugin "ImagePolicyWebhook": no config specified'


def test_plugin_configuration_in_a_separate_file(tmp_path: Path) -> None:
    (tmp_path / "selectors.yaml").write_text("podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: a=b, default: a=b}")
    entry = {"name": "PodNodeSelector", "path": "selectors.yaml"}
    main = tmp_path / "main.yaml"
    main.write_text(
        json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [entry]})
    )
    for file in (main, tmp_path / "selectors.yaml"):
        made = cluster(file, "PodNodeSelector")
        asked = {**POD, "spec": {**POD["spec"], "nodeSelector": {"z": "y"}}}  # type: ignore[dict-item]
        assert refusal(made, asked).endswith("pod node label selector labels conflict with its namespace whitelist")
        assert made.create(POD)["spec"]["nodeSelector"] == {"a": "b"}


def test_pod_security_defaults_and_exemptions(tmp_path: Path) -> None:
    configuration = {
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": "baseline", "enforce-version": "latest"},
        "exemptions": {"usernames": ["alice"], "namespaces": ["kube-system"], "runtimeClasses": ["safe"]},
    }
    made = cluster(file_for(tmp_path, "PodSecurity", configuration))
    pod = {**POD, "spec": {**POD["spec"], "hostNetwork": True}}  # type: ignore[dict-item]
    assert 'violates PodSecurity "baseline:latest"' in refusal(made, pod)
    made.create(pod, namespace="kube-system")
    made.as_user("alice", groups=["system:masters"]).create(pod)
    configuration["defaults"] = {"enforce": "odd", "warn-version": "x"}
    assert problem(file_for(tmp_path, "PodSecurity", configuration)) == (
        'couldn\'t init admission plugin "PodSecurity": [defaults.enforce: Invalid value: "odd": must be one of privileged, '
        'baseline, restricted, defaults.warn-version: Invalid value: "x": must be "latest" or "v1.x"]'
    )


def test_event_rate_limits(tmp_path: Path) -> None:
    limits = [{"type": "Namespace", "qps": 1, "burst": 2, "cacheSize": 10}, {"type": "SourceAndObject", "qps": 1, "burst": 1}]
    made = cluster(file_for(tmp_path, "EventRateLimit", {"limits": limits}), "EventRateLimit")
    made.clock.hold()

    def event(name: str, involved: str) -> dict[str, Any]:
        reference = {"kind": "Pod", "name": involved, "namespace": "default"}
        return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": reference}

    made.create(event("a", "x"))
    assert refusal(made, event("b", "x"), 429) == "Too many requests: limit reached on type SourceAndObject for key Poddefaultx"
    assert refusal(made, event("c", "y"), 429) == "Too many requests: limit reached on type Namespace for key default"
    made.clock.advance(seconds=1)
    made.create(event("d", "x"))
    broken: dict[str, Any] = {"limits": [{"type": "Namespace", "qps": 1, "burst": 1, "cacheSize": -1}]}
    assert problem(file_for(tmp_path, "EventRateLimit", broken), "EventRateLimit").endswith(
        "limits[0].cacheSize: Invalid value: -1: must not be negative"
    )
    broken = {"limits": [{"type": "Server", "qps": 0, "burst": -1}]}
    assert problem(file_for(tmp_path, "EventRateLimit", broken), "EventRateLimit").endswith(
        "[limits[0].burst: Invalid value: -1: must be positive, limits[0].qps: Invalid value: 0: must be positive]"
    )


# ---------------------------------------------------------------- images


class Backend:
    """Allows the images whose name is `good`."""

    def __init__(self, folder: Path) -> None:
        backend = self
        self.seen: list[dict[str, Any]] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                backend.seen.append(review)
                allowed = all(container["image"] == "good" for container in review["spec"]["containers"])
                status = {"allowed": allowed, **({} if allowed else {"reason": "not good"})}
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps({**review, "status": status}).encode())

            def log_message(self, *_: Any) -> None:
                pass

        certificate = Cluster(profile="apiserver").services.certificate("images/policy")
        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = certificate.context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,))
        self._thread.start()
        server = {"server": f"https://127.0.0.1:{self._server.server_address[1]}/policy", "certificate-authority": "ca.crt"}
        (folder / "ca.crt").write_bytes(base64.b64decode(certificate.ca_bundle))
        (folder / "images.yaml").write_text(
            json.dumps(
                {
                    "clusters": [{"name": "c", "cluster": server}],
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
                    "current-context": "c",
                }
            )
        )

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    made = Backend(tmp_path)
    yield made
    made.close()


def test_image_policy_webhook(tmp_path: Path, backend: Backend) -> None:
    said = {"imagePolicy": {"kubeConfigFile": str(tmp_path / "images.yaml"), "allowTTL": 60}}
    made = cluster(file_for(tmp_path, "ImagePolicyWebhook", said), "ImagePolicyWebhook")
    assert refusal(made, POD) == ('pods "p" is forbidden: image policy webhook backend denied one or more images: not good')
    metadata = {"name": "p", "annotations": {"break-glass.image-policy.k8s.io/ticket": "1", "other": "x"}}
    good = {**POD, "metadata": metadata, "spec": {"containers": [{"name": "c", "image": "good"}]}}
    made.create(good)
    assert backend.seen[-1]["spec"] == {
        "containers": [{"image": "good"}],
        "annotations": {"break-glass.image-policy.k8s.io/ticket": "1"},
        "namespace": "default",
    }
    made.delete("pods", "p", gracePeriodSeconds=0)
    asked = len(backend.seen)
    made.create(good)
    assert len(backend.seen) == asked, "the answer is kept"
    made.clock.hold()
    for number in range(1, 4):  # the second apply changes nothing, and the third is known to change nothing
        made.clock.advance(seconds=61)
        made.apply(good)
        assert len(backend.seen) == asked + number


@pytest.mark.parametrize("default_allow", [True, False])
def test_unreachable_image_policy_backend_follows_default_allow(tmp_path: Path, backend: Backend, default_allow: bool) -> None:
    backend.close()
    said = {"imagePolicy": {"kubeConfigFile": str(tmp_path / "images.yaml"), "defaultAllow": default_allow}}
    made = cluster(file_for(tmp_path, "ImagePolicyWebhook", said), "ImagePolicyWebhook")
    if default_allow:
        made.create(POD)
    else:
        assert refusal(made, POD).endswith("connect: connection refused")


@pytest.mark.parametrize(("seconds", "printed"), [(5000, "1h23m20s"), (1801, "30m1s")])
def test_ttl_of_image_policy_answers_is_bounded(tmp_path: Path, seconds: int, printed: str) -> None:
    said = {"imagePolicy": {"kubeConfigFile": "x", "allowTTL": seconds, "denyTTL": 50, "retryBackoff": 500}}
    assert problem(file_for(tmp_path, "ImagePolicyWebhook", said), "ImagePolicyWebhook") == (
        f'couldn\'t init admission plugin "ImagePolicyWebhook": valid value is between 1s and 30m0s, got {printed}'
    )
