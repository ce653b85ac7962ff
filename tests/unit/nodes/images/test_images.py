"""Images: which programs run, how they end their containers, what they serve; images that do not exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.nodes.images.image import Image, Images
from fakekube.nodes.runtime.behaviour import Context

AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.clock.hold()
        yield made


def pod(name: str, image: str, *args: str, spec: dict[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    one = {"name": "c", "image": image, **({"args": list(args)} if args else {}), **container}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [one], **(spec or {})}}


def status(cluster: Cluster, name: str) -> dict[str, Any]:
    cluster.settle()
    found: dict[str, Any] = cluster.get("pods", name)["status"]
    return found


@pytest.mark.parametrize(
    ("container", "known"),
    [
        ({"image": "busybox", "command": ["sleep", "1"]}, True),
        ({"image": "docker.io/library/busybox:1.37@sha256:0", "command": ["/bin/sleep", "1"]}, True),
        ({"image": "busybox"}, False),
        ({"image": "busybox", "command": ["curl"]}, False),
        ({"image": "alpine", "command": ["curl"]}, True),
        ({"image": "app:1", "command": ["sleep", "1"]}, False),
        ({"image": "nginx"}, False),
        ({"image": "nginx", "readinessProbe": {"tcpSocket": {"port": 80}}}, True),
        ({"image": AGNHOST}, True),
        ({"image": "registry.k8s.io/pause:3.10", "command": ["sleep", "1"]}, False),
    ],
)
def test_known_programs_of_known_images_decide(container: dict[str, Any], known: bool) -> None:
    assert Images().runs({"name": "c", **container}) is known


_CREATE = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
_INIT = _CREATE + "unable to start container process: error during container init: "


@pytest.mark.parametrize(
    ("container", "error"),
    [
        ({"image": "nginx", "command": ["server", "-x"]}, 'exec: "server": executable file not found in $PATH'),
        ({"image": "nginx:1.29", "command": ["/app/run"]}, 'exec: "/app/run": stat /app/run: no such file or directory'),
        ({"image": "busybox", "args": ["bash"]}, 'exec: "bash": executable file not found in $PATH'),
        ({"image": "registry.k8s.io/pause:3.10", "command": ["sh"]}, 'exec: "sh": executable file not found in $PATH'),
        ({"image": "busybox", "command": ["chroot"]}, ""),
        ({"image": "debian", "command": ["/usr/bin/apt-get"]}, ""),
        ({"image": "debian", "command": ["/opt/apt-get"]}, 'exec: "/opt/apt-get": stat /opt/apt-get: no such file or directory'),
        ({"image": "app", "command": ["server"]}, ""),
        ({"image": "nginx"}, ""),
        ({"image": "busybox", "command": ["/v/run"], "volumeMounts": [{"name": "v", "mountPath": "/v/"}]}, ""),
        ({"image": "busybox", "command": ["./run"], "workingDir": "/v", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}, ""),
        ({"image": "busybox", "command": ["run"], "env": [{"name": "PATH", "value": "/v"}]}, ""),
        ({"image": "busybox", "command": ["$(RUN)"]}, ""),
    ],
)
def test_a_known_image_lacks_what_no_base_system_has(container: dict[str, Any], error: str) -> None:
    assert Images().find_start_error({"name": "c", **container}) == (f"{_INIT}{error}: unknown" if error else "")


def test_an_image_of_the_user_lacks_nothing_unless_it_is_complete() -> None:
    images, container = Images(), {"name": "c", "image": "me/app", "command": ["other"]}
    images["me/app"] = Image(programs={"app": lambda context: 0})
    assert images.find_start_error(container) == ""
    images["me/app"] = Image(programs={"app": lambda context: 0}, complete=True)
    assert images.find_start_error(container) == f'{_INIT}exec: "other": executable file not found in $PATH: unknown'


def test_a_container_without_its_program_is_started_again_and_again(cluster: Cluster) -> None:
    cluster.create(pod("p", "nginx", command=["server"]))
    (found,) = status(cluster, "p")["containerStatuses"]
    ended = found["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["startedAt"]) == (128, "StartError", "1970-01-01T00:00:00Z")
    assert ended["message"] == f'{_INIT}exec: "server": executable file not found in $PATH: unknown'
    assert (found["restartCount"], found["state"]["waiting"]["reason"]) == (1, "CrashLoopBackOff")
    cluster.clock.advance(seconds=11)
    (found,) = status(cluster, "p")["containerStatuses"]
    assert found["restartCount"] == 2
    reasons = [one["reason"] for one in cluster.list("events")]
    assert "Created" in reasons and "Failed" in reasons and "Started" not in reasons


def test_a_rule_may_give_a_container_its_program(cluster: Cluster) -> None:
    cluster.pods.on(name="p").exec(lambda context: 0, command="server")
    cluster.create(pod("p", "nginx", command=["server"]))
    (found,) = status(cluster, "p")["containerStatuses"]
    assert "running" in found["state"]


def test_a_pod_that_is_not_restarted_fails_without_its_program(cluster: Cluster) -> None:
    cluster.create(pod("p", "busybox", command=["/app/run"], spec={"restartPolicy": "Never"}))
    found = status(cluster, "p")
    assert found["phase"] == "Failed"
    assert found["containerStatuses"][0]["state"]["terminated"]["reason"] == "StartError"


@pytest.mark.parametrize(
    ("command", "known"),
    [
        (["false"], True),
        (["/bin/sleep", "5"], True),
        (["sleep", "infinity"], False),
        (["exit"], False),
        (["server", "--port=80"], False),
        (["sh", "-c", "exit 3"], True),
        (["/bin/bash", "-ec", "for i in 1 2; do echo $(date); sleep 1; done; exit $CODE"], True),
        (["sh", "-c", "stop() { echo $1; exit 4; }; trap stop TERM; exec sleep 3"], True),
        (["sh", "-c", "[ $MODE = fast ] || exit 1"], True),
        (["sh", "-c", "[ -f /config ] || exit 1"], False),
        (["sh", "-c", "read first < /config"], False),
        (["sh", "-c", "echo $(cat /config)"], False),
        (["sh", "-c", "migrate && echo done"], False),
        (["sh", "-c", "$RUN"], False),
        (["sh", "-c", "while true; do"], True),
        ([], False),
    ],
)
def test_commands_that_need_nothing_of_an_unknown_image_decide(command: list[str], known: bool) -> None:
    container = {"name": "c", "image": "example.com/app:1", "command": command}
    assert Images().runs(container, ends=True) is known
    assert not Images().runs(container)


def test_a_pod_of_an_unknown_image_that_is_meant_to_end_ends_with_its_command(cluster: Cluster) -> None:
    fails = ["sh", "-c", "echo no; exit 3"]
    cluster.create(pod("ends", "example.com/app", command=fails, spec={"restartPolicy": "Never"}))
    cluster.create(pod("runs", "example.com/app", command=fails))
    cluster.create(pod("serves", "example.com/app", command=["server"], spec={"restartPolicy": "Never"}))
    job = {
        "template": {"spec": {**pod("j", "example.com/app", command=fails)["spec"], "restartPolicy": "Never"}},
        "backoffLimit": 0,
    }
    cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": job})
    assert status(cluster, "ends")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert cluster.pods.get("ends").logs() == "no\n"
    assert [status(cluster, name)["phase"] for name in ("runs", "serves")] == ["Running", "Running"]
    assert cluster.get("jobs", "j")["status"]["failed"] == 1


def test_the_exit_code_of_a_command_decides(cluster: Cluster) -> None:
    cluster.create(pod("fails", "busybox", command=["sh", "-c", "echo out; exit 3"], spec={"restartPolicy": "Never"}))
    cluster.create(pod("runs", "busybox", command=["sleep", "60"], spec={"restartPolicy": "Never"}))
    found = status(cluster, "fails")
    assert (found["phase"], found["containerStatuses"][0]["state"]["terminated"]["exitCode"]) == ("Failed", 3)
    assert cluster.pods.get("fails").logs() == "out\n"
    assert status(cluster, "runs")["phase"] == "Running"
    cluster.clock.advance(seconds=61)
    assert status(cluster, "runs")["phase"] == "Succeeded"


def test_a_failing_init_container_keeps_the_others_from_starting(cluster: Cluster) -> None:
    made = pod("p", "busybox", command=["sleep", "60"])
    made["spec"]["initContainers"] = [{"name": "i", "image": "busybox", "command": ["false"]}]
    cluster.create(made)
    found = status(cluster, "p")
    assert (found["phase"], found["containerStatuses"][0]["state"]["waiting"]["reason"]) == ("Pending", "PodInitializing")
    assert found["initContainerStatuses"][0]["restartCount"] == 1


@pytest.mark.parametrize("image", ["registry.k8s.io/pause:3.10", "nginx"])
def test_an_image_that_runs_for_ever_does_so_in_a_job(cluster: Cluster, image: str) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": image}]}}
    cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}})
    cluster.settle()
    assert cluster.get("jobs", "j")["status"]["active"] == 1


def test_an_image_of_the_user_has_programs_and_servers(cluster: Cluster) -> None:
    def app(context: Context) -> str:
        return f"{context.command[1]} of {context.env['KIND']}\n"

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [environ["PATH_INFO"].encode()]

    cluster.images["ghcr.io/me/app"] = Image(programs={"app": app}, serves={8080: application}, entrypoint=("app",))
    env = [{"name": "KIND", "value": "test"}]
    cluster.create(pod("once", "ghcr.io/me/app:1", "hello", env=env, spec={"restartPolicy": "Never"}))
    cluster.create(pod("server", "ghcr.io/me/app:2", command=["sleep", "60"]))
    cluster.wait_for("pods", "once", until=lambda found: found["status"].get("phase") == "Succeeded")  # it runs in a thread
    assert status(cluster, "server")["phase"] == "Running"
    assert cluster.pods.get("once").logs() == "hello of test\n"
    assert cluster.pods.get("server").exec("wget -qO- localhost:8080/path").stdout == "/path"


def test_images_that_do_not_exist_are_not_pulled(cluster: Cluster) -> None:
    cluster.images.missing.append("webserver:404")
    for name, image in (("a", "webserver:404"), ("b", "invalid.registry.k8s.io/invalid/alpine:3.1"), ("c", "webserver:1")):
        cluster.create(pod(name, image))
    reasons = [status(cluster, name)["containerStatuses"][0]["state"].get("waiting", {}).get("reason") for name in "abc"]
    assert reasons == ["ImagePullBackOff", "ImagePullBackOff", None]


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({"envFrom": [{"configMapRef": {"name": "no"}}]}, 'configmap "no" not found'),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "b"}}}]},
            "couldn't find key b in Secret default/s",
        ),
        ({"securityContext": {"runAsNonRoot": True}}, "container has runAsNonRoot and image will run as root"),
        ({"volumeMounts": [{"name": "v", "mountPath": "/v", "subPathExpr": "$(NO)"}]}, 'missing value for "NO"'),
        (
            {"env": [{"name": "A", "value": "/x"}], "volumeMounts": [{"name": "v", "mountPath": "/v", "subPathExpr": "$(A)"}]},
            'error SubPath "/x" must not be an absolute path',
        ),
    ],
)
def test_what_keeps_a_container_from_being_created(cluster: Cluster, container: dict[str, Any], message: str) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "1"}})
    cluster.create(pod("p", "busybox", command=["sleep", "60"], spec={"volumes": [{"name": "v", "emptyDir": {}}]}, **container))
    waiting = status(cluster, "p")["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert waiting["message"].startswith(message)


def test_a_pod_waits_for_its_volumes(cluster: Cluster) -> None:
    volumes = [{"name": "v", "configMap": {"name": "late"}}]
    mounts = [{"name": "v", "mountPath": "/v"}]
    cluster.create(pod("p", "busybox", command=["sleep", "60"], volumeMounts=mounts, spec={"volumes": volumes}))
    assert status(cluster, "p")["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}, "data": {"a": "1"}})
    cluster.clock.advance(seconds=5)
    assert status(cluster, "p")["phase"] == "Running"
    assert cluster.pods.get("p").exec("cat /v/a").stdout == "1"


def test_kubelets_take_the_pace_of_the_cluster() -> None:
    with Cluster() as cluster:
        cluster.pace = 0.02
        cluster.create(pod("p", "app:1"))
        cluster.settle()
        assert cluster.get("pods", "p")["status"]["phase"] == "Running"
        cluster.delete("pods", "p")
        assert "deletionTimestamp" in cluster.get("pods", "p")["metadata"]
        cluster.settle()
        assert not cluster.list("pods")


def test_the_arguments_of_the_image_curl_are_those_of_curl_or_a_program(cluster: Cluster) -> None:
    labels = {"metadata": {"name": "web", "labels": {"app": "web"}}}
    cluster.create(pod("web", "nginx") | labels)
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service})
    cluster.settle()
    cluster.create(pod("client", "curlimages/curl:8.16.0", "sleep", "3600"))
    assert status(cluster, "client")["phase"] == "Running"
    client = cluster.pods.get("client")
    assert "Welcome to nginx!" in client.exec("/entrypoint.sh -s http://web").stdout
    assert client.exec("/entrypoint.sh sh -c 'id -u'").stdout == "100\n"


def test_options_of_nginx_do_not_start_another_server(cluster: Cluster) -> None:
    cluster.create(pod("web", "nginx:1.27.4-alpine"))
    cluster.settle()
    inside = cluster.pods.get("web")
    assert inside.exec("nginx -v").stderr == "nginx version: nginx/1.27.4\n"
    assert inside.exec("nginx -t").stderr.endswith("nginx.conf test is successful\n")
    assert inside.exec("nginx -s reload").code == 0
    assert status(cluster, "web")["containerStatuses"][0]["restartCount"] == 0
    assert inside.exec("nginx -s nosuch").stderr == 'nginx: invalid option: "-s nosuch"\n'


@pytest.mark.parametrize(("image", "command"), [("nginx", "nginx -s stop"), ("nginx", "kill 1"), ("redis:8", "kill -s INT 1")])
def test_a_server_that_a_signal_stops_is_started_again(cluster: Cluster, image: str, command: str) -> None:
    cluster.create(pod("web", image))
    cluster.settle()
    cluster.pods.get("web").exec(command)
    cluster.wait_for("pods", "web", until=lambda found: found["status"]["containerStatuses"][0]["restartCount"] == 1)
    ended = status(cluster, "web")["containerStatuses"][0]["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")


@pytest.mark.parametrize(("limits", "usage"), [({}, "34m"), ({"cpu": "20m"}, "20m")])
def test_each_request_to_hpa_example_needs_cpu_time_up_to_the_limit(cluster: Cluster, limits: dict[str, str], usage: str) -> None:
    cluster.create(pod("web", "registry.k8s.io/hpa-example", resources={"limits": limits}))
    cluster.settle()
    found = cluster.pods.get("web").exec("for i in 1 2 3 4 5 6 7 8 9 10; do curl -s localhost; done")
    assert (found.code, found.stdout) == (0, "OK!" * 10)

    def used() -> str:
        metrics = cluster.request("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/web").json()
        return str(metrics["containers"][0]["usage"]["cpu"])

    assert used() == usage
    cluster.clock.advance(seconds=16)
    assert used() == "1m"


def test_nginx_does_not_list_directories(cluster: Cluster) -> None:
    cluster.create(pod("web", "nginx"))
    cluster.settle()
    script = "rm /usr/share/nginx/html/index.html; for path in / /other/; do curl -s -o x -w '%{http_code} ' localhost$path; done"
    assert cluster.pods.get("web").exec(script).stdout == "403 404 "
