"""Variables of containers that are in files of volumes, and limits that are those of the pod."""

from __future__ import annotations

from typing import Any

import pytest

from fakekube import Cluster
from fakekube.nodes.runtime.environment import read_variable


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A='one'\nB='two' # comment\n", "one"),
        ("# A='no'\n\n \t A='one'", "one"),
        ("B='x\nA=y'\nA='two\nlines'", "two\nlines"),
        ("A= 'one'\n", ""),
        ("B='x'\n", ""),
        ("A='first'\nA='second'", "first"),
    ],
)
def test_a_variable_is_read(text: str, value: str) -> None:
    assert read_variable(text, "A") == value


@pytest.mark.parametrize("text", ["A", "='x'", "A ='x'", "A=x", 'A="x"', "A='x", "A='x' y", "B=x\nA='one'"])
def test_an_invalid_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_variable(text, "A")


def file_key(name: str, key: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fileKeyRef": {"volumeName": "data", "path": "d/env", "key": key, **more}}}


def test_containers_have_the_variables_that_an_init_container_has_written() -> None:
    mounts = [{"name": "data", "mountPath": "/data"}]
    init = {"name": "i", "image": "busybox", "command": ["sh", "-c", "mkdir /data/d; echo \"A='one'\" > /data/d/env"]}
    main = {"name": "c", "image": "busybox", "command": ["sh", "-c", "echo $A-$B; sleep 1000"]}
    with Cluster() as cluster:
        cluster.clock.hold()
        for name, more in (("good", {"optional": True}), ("bad", {})):
            env = [file_key("A", "A"), file_key("B", "B", **more)]
            spec = {
                "initContainers": [{**init, "volumeMounts": mounts}],
                "containers": [{**main, "env": env}],
                "volumes": [{"name": "data", "emptyDir": {}}],
            }
            cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        cluster.settle()
        assert cluster.pods.get("good").logs() == "one-\n"
        waiting = cluster.get("pods", "bad")["status"]["containerStatuses"][0]["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert waiting["message"] == 'environment variable key "B" not found in file "d/env"'


def test_the_limits_of_the_pod_are_those_of_containers_without_limits() -> None:
    env = [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", "echo $CPU; cat /sys/fs/cgroup/cpu.max; sleep 100"]}
    spec = {"containers": [{**container, "env": env}], "resources": {"limits": {"cpu": "1250m"}}}
    with Cluster() as cluster:
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
        cluster.settle()
        assert cluster.pods.get("p").logs() == "2\n125000 100000\n"
