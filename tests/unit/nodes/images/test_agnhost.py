"""The image agnhost: its servers and tools, and the network between pods that they use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.net.streaming.kubelet_api import PortForwardError
from fakekube.nodes.images import agnhost
from fakekube.nodes.images.agnhost import resource_consumer_controller
from fakekube.nodes.runtime.commands import APPLETS, command

AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"


def pod(name: str, *args: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": AGNHOST, "args": list(args)}
    metadata = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(tls=True) as made:
        made.create(pod("server", "netexec"))
        made.create(pod("client", "pause", hostname="h", subdomain="sub"))
        ports = [
            {"name": "http", "port": 80, "targetPort": 8080},
            {"name": "udp", "protocol": "UDP", "port": 80, "targetPort": 8081},
        ]
        spec = {"type": "NodePort", "selector": {"app": "server"}, "ports": ports}
        made.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc"}, "spec": spec})
        headless = {"clusterIP": "None", "selector": {"app": "client"}, "ports": [{"name": "p", "port": 9}]}
        made.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "sub"}, "spec": headless})
        made.settle()
        yield made


def run(cluster: Cluster, command: str, name: str = "client") -> str:
    found = cluster.pods.get(name).exec(command)
    return found.stdout + found.stderr


def address(cluster: Cluster, name: str) -> str:
    found: str = cluster.get("pods", name)["status"]["podIP"]
    return found


def test_netexec_tells_about_itself(cluster: Cluster) -> None:
    assert run(cluster, "curl -s http://svc/hostname") == "server"
    assert run(cluster, "curl -s http://svc/clientip").startswith(address(cluster, "client"))
    assert run(cluster, "curl -s 'http://svc/echo?msg=a%20b'") == "a b"
    assert run(cluster, "curl -s -o /dev/null -w '%{http_code}' 'http://svc/echo?code=418'") == "418"
    assert json.loads(run(cluster, "curl -s 'http://svc/shell?cmd=echo+$((1%2B2))'")) == {"output": "3\n"}


def test_netexec_dials_over_http_and_udp(cluster: Cluster) -> None:
    own = address(cluster, "server")
    for protocol, port in (("http", 8080), ("udp", 8081)):
        url = f"http://svc/dial?host={own}&port={port}&protocol={protocol}&request=hostname&tries=2"
        assert json.loads(run(cluster, f"curl -s '{url}'")) == {"responses": ["server", "server"]}
    assert "errors" in json.loads(run(cluster, f"curl -s 'http://svc/dial?host={own}&port=1&request=x'"))


def test_node_ports_lead_to_the_service(cluster: Cluster) -> None:
    ports = {one["protocol"]: one["nodePort"] for one in cluster.get("services", "svc")["spec"]["ports"]}
    node = cluster.get("pods", "server")["status"]["hostIP"]
    assert run(cluster, f"curl -s http://{node}:{ports['TCP']}/hostname") == "server"
    assert run(cluster, f"echo hostname | nc -u -w 1 {node} {ports['UDP']}") == "server"
    assert run(cluster, f"/agnhost connect {node}:1") == "REFUSED\n"
    assert run(cluster, "/agnhost connect nothing:1").startswith("DNS:")


def test_names_resolve_as_with_cluster_dns(cluster: Cluster) -> None:
    service, client = cluster.get("services", "svc")["spec"]["clusterIP"], address(cluster, "client")
    assert run(cluster, "dig +short +search svc") == f"{service}\n"
    assert run(cluster, "dig +short svc.default") == ""
    assert run(cluster, "dig +short _http._tcp.svc.default.svc.cluster.local SRV") == "0 100 80 svc.default.svc.cluster.local.\n"
    assert run(cluster, f"dig +short -x {service}") == "svc.default.svc.cluster.local.\n"
    assert run(cluster, "dig +short h.sub.default.svc.cluster.local") == f"{client}\n"
    assert run(cluster, "dig +short sub.default.svc.cluster.local SRV") == "0 100 9 h.sub.default.svc.cluster.local.\n"
    assert run(cluster, f"dig +short {client.replace('.', '-')}.default.pod.cluster.local") == f"{client}\n"
    assert run(cluster, "/agnhost dns-suffix") == "default.svc.cluster.local,svc.cluster.local,cluster.local\n"


def test_session_affinity_keeps_an_endpoint(cluster: Cluster) -> None:
    for name in ("one", "two"):
        made = pod(name, "serve-hostname")
        made["metadata"]["labels"] = {"app": "many"}
        cluster.create(made)
    for name, affinity in (("turns", "None"), ("keeps", "ClientIP")):
        spec = {"selector": {"app": "many"}, "sessionAffinity": affinity, "ports": [{"port": 80, "targetPort": 9376}]}
        cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
    cluster.settle()
    script = "for i in 1 2 3 4; do curl -s {}; echo; done"
    assert set(run(cluster, script.format("turns")).split()) == {"one", "two"}
    assert len(set(run(cluster, script.format("keeps")).split())) == 1


def test_the_api_server_is_reached_with_tls_and_a_token(cluster: Cluster) -> None:
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    url = "https://kubernetes.default.svc/api/v1/nodes"
    token = f'-H "Authorization: Bearer $(cat {folder}/token)"'
    assert json.loads(run(cluster, f"curl -s --cacert {folder}/ca.crt {token} {url}"))["reason"] == "Forbidden"
    assert run(cluster, f"curl -s {url}; echo $?") == "60\n"


def test_mounttest_prints_types_modes_and_owners(cluster: Cluster) -> None:
    made = pod("mount", "mounttest", "--fs_type=/v", "--new_file_0660=/v/f", "--file_perm=/v/f", "--file_owner=/v/f",
               restartPolicy="Never", securityContext={"runAsUser": 1001, "fsGroup": 123},
               volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}])  # fmt: skip
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    cluster.create(made)
    cluster.settle()
    assert cluster.get("pods", "mount")["status"]["phase"] == "Succeeded"
    assert cluster.pods.get("mount").logs().splitlines() == [
        'mount type of "/v": tmpfs', 'content of file "/v/f": mount-tester new file', "", 'perms of file "/v/f": -rw-rw----',
        'owner UID of "/v/f": 1001', 'owner GID of "/v/f": 123',
    ]  # fmt: skip


def test_proxies_reach_plain_and_secure_ports(cluster: Cluster) -> None:
    made = pod("porter", "porter")
    env = {"SERVE_PORT_80": '<a href="/here">plain</a>', "SERVE_TLS_PORT_443": "secure"}
    made["spec"]["containers"][0]["env"] = [{"name": name, "value": value} for name, value in env.items()]
    cluster.create(made)
    ports = [{"name": "plain", "port": 80}, {"name": "secure", "port": 443}]
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "porter"},
            "spec": {"selector": {"app": "porter"}, "ports": ports},
        }
    )
    cluster.settle()
    texts = {
        path: cluster.request("GET", f"/api/v1/namespaces/default/{path}/proxy/").body
        for path in ("pods/porter:80", "pods/https:porter:443", "services/https:porter:secure", "services/porter:plain")
    }
    assert texts["pods/https:porter:443"] == texts["services/https:porter:secure"] == b"secure"
    assert texts["pods/porter:80"] == b'<a href="/api/v1/namespaces/default/pods/porter:80/proxy/here">plain</a>'


def test_webhooks_in_pods_are_called_by_their_service(cluster: Cluster) -> None:
    issued = cluster.services.certificate("default/hook")
    data = {"tls.crt": issued.certificate, "tls.key": issued.key}
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook"}, "stringData": data})
    made = pod("hook", "webhook", "--tls-cert-file=/c/tls.crt", "--tls-private-key-file=/c/tls.key", "--port=8444",
               volumes=[{"name": "c", "secret": {"secretName": "hook"}}])  # fmt: skip
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "c", "mountPath": "/c"}]
    cluster.create(made)
    spec = {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 8444}]}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": spec})
    cluster.settle()
    webhook = {
        "name": "deny.example.com",
        "clientConfig": {
            "service": {"namespace": "default", "name": "hook", "path": "/always-deny"},
            "caBundle": issued.ca_bundle,
        },
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                     "metadata": {"name": "deny"}, "webhooks": [webhook]}  # fmt: skip
    cluster.create(configuration)
    answer = cluster.request(
        "POST", "/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
    )
    cluster.delete("validatingwebhookconfigurations", "deny")
    assert (answer.status, b"this webhook denies all requests" in answer.body) == (400, True)


def test_pods_of_nettest_contact_each_other(cluster: Cluster) -> None:
    reader = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "readers"}}
    reader["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    reader["subjects"] = [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
    cluster.create(reader)
    spec = {"selector": {"test": "net"}, "ports": [{"port": 8080}]}
    cluster.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "nettest"}, "spec": spec})
    for name in ("net-1", "net-2"):
        made = pod(name, "nettest", "--peers=2")
        made["metadata"]["labels"] = {"test": "net"}
        cluster.create(made)
    cluster.settle()
    first = cluster.get("pods", "net-1")["status"]["podIP"]
    cluster.clock.hold()
    for _ in range(12):  # a busy machine may need several rounds
        cluster.clock.advance(seconds=5)
        if run(cluster, f"curl -s {first}:8080/status") == "pass":
            break
    cluster.clock.release()
    assert run(cluster, f"curl -s {first}:8080/status") == "pass"
    state = json.loads(run(cluster, f"curl -s {first}:8080/read"))
    assert (state["Sent"].keys(), state["Received"].keys()) == ({"net-1", "net-2"}, {"net-1", "net-2"})
    assert state["Errors"] is None


def test_connections_end_with_the_program_that_serves_them(cluster: Cluster) -> None:
    cluster.create(pod("brief", "netexec"))
    cluster.settle()
    runtime, brief = cluster._components.runtime, cluster.get("pods", "brief")
    connection = runtime.port_forward(brief, 8080)
    connection.from_client.write_all(b"GET /hostname HTTP/1.1\r\nHost: a\r\n\r\n")
    assert connection.to_client.read_blocking(timeout=120).startswith(b"HTTP/1.1 200")
    cluster.delete("pods", "brief", gracePeriodSeconds=0)
    cluster.settle()
    while connection.to_client.read_blocking(timeout=120):
        pass
    with pytest.raises(PortForwardError, match="is closed"):
        runtime.port_forward(brief, 8080)


def test_kernel_parameters_have_two_spellings(cluster: Cluster) -> None:
    security = {"sysctls": [{"name": "kernel/shm_rmid_forced", "value": "1"}]}
    cluster.create(pod("kernel", "pause", securityContext=security))
    cluster.settle()
    assert run(cluster, "sysctl kernel/shm_rmid_forced", "kernel") == "kernel.shm_rmid_forced = 1\n"
    assert run(cluster, "sysctl -n kernel.shm_rmid_forced", "kernel") == "1\n"


def test_a_process_reads_its_own_status(cluster: Cluster) -> None:
    made = pod("status", "pause", securityContext={"seccompProfile": {"type": "RuntimeDefault"}, "runAsUser": 7})
    made["spec"]["containers"][0]["securityContext"] = {"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}
    cluster.create(made)
    cluster.settle()
    assert run(cluster, "grep -E 'Seccomp:|CapBnd|CapEff|Uid' /proc/self/status", "status").split("\n")[:-1] == [
        "Uid:\t7\t7\t7\t7",
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000001000",
        "Seccomp:\t2",
    ]
    assert run(cluster, "grep -E 'Seccomp:|CapEff' /proc/self/status") == "CapEff:\t00000000a80425fb\nSeccomp:\t0\n"


def test_volumes_in_memory_have_the_size_of_their_limit(cluster: Cluster) -> None:
    made = pod("sized", "pause", volumes=[{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "10Mi"}}])
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/sized"}]
    cluster.create(made)
    cluster.settle()
    assert run(cluster, "df | grep /sized | awk '{print $2}'", "sized") == "10240\n"


def test_kernel_parameters_that_are_not_safe_are_forbidden(cluster: Cluster) -> None:
    cluster.create(pod("unsafe", "pause", securityContext={"sysctls": [{"name": "kernel/msgmax", "value": "1"}]}))
    cluster.settle()
    status = cluster.get("pods", "unsafe")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "SysctlForbidden")
    assert status["message"] == 'Pod was rejected: forbidden sysctl: "kernel.msgmax" not allowlisted'


def test_nodes_have_a_kube_proxy(cluster: Cluster) -> None:
    cluster.create(pod("host", "pause", hostNetwork=True))
    cluster.settle()
    assert json.loads(run(cluster, "curl -s http://localhost:10256/healthz", "host"))["nodeEligible"] is True
    assert run(cluster, "curl -s http://localhost:10249/proxyMode", "host") == "iptables"
    node = cluster.get("pods", "host")["status"]["hostIP"]
    assert json.loads(run(cluster, f"curl -s http://{node}:10256/livez"))["healthy"] is True
    assert run(cluster, f"/agnhost connect {node}:10249") == "REFUSED\n"


def test_sub_paths_are_made_with_the_mode_of_their_volume(cluster: Cluster) -> None:
    made = pod("sub-path", "pause", securityContext={"fsGroup": 123}, volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}])
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/sub", "subPath": "a/b"}]
    made["spec"]["containers"][0]["volumeMounts"] = mounts
    cluster.create(made)
    cluster.settle()
    found = run(
        cluster, "/agnhost mounttest --fs_type=/sub --file_mode=/sub --file_owner=/sub; touch /sub/f; ls /v/a/b", "sub-path"
    )
    assert found.splitlines() == [
        'mount type of "/sub": tmpfs', 'mode of file "/sub": dgtrwxrwxrwx', 'owner UID of "/sub": 0', 'owner GID of "/sub": 123', "f",
    ]  # fmt: skip


def test_a_redirection_of_a_probe_to_another_host_is_a_warning(cluster: Cluster) -> None:
    made = pod("redirected", "liveness")
    get = {"path": "/redirect?loc=http%3A%2F%2F0.0.0.0%2F", "port": 8080}
    made["spec"]["containers"][0]["livenessProbe"] = {"httpGet": get, "failureThreshold": 1}
    cluster.clock.hold()  # a probe waits longer for a busy machine while the clock stands still
    cluster.create(made)
    cluster.settle()
    cluster.clock.advance(seconds=11)
    cluster.settle()
    cluster.clock.release()
    events = [one["message"] for one in cluster.list("events", namespace="default") if one["reason"] == "ProbeWarning"]
    assert 'Liveness probe warning: Probe terminated redirects, Response body: <a href="http://0.0.0.0/">Found</a>.' in events[0]
    assert cluster.get("pods", "redirected")["status"]["containerStatuses"][0]["restartCount"] == 0


def test_the_user_of_an_image_is_that_of_its_processes(cluster: Cluster) -> None:
    container = {"name": "c", "image": "nonroot:1.4", "command": ["id", "-u"], "securityContext": {"runAsNonRoot": True}}
    spec = {"restartPolicy": "Never", "containers": [container]}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "someone"}, "spec": spec})
    cluster.settle()
    assert cluster.pods.get("someone").logs() == "1234\n"


def test_every_subcommand_and_every_applet_has_a_program() -> None:
    subcommands = {name: load() for name, load in agnhost._HOMES.items()}
    assert [name for name, commands in subcommands.items() if name not in commands] == []
    assert [name for name in APPLETS if command(name) is None] == []


def test_the_resource_consumer_controller_spreads_what_is_consumed(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = pod("consumer") | {"spec": {"containers": [{"name": "c", "image": "e2e-test-images/resource-consumer:1.14"}]}}
    cluster.create(consumer)
    ports = [{"port": 80, "targetPort": 8080}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "consumer"}}
    cluster.create({**service, "spec": {"selector": {"app": "consumer"}, "ports": ports}})
    options = ["--consumer-service-name=consumer", "--consumer-service-namespace=default", "--consumer-port=80"]
    cluster.create(pod("spreader", "resource-consumer-controller", *options))
    cluster.settle()
    url = f"http://{address(cluster, 'spreader')}:8080"
    query = "millicores=250&durationSec=60&requestSizeMillicores=100"
    assert run(cluster, f"curl -s -X POST '{url}/ConsumeCPU?{query}'") == (
        "RC manager: sending 2 requests to consume 100 millicores each and 1 request to consume 50 millicores\n"
        "Consumed 100 millicores\nConsumed 100 millicores\nConsumed 50 millicores\n"
    )
    metrics = cluster.request("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/consumer").json()
    assert metrics["containers"][0]["usage"]["cpu"] == "251m"
    monkeypatch.setattr(resource_consumer_controller, "_MAX_REQUESTS", 3)
    query = "megabytes=1000000000&durationSec=1&requestSizeMegabytes=1"
    assert run(cluster, f"curl -s -X POST '{url}/ConsumeMem?{query}'").splitlines() == [
        "RC manager: sending 1000000000 requests to consume 1 MB each and 1 request to consume 0 MB",
        *["Consumed 1 megabytes"] * 3,
    ]
    assert run(cluster, f"curl -s '{url}/ConsumeCPU'") == "Bad request. Not a POST request\n"
    assert run(cluster, f"curl -s -X POST '{url}/ConsumeMem'") == "not given function argument\n"
    assert run(cluster, f"curl -s -X POST '{url}/ConsumeMem?megabytes=1&durationSec=1&requestSizeMegabytes=0'").startswith(
        "incorrect"
    )
