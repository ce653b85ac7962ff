"""The types of hostPaths, and the special files of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster whose node has files of each type in /srv."""
    with Cluster() as made:
        made.clock.hold()
        start(made, "host", "/srv")
        host = made.pods.get("host")
        host.exec("mkdir /host/dir; touch /host/file; mknod /host/char c 89 1; mknod /host/block b 89 1")
        start(made, "server", "/srv", "sh", "-c", "sleep 1000 | nc -lU /host/socket")
        yield made


def start(cluster: Cluster, name: str, path: str, *command: str, **source: str) -> None:
    mounts = [{"name": "host", "mountPath": "/host"}]
    container = {"name": "c", "image": "busybox", "command": list(command) or ["sleep", "1000"], "volumeMounts": mounts}
    volumes = [{"name": "host", "hostPath": {"path": path, **source}}]
    spec = {"nodeName": "node-1", "containers": [container], "volumes": volumes}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    cluster.settle()


@pytest.mark.parametrize(
    ("type_", "name", "words"),
    [
        ("Directory", "dir", "directory"),
        ("DirectoryOrCreate", "dir", "directory"),
        ("File", "file", "file"),
        ("FileOrCreate", "file", "file"),
        ("Socket", "socket", "socket file"),
        ("CharDevice", "char", "character device"),
        ("BlockDevice", "block", "block device"),
    ],
)
def test_a_host_path_must_have_its_type(cluster: Cluster, type_: str, name: str, words: str) -> None:
    right, wrong = f"right-{type_.lower()}", f"wrong-{type_.lower()}"
    start(cluster, right, f"/srv/{name}", type=type_)
    assert cluster.get("pods", right)["status"]["phase"] == "Running"
    other = "/srv/file" if name == "dir" else "/srv/dir"
    start(cluster, wrong, other, type=type_)
    assert cluster.get("pods", wrong)["status"]["phase"] == "Pending"
    (event,) = [one for one in cluster.list("events") if one["involvedObject"]["name"] == wrong and one["type"] == "Warning"]
    problem = f"hostPath type check failed: {other} is not a {words}"
    assert (event["reason"], event["message"]) == ("FailedMount", f'MountVolume.SetUp failed for volume "host" : {problem}')


@pytest.mark.parametrize(("type_", "phase"), [("", "Running"), ("DirectoryOrCreate", "Running"), ("Directory", "Pending")])
def test_a_host_path_that_does_not_exist(cluster: Cluster, type_: str, phase: str) -> None:
    name = f"absent-{type_.lower()}".strip("-")
    start(cluster, name, f"/srv/{name}", type=type_)
    assert cluster.get("pods", name)["status"]["phase"] == phase


def run(cluster: Cluster, command: str) -> Any:
    return cluster.pods.get("host").exec(command)


def test_special_files_have_their_kinds(cluster: Cluster) -> None:
    assert run(cluster, "ls -l /host | cut -c1 | sort -u").stdout.split() == ["-", "b", "c", "d", "s", "t"]
    assert run(cluster, "stat -c %F /host/socket /host/block /host/char").stdout.splitlines() == [
        "socket",
        "block special file",
        "character special file",
    ]
    assert run(cluster, "[ -S /host/socket ] && [ -b /host/block ] && [ -c /host/char ]").code == 0
    assert run(cluster, "cat /host/char").stderr == "cat: can't open '/host/char': No such device or address\n"
    assert run(cluster, "mknod /host/char c 1 3").stderr == "mknod: /host/char: File exists\n"
    assert run(cluster, "mknod /tmp/null c 1 3; echo gone > /tmp/null; cat /tmp/null").stdout == ""


def test_programs_converse_over_a_socket(cluster: Cluster) -> None:
    assert run(cluster, "echo hello | nc -U /host/socket").code == 0
    assert cluster.pods.get("server").logs() == "hello\n"
    refused = run(cluster, "nc -U /host/file")
    assert (refused.code, refused.stderr) == (1, "nc: connect: Connection refused\n")
    taken = run(cluster, "nc -lU /host/file")
    assert (taken.code, taken.stderr) == (1, "nc: bind: Address already in use\n")


def test_df_shows_the_file_systems_of_its_arguments(cluster: Cluster) -> None:
    assert [line.split()[-1] for line in run(cluster, "df /host/file /bin").stdout.splitlines()] == ["on", "/host", "/"]
    missing = run(cluster, "df -h /missing")
    assert (missing.code, missing.stderr) == (1, "df: /missing: can't find mount point\n")


def test_the_cgroup_of_a_pod_has_the_resources_of_its_containers(cluster: Cluster) -> None:
    mounts = [{"name": "cgroup", "mountPath": "/cgroup"}]
    resources = [
        {"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "64Mi"}},
        {"requests": {"cpu": "500m"}, "limits": {"memory": "64Mi"}},
    ]
    containers = [
        {"name": f"c{index}", "image": "busybox", "command": ["sleep", "1000"], "resources": one, "volumeMounts": mounts}
        for index, one in enumerate(resources)
    ]
    volumes = [{"name": "cgroup", "hostPath": {"path": "/sys/fs/cgroup"}}]
    made = cluster.create(
        {"kind": "Pod", "metadata": {"name": "limited"}, "spec": {"containers": containers, "volumes": volumes}}
    )
    cluster.settle()
    uid = made["metadata"]["uid"].replace("-", "_")
    pod = cluster.pods.get("limited")
    path = f"/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice"
    assert pod.exec(f"find /cgroup -name '*{uid}*'").stdout == f"{path}\n"
    assert pod.exec(f"cat {path}/cpu.max {path}/cpu.weight {path}/memory.max").stdout == f"max 100000\n100\n{128 * 1024**2}\n"
    assert pod.exec("cat /sys/fs/cgroup/cpu.max; mount -t cgroup2").stdout.startswith("100000 100000\ncgroup on /sys/fs/cgroup ")
