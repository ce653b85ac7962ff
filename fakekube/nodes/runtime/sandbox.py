"""The sandbox of one pod: the runs of its containers, its volumes, and the servers of its ports.

Invariant: containers of a pod share only volumes, network and ports.

Specified by: pkg/kubelet/kuberuntime/kuberuntime_sandbox.go.
"""

from __future__ import annotations

import errno
import threading
import weakref
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

from fakekube.apimachinery.schema.quantity import parse
from fakekube.base.objects import StoredObject
from fakekube.net.streaming.kubelet_api import Connection, Destination, KubeletError
from fakekube.nodes.images.names import base_name
from fakekube.nodes.pod_resources import actuated_resources, effective_limits, oom_score_adjustment
from fakekube.nodes.pod_state import KILLED
from fakekube.nodes.pod_status import status_of
from fakekube.nodes.runtime.behaviour import Behaviour, PortHandler
from fakekube.nodes.runtime.container import Container, ContainerContext, Run
from fakekube.nodes.runtime.environment import environment
from fakekube.nodes.runtime.filesystem import Directory, File, FileSystem, Space, oserror
from fakekube.nodes.runtime.image_files import default_application, install, root_of
from fakekube.nodes.runtime.kernel import ProcessNamespace, mount_proc
from fakekube.nodes.runtime.listeners import Peer
from fakekube.nodes.runtime.network import Network, PodNetworks
from fakekube.nodes.runtime.resources import mount_cgroup
from fakekube.nodes.runtime.volumes import Volumes, bytes_of

if TYPE_CHECKING:
    from fakekube.nodes.images.image import Images
    from fakekube.nodes.runtime.listeners import Bridge


#: Ports that images serve although the container does not declare them.
_WELL_KNOWN: Final = {"nginx": 80, "httpd": 80}


class PodRuntime(PodNetworks, Protocol):
    """What a sandbox uses of the container runtime."""

    @property
    def images(self) -> Images:
        """The images of the cluster."""

    def behaviour_of(self, pod: StoredObject, container: StoredObject) -> Behaviour:
        """Returns the behaviour that tests have set for a container."""

    def container(self, pod: StoredObject, name: str) -> Container:
        """Returns the current run of a container. Raises KubeletError if there is none."""

    def node_files(self, node: str) -> FileSystem:
        """Returns the files of a node."""

    def credential(self, uid: str, volume: str, index: int) -> tuple[bytes, bytes]:
        """Returns the key and the certificates of a source of a pod's volume; both are empty if they are not issued."""

    def request_token(self, pod: StoredObject, audience: str, seconds: int) -> str:
        """Requests a token for the service account of a pod; returns "" if the request fails."""

    def call_api_server(self, path: str, token: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Sends a request with a token to the API server: GET, or POST of a JSON document. Returns status and body."""

    def on_program_exit(self, pod: StoredObject, container: Container, code: int | None) -> None:
        """Called when a main program has ended, or with None if the shell does not have it."""


class Sandbox:
    """One pod.

    Args:
        pod: the Pod object.
        runtime: of the cluster.
    """

    def __init__(self, pod: StoredObject, runtime: PodRuntime) -> None:
        self._last = pod
        self._expected: StoredObject | None = None
        """The status that the kubelet is about to write."""
        self._runtime = runtime
        self._lock = threading.RLock()
        self._processes: ProcessNamespace | None = None
        """The processes of all containers, if they share a PID namespace."""
        self._spaces: dict[str, tuple[Space, int]] = {}
        """Name of the container → the space of its files, and the bytes that its image has taken of it."""
        self._roots: dict[str, Directory] = {}
        """Name of the container → its files, if they may have a limited number of bytes."""
        self._runs: dict[str, dict[int, Container]] = {}
        """Name of the container → attempt → run; the last two runs are kept."""
        self._tokens: dict[tuple[str, int], tuple[str, float]] = {}
        """Audience and lifetime → token, and the time at which it is renewed."""
        self._bridges: dict[int, Bridge] = {}
        """Port → the port of this machine that leads to it."""
        self._served: weakref.WeakSet[Connection] = weakref.WeakSet()
        """The connections to ports at which no program listens."""
        self.volumes = Volumes(
            lambda: self.pod,
            runtime.cluster,
            self._timestamp,
            self._get_token,
            lambda: self.node,
            node_files=self._node_files,
            shared_files=lambda: runtime.node_files(""),
            image_root=self._image_root,
            credential=lambda volume, index: runtime.credential(pod["metadata"]["uid"], volume, index),
        )
        self.network = Network(lambda: self.pod, runtime)

    def _node_files(self) -> FileSystem:
        return self._runtime.node_files(self.pod["spec"].get("nodeName", ""))

    def _image_root(self, name: str) -> Directory:
        return root_of(name, self._timestamp(), self._runtime.images.find(name))

    def _timestamp(self) -> float:
        return self._runtime.clock.now().timestamp()

    # --- The pod ------------------------------------------------------------------------------------------------------

    def _read_pod(self) -> StoredObject | None:
        metadata = self._last["metadata"]
        found = self._runtime.cluster.get("", "pods", metadata["namespace"], metadata["name"])
        if found is None or found["metadata"]["uid"] != metadata["uid"]:
            return None
        expected = self._expected
        return found if expected is None else {**found, "status": expected}

    def expect_status(self, status: StoredObject | None) -> None:
        """Sets the status that the kubelet is about to write, which holds already for the programs; None when it is written."""
        self._expected = status
        if status is None:
            self.catch_up()

    @property
    def pod(self) -> StoredObject:
        """The current Pod object; after its deletion the last one."""
        found = self._read_pod()
        if found is not None:
            self._last = found
        return self._last

    @property
    def is_gone(self) -> bool:
        """Whether the pod is deleted."""
        return self._read_pod() is None

    @property
    def node(self) -> StoredObject | None:
        """The node of the pod."""
        return self._runtime.cluster.get("", "nodes", "", self.pod["spec"].get("nodeName", ""))

    # --- Containers ---------------------------------------------------------------------------------------------------

    def container(self, spec: StoredObject, run: Run) -> Container:
        """Returns a run of a container."""
        name = spec["name"]
        with self._lock:
            runs = self._runs.setdefault(name, {})
            found = runs.get(run.attempt)
            if found is None:
                found = runs[run.attempt] = self._make_container(spec, run)
                for attempt in sorted(runs)[:-2]:
                    del runs[attempt]
        if run.finished is not None:
            found.end(run)
        return found

    def consumption(self, name: str, resource: str) -> float:
        """Returns what the programs of the present run of a container use of a resource, see `Consumption`."""
        runs = self._runs.get(name)
        return runs[max(runs)].consumption.amount(resource) if runs else 0.0

    def _make_container(self, spec: StoredObject, run: Run) -> Container:
        runtime = self._runtime
        context = ContainerContext(
            lambda: self.pod,
            runtime.clock,
            lambda: runtime.behaviour_of(self.pod, spec),
            self._make_files,
            lambda: self._environment_of(spec),
            self.network,
            lambda: runtime.images.find(spec.get("image") or ""),
            runtime.call_api_server,
            lambda: self._find_shared_processes(spec),
            lambda container, code: runtime.on_program_exit(self.pod, container, code),
        )
        return Container(spec, run, context)

    def _find_shared_processes(self, spec: StoredObject) -> ProcessNamespace | None:
        """Returns the PID namespace that a container shares with others; None if it has its own."""
        if self.pod["spec"].get("shareProcessNamespace"):
            if self._processes is None:
                self._processes = ProcessNamespace(has_pause=True)
            return self._processes
        if not spec.get("targetContainerName"):
            return None
        try:
            target = self._runtime.container(self.pod, spec["targetContainerName"])
        except KubeletError:
            return None
        target.main.catch_up()
        return target.processes

    def _environment_of(self, spec: StoredObject) -> dict[str, str]:
        """Returns the variables of a container: those of its image, unless the pod sets them, and all others."""
        made = environment(self.pod, spec, self._runtime.cluster, self.node, self.volumes.read_file)
        image = self._runtime.images.find(spec.get("image") or "")
        given = {one["name"] for one in spec.get("env") or ()}
        for name, value in image.environment.items() if image is not None else ():
            if name not in given and (name not in made or name in ("PATH", "HOME")):
                made[name] = value
        return made

    def _make_files(self, container: Container) -> FileSystem:
        """Returns the files of a container: those of its image, with the mounts of volumes, /proc and the cgroup."""
        root = root_of(container.spec.get("image", ""), container.run.started.timestamp(), container.image)
        writable = FileSystem(root, self._timestamp, Space(container.memory_bound))
        install(self.pod, writable, self.network.resolver())
        mount_cgroup(writable, lambda: self._resources_of(container))
        mount_proc(
            writable,
            lambda: self.pod,
            container.spec,
            lambda: (container.uid, container.gid, container.groups),
            lambda: self._oom_score_of(container),
        )
        self.volumes.mount(container.spec, container.environment, writable)
        if container.spec.get("terminationMessagePath"):
            writable.mount(container.spec["terminationMessagePath"], File(0o666, mtime=self._timestamp()))
        if container.read_only_root:
            writable.mounts["/"] = replace(writable.mounts["/"], read_only=True)
        self._spaces[container.name] = writable.space, writable.space.used
        if "ephemeral-storage" in ((container.spec.get("resources") or {}).get("limits") or {}):
            self._roots[container.name] = root
        return writable

    def written_bytes(self) -> int:
        """Returns the bytes that the programs of the pod have written to files, those of volumes included."""
        return sum(space.used - initial for space, initial in self._spaces.values())

    def written_bytes_of(self, container: str) -> int:
        """Returns the bytes of the files in a container with limited storage, those of its image and of volumes excluded."""
        return bytes_of(self._roots[container]) if container in self._roots else 0

    def _resources_of(self, container: Container) -> StoredObject:
        """Returns the present resources of a container; it has the limits of its pod if it has none of its own."""
        pod = self.pod
        status = status_of(pod, container.name) or {}
        found: StoredObject = status.get("resources") or container.spec.get("resources") or {}
        whole = actuated_resources(pod)
        return found if whole is None else {**found, "limits": effective_limits(whole, found)}

    def _oom_score_of(self, container: Container) -> int:
        """Returns the adjustment of the scores of a container's processes when memory is short; 0 without a node."""
        memory = (((self.node or {}).get("status") or {}).get("capacity") or {}).get("memory")
        spec = {**container.spec, "resources": self._resources_of(container)}
        return 0 if memory is None else oom_score_adjustment(self.pod, spec, parse(str(memory)).value())

    def catch_up(self) -> bool:
        """Ends the containers whose runs have ended by the status of the pod. Returns whether the pod is there."""
        found = self._read_pod()
        if found is self._last and found is not None:
            return True
        if found is not None:
            self._last = found
        if found is None:
            self.close()
        now = self._runtime.clock.now()
        for name, runs in list(self._runs.items()):
            for container in [one for one in list(runs.values()) if one.is_running]:  # another thread may add one
                status = None if found is None else status_of(found, name)
                run = None if status is None else run_of(status)
                if run is not None and run.attempt == container.run.attempt and run.finished is None:
                    continue
                if run is None or run.attempt != container.run.attempt:
                    run = replace(container.run, finished=now, exit_code=KILLED)
                container.end(run)
        return found is not None

    def _get_token(self, audience: str, seconds: int) -> str:
        """Returns a token of the pod's service account, which is renewed after 80 % of its lifetime; "" if there is no
        account."""
        found = self._tokens.get((audience, seconds))
        now = self._timestamp()
        if found is None or now > found[1]:
            found = self._tokens[audience, seconds] = (
                self._runtime.request_token(self.pod, audience, seconds),
                now + seconds * 0.8,
            )
        return found[0]

    # --- Ports --------------------------------------------------------------------------------------------------------

    def _behaviours(self) -> list[tuple[StoredObject, Behaviour]]:
        pod = self.pod
        return [(one, self._runtime.behaviour_of(pod, one)) for one in pod["spec"]["containers"]]

    def _server_of(self, port: int) -> Destination | PortHandler | None:
        """Returns the server that a test or the image has for a port. Raises OSError if nothing listens there."""
        found = self._behaviours()
        for _, behaviour in found:
            if port in behaviour.ports:
                served = behaviour.ports[port]
                if served is None:
                    raise oserror(errno.ECONNREFUSED)
                return served
        images = [(spec, self._runtime.images.find(spec.get("image") or "")) for spec, _ in found]
        for _, image in images:
            if image is not None and port in image.serves:
                served = image.serves[port]
                if served is None:
                    raise oserror(errno.ECONNREFUSED)
                return served
        found = [(spec, behaviour) for spec, behaviour in found if not self._serves_nothing(spec)]
        declared = {one["containerPort"]: spec for spec, _ in found for one in spec.get("ports") or ()}
        declared |= {_WELL_KNOWN[name]: spec for spec, _ in found if (name := base_name(spec.get("image", ""))) in _WELL_KNOWN}
        has_rules = any(behaviour.ports for _, behaviour in found)
        if not found or ((declared or has_rules) and port not in declared):
            raise oserror(errno.ECONNREFUSED)
        spec = declared.get(port) or found[0][0]
        return default_application(self.pod, spec, port, lambda: self._runtime.container(self.pod, spec["name"]).files)

    def _serves_nothing(self, spec: StoredObject) -> bool:
        """Reports whether only the programs of a container listen at its ports: their image is known, and no web server."""
        return self._runtime.images.runs(spec) and base_name(spec.get("image", "")) not in _WELL_KNOWN

    def destination(self, port: int) -> Destination | None:
        """Returns the destination of HTTP requests to a port; None if nothing listens there."""
        try:
            if not self.listens(port):
                served = self._server_of(port)
                if isinstance(served, tuple):
                    return served
                from fakekube.nodes.runtime.ports import is_application

                if served is not None and is_application(served):
                    return served  # type: ignore[return-value]
        except OSError:
            return None
        if port in self.network.listeners.secure:
            return self.bridge(port)
        from fakekube.nodes.runtime.ports import over_connection

        return over_connection(lambda: self.connect(port))

    def bridge(self, port: int) -> tuple[str, int] | None:
        """Returns an address of this machine that leads to a port; None if nothing listens there."""
        with self._lock:
            found = self._bridges.get(port)
            if found is not None:
                return found.address
        try:
            self.connect(port).from_client.close()
        except OSError:
            return None
        from fakekube.nodes.runtime.listeners import Bridge

        with self._lock:
            if port not in self._bridges:
                self._bridges[port] = Bridge(lambda: self.connect(port, Peer(is_front_proxy=True)))
            return self._bridges[port].address

    def stop(self) -> None:
        """Ends the programs of all containers when the cluster stops."""
        with self._lock:
            for runs in self._runs.values():
                for container in runs.values():
                    container.stop()

    def close(self) -> None:
        """Ends the bridges to the ports of the pod, and the connections that no program serves."""
        with self._lock:
            found, self._bridges = self._bridges, {}
        for one in found.values():
            one.close()
        for connection in list(self._served):
            connection.disconnect()

    def listens(self, port: int, protocol: str = "TCP") -> bool:
        """Reports whether a program of a container listens at a port; first runs the programs up to now."""
        if self.network.listeners.has(port, protocol):
            return True
        if (self.pod.get("status") or {}).get("phase") == "Running":
            for one in self.pod["spec"]["containers"]:
                if one.get("command") or one.get("args") or self._runtime.images.runs(one):
                    self._runtime.container(self.pod, one["name"]).main.catch_up()
        return self.network.listeners.has(port, protocol)

    def send(self, port: int, data: bytes, peer: Peer) -> bytes | None:
        """Sends a datagram to a port. Returns the response; None if there is none. Raises OSError if nothing listens there."""
        self.listens(port, "UDP")
        return self.network.listeners.send(port, data, peer)

    def connect(self, port: int, peer: Peer | None = None) -> Connection:
        """Connects to a port. Raises OSError if nothing listens there."""
        peer = peer or Peer()
        if self.listens(port):
            return self.network.listeners.connect(port, peer)
        from fakekube.nodes.runtime.ports import serve

        served = self._server_of(port)
        if served is None:
            raise oserror(errno.ECONNREFUSED)
        connection = serve(served, peer)
        self._served.add(connection)
        return connection


def run_of(status: StoredObject, *, previous: bool = False) -> Run | None:
    """Returns the run in a container status, or the previous one; None if there is none."""
    state, attempt = status.get("state") or {}, status.get("restartCount", 0)
    last = (status.get("lastState") or {}).get("terminated")
    if previous:
        return None if last is None else _terminated_run(last, attempt if "waiting" in state else attempt - 1)
    if state.get("running"):
        return Run(attempt, datetime.fromisoformat(state["running"]["startedAt"]))
    if state.get("terminated"):
        return _terminated_run(state["terminated"], attempt)
    return None if last is None else _terminated_run(last, attempt)


def _terminated_run(state: StoredObject, attempt: int) -> Run:
    """Returns the run that a terminated state tells of."""
    started, finished = state.get("startedAt"), state.get("finishedAt")
    end = datetime.fromisoformat(finished) if finished else datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return Run(attempt, datetime.fromisoformat(started) if started else end, end, state.get("exitCode", 0))
