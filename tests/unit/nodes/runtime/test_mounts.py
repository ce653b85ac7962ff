"""Mounts, and the mount namespace of a node: what privileged containers change, and pods on the node see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fakekube import Cluster

#: How Kubernetes' own tests run a command on a node.
ENTER = "nsenter --mount=/rootfs/proc/1/ns/mnt -- sh -c"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


def start(cluster: Cluster, name: str, path: str, at: str = "/rootfs", **container: Any) -> None:
    """Starts a pod with a directory of the node."""
    main = {"name": "main", "image": "agnhost", "volumeMounts": [{"name": "v", "mountPath": at}], **container}
    spec = {"containers": [main], "volumes": [{"name": "v", "hostPath": {"path": path}}], "nodeName": "node-1"}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    cluster.settle()


@pytest.fixture
def host(cluster: Cluster) -> Any:
    start(cluster, "host", "/", securityContext={"privileged": True})
    return cluster.pods.get("host")


def test_programs_of_the_namespace_have_the_files_of_the_node(cluster: Cluster, host: Any) -> None:
    found = host.exec(f"{ENTER} 'cat /etc/hostname && mkdir -p /srv/a && echo x > /srv/a/f 2> /dev/null && ls /'")
    assert found.stdout.startswith("node-1\n") and "rootfs" not in found.stdout.split()
    assert host.exec("cat /etc/hostname; cat /rootfs/srv/a/f").stdout == "host\nx\n"
    start(cluster, "reader", "/srv/a", "/data")
    assert cluster.pods.get("reader").exec("cat /data/f").stdout == "x\n"


@pytest.mark.parametrize("command", ["mount -t tmpfs -o size=10m tmpfs-x /srv/a", "mount --bind /srv/b /srv/a"])
def test_pods_see_what_is_mounted_on_their_node(cluster: Cluster, host: Any, command: str) -> None:
    host.exec(f"{ENTER} 'mkdir -p /srv/a /srv/b && echo hidden > /srv/a/f && {command} && echo seen > /srv/a/f'")
    start(cluster, "reader", "/srv/a", "/data")
    assert cluster.pods.get("reader").exec("cat /data/f").stdout == "seen\n"
    assert host.exec(f"{ENTER} 'umount /srv/a && cat /srv/a/f && rm -r /srv/a /srv/b'").stdout == "hidden\n"
    again = host.exec(f"{ENTER} 'umount /srv/a'")
    assert (again.code, again.stderr) == (1, "umount: can't unmount /srv/a: No such file or directory\n")


def test_a_link_to_a_bound_directory(cluster: Cluster, host: Any) -> None:
    made = host.exec(f"{ENTER} 'mkdir -p /srv/b && mount --bind /srv/b /srv/b && ln -s /srv/b /srv/a && echo x > /srv/a/f'")
    assert made.code == 0
    start(cluster, "reader", "/srv/a", "/data")
    assert cluster.pods.get("reader").exec("cat /data/f").stdout == "x\n"
    assert host.exec(f"{ENTER} 'rm /srv/a && umount /srv/b && rm -r /srv/b'").code == 0


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (f"{ENTER} true", "nsenter: reassociate to namespace 'ns/mnt' failed: Operation not permitted\n"),
        ("nsenter --mount=/etc/hostname true", "nsenter: reassociate to namespace 'ns/mnt' failed: Invalid argument\n"),
        ("nsenter -m /none true", "nsenter: cannot open /none: No such file or directory\n"),
        ("mount -t tmpfs x /tmp", "mount: permission denied (are you root?)\n"),
        ("umount /tmp", "umount: can't unmount /tmp: Operation not permitted\n"),
    ],
)
def test_what_containers_may_not_do(cluster: Cluster, command: str, error: str) -> None:
    start(cluster, "plain", "/")
    found = cluster.pods.get("plain").exec(command)
    assert (found.code, found.stderr) == (1, error)


def test_mounts_that_fail(host: Any) -> None:
    assert "No such device" in host.exec("mount -t ext4 /dev/x /tmp").stderr
    assert "No such file or directory" in host.exec("mount -t tmpfs x /none").stderr
    assert "Not a directory" in host.exec("mount -t tmpfs x /etc/hostname").stderr
    assert "busy" in host.exec("umount /").stderr
    assert "/tmp type tmpfs (ro" in host.exec("mount -t tmpfs -o ro x /tmp && mount").stdout


def test_everyone_may_write_to_the_temporary_directory_of_a_node(cluster: Cluster) -> None:
    start(cluster, "user", "/tmp", "/data")
    assert cluster.pods.get("user").exec("ls -ld /data").stdout.startswith("drwxrwxrwt")
    assert 'mode of file "/data": dtrwxrwxrwx' in cluster.pods.get("user").exec("/agnhost mounttest --file_mode=/data").stdout


@pytest.mark.parametrize(
    ("of_pod", "users", "token", "other"),
    [
        ({}, (None, None), "644 0 0", "444 0 0"),
        ({"runAsUser": 1000}, (None, None), "600 1000 0", "444 0 0"),
        ({}, (1000, 1000), "600 1000 0", "444 0 0"),
        ({}, (1000, 1001), "644 0 0", "444 0 0"),
        ({"fsGroup": 10000}, (None, None), "640 0 10000", "444 0 10000"),
        ({"runAsUser": 1000, "fsGroup": 10000}, (None, None), "640 1000 10000", "444 0 10000"),
    ],
)
def test_tokens_are_read_by_the_user_and_the_group_of_the_pod(
    cluster: Cluster, of_pod: dict[str, int], users: tuple[int | None, int | None], token: str, other: str
) -> None:
    """As pkg/volume/projected and SetVolumeOwnership make them."""
    fields = [{"path": "name", "mode": 0o444, "fieldRef": {"fieldPath": "metadata.name"}}]
    sources = [{"serviceAccountToken": {"path": "token"}}, {"downwardAPI": {"items": fields}}]
    mount = {"name": "v", "mountPath": "/v"}
    containers = [
        {"name": f"c{number}", "image": "busybox", "command": ["sleep", "1000"], "volumeMounts": [mount]}
        | ({} if user is None else {"securityContext": {"runAsUser": user}})
        for number, user in enumerate(users)
    ]
    spec = {"securityContext": of_pod, "containers": containers, "volumes": [{"name": "v", "projected": {"sources": sources}}]}
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    cluster.settle()
    found = cluster.pods.get("p").exec("stat -Lc '%a %u %g' /v/token /v/name")
    assert found.stdout.splitlines() == [token, other], found.stderr


def test_chroot_runs_a_program_in_a_directory(cluster: Cluster) -> None:
    start(cluster, "host", "/")
    found = cluster.pods.get("host").exec(
        "chroot /rootfs sh -c 'cat /etc/hostname; pwd; echo x > /srv-file; cat /rootfs/srv-file'"
    )
    assert (found.stdout, found.code) == ("node-1\n/\n", 1)
    assert cluster.pods.get("host").exec("cat /rootfs/srv-file; cat /etc/hostname").stdout == "x\nhost\n"


@pytest.mark.parametrize(
    ("command", "code", "error"),
    [
        ("chroot /nosuch ls", 1, "chroot: can't change root directory to '/nosuch': No such file or directory\n"),
        ("chroot /etc/hostname ls", 1, "chroot: can't change root directory to '/etc/hostname': Not a directory\n"),
        ("chroot / nosuch", 127, "chroot: can't execute 'nosuch': No such file or directory\n"),
    ],
)
def test_chroot_fails_as_that_of_busybox(cluster: Cluster, command: str, code: int, error: str) -> None:
    start(cluster, "host", "/")
    found = cluster.pods.get("host").exec(command)
    assert (found.code, found.stderr) == (code, error)
