"""The stage controller: for each object of a kind with stages, it matches a stage, waits for its delay, and does its actions.

Stages come from `cluster.stages`, and from Stage objects while their definition is installed. While there are stages for pods
(or nodes), kubelets do not write the status of pods (or nodes). A change of an object cancels the stage that it waits for; a
change of the stages cancels those of all objects.

Invariant: stages apply only to pods on existing nodes with a kubelet.

Specified by: sigs.k8s.io/kwok/pkg/kwok/controllers/{stage_controller,pod_controller,node_controller}.go.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final

from fakekube.apimachinery.patch import APPLY_YAML
from fakekube.apis.well_known import KUBELET_PORT
from fakekube.apiserver.http.nonresource_paths import git_version
from fakekube.base.golang.timestamps import print_micro_time
from fakekube.base.objects import Object, StoredObject, group_resource
from fakekube.controllers.client import ApiError, UnknownResource
from fakekube.controllers.node_lifecycle import has_kubelet
from fakekube.controllers.reconciler import Key, Reconciler
from fakekube.nodes.addresses import Addresses
from fakekube.nodes.kubelet_node_status import HEALTHY
from fakekube.nodes.node_state import state_of
from fakekube.nodes.stages import StageError
from fakekube.nodes.stages.go_templates import Function
from fakekube.nodes.stages.stage import Action, Stage, match_stage, new_stage

STAGES: Final = "stages.kwok.x-k8s.io"
#: The key that makes the controller reload all stages.
RELOAD: Final = Key("", "")
#: Stands between resource and namespace in a key.
_SEPARATOR: Final = "|"


@dataclass(slots=True)
class _Waiting:
    """The stage that an object waits for, and its time."""

    version: str
    stage: Stage
    due: float


class StageController(Reconciler):
    """Plays stages. Keys are objects, as `resource|namespace` and name; RELOAD stands for the stages themselves."""

    name: ClassVar[str] = "kwok-stage-controller"
    program: ClassVar[str] = "kwok"
    component: ClassVar[str] = "kwok_controller"
    watches: ClassVar[tuple[str, ...]] = ()

    def on_start(self) -> None:
        self._stages: dict[str, list[Stage]] = {}
        self._unserved: list[Stage] = []
        """The stages of kinds that are not served."""
        self._waiting: dict[str, _Waiting] = {}
        self._addresses = Addresses()
        self._random = random.Random(0)
        self._start_time = self._micro_time()
        self._watch_stages()
        self.enqueue(RELOAD)

    def on_resources_changed(self) -> None:
        self._watch_stages()
        if any(self._find_resource(stage) is not None for stage in self._unserved):
            self.enqueue(RELOAD)

    def _watch_stages(self) -> None:
        """Watches Stage objects, if their definition is installed."""
        with suppress(UnknownResource):
            self.also_watch(STAGES)

    def keys(self, resource: str, event_type: str, obj: StoredObject, old: StoredObject | None) -> Iterable[Key]:
        if resource == STAGES:
            return (RELOAD,)
        metadata = obj["metadata"]
        if event_type == "DELETED":
            self._waiting.pop(metadata["uid"], None)
            self._addresses.release(metadata["uid"])
            return ()
        return (_key_of(resource, obj),) if resource in self._stages else ()

    # --- Stages -------------------------------------------------------------------------------------------------------

    def _reload_stages(self) -> None:
        found: dict[str, list[Stage]] = {}
        state = state_of(self.context)
        self._unserved = []
        for stage in (*state.stages.values(), *self._from_stage_objects()):
            name = self._find_resource(stage)
            if name is None:
                self._unserved.append(stage)
            else:
                found.setdefault(name, []).append(stage)
        self._stages = found
        self._waiting.clear()
        state.staged.clear()
        state.staged.update(found)
        for name in found:
            self.also_watch(name)
            for obj in self.cache.list(name):
                self._hold_addresses(obj)
                self.enqueue(_key_of(name, obj))

    def _find_resource(self, stage: Stage) -> str | None:
        """Returns the resource of a stage's objects, named as in `watches`; None if it is not served."""
        try:
            resource = self.client.resource(stage.kind, stage.api_version)
        except UnknownResource:
            return None
        return group_resource(resource.group, resource.plural)

    def _from_stage_objects(self) -> Iterator[Stage]:
        """Yields the stages that Stage objects define; an unsupported one gets an event."""
        for obj in self.cache.list(STAGES) if STAGES in self.cache else ():
            try:
                stage = new_stage(obj)
            except StageError as error:
                self.recorder.event(obj, "Warning", "StageNotSupported", str(error))
                continue
            if stage is not None:
                yield stage

    # --- Objects ------------------------------------------------------------------------------------------------------

    def reconcile(self, key: Key) -> None:
        if key == RELOAD:
            self._reload_stages()
            return
        resource, _, namespace = key.namespace.partition(_SEPARATOR)
        obj = self.cache.get(resource, namespace, key.name)
        if obj is None or not self._is_managed(resource, obj):
            return
        metadata = obj["metadata"]
        now = self.clock.monotonic()
        waiting = self._waiting.get(metadata["uid"])
        if waiting is None or waiting.version != metadata["resourceVersion"]:
            stage = match_stage(self._stages.get(resource, ()), obj, self._random)
            if stage is None:
                self._waiting.pop(metadata["uid"], None)
                return
            delay = stage.delay_for(obj, self.clock.now(), self._random)
            waiting = self._waiting[metadata["uid"]] = _Waiting(metadata["resourceVersion"], stage, now + delay)
        if waiting.due > now:
            self.requeue_after(key, waiting.due - now)
            return
        del self._waiting[metadata["uid"]]
        self._play_stage(resource, obj, waiting.stage)
        if waiting.stage.immediate:
            self.enqueue(key)

    def _is_managed(self, resource: str, obj: Object) -> bool:
        """Reports whether stages apply to an object: see the invariant of the module."""
        if resource == "nodes":
            return has_kubelet(obj)
        if resource != "pods":
            return True
        node = self.cache.get("nodes", "", obj["spec"].get("nodeName") or "")
        return node is not None and has_kubelet(node)

    def _play_stage(self, resource: str, obj: Object, stage: Stage) -> None:
        try:
            actions = stage.actions(obj, self._functions(obj))
        except StageError as error:
            self.recorder.event(obj, "Warning", "StageFailed", f"Stage {stage.name}: {error}")
            return
        for action in actions:
            self._run_action(resource, obj, action)

    def _run_action(self, resource: str, obj: Object, action: Action) -> None:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace")
        if action.kind == "event":
            event = action.data
            self.recorder.event(obj, event.get("type") or "Normal", event.get("reason") or "", event.get("message") or "")
        elif action.kind == "delete":
            self.client.delete(resource, metadata["name"], namespace=namespace, gracePeriodSeconds=0)
        elif action.kind == "apply":
            self._apply_template(obj, action)
        elif action.data:
            path = self.client.path(self.client.resource(resource), namespace, metadata["name"], action.subresource)
            self.client.call("PATCH", path, action.data, content_type=action.type)

    def _apply_template(self, obj: Object, action: Action) -> None:
        """Creates the object of a template, or patches it if it exists. Raises ApiError."""
        data = dict(action.data)
        if "namespace" in obj["metadata"]:
            data["metadata"] = {"namespace": obj["metadata"]["namespace"], **data["metadata"]}
        resource = self.client.resource(data["kind"], data["apiVersion"])
        if not action.subresource:
            try:
                self.client.create(data)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
            else:
                return
        path = self.client.path(resource, data["metadata"].get("namespace"), data["metadata"]["name"], action.subresource)
        query = {"fieldManager": "kwok", "force": "true"} if action.type == APPLY_YAML else None
        self.client.call("PATCH", path, data, query, content_type=action.type)

    # --- Functions of templates ---------------------------------------------------------------------------------------

    def _micro_time(self) -> str:
        return print_micro_time(self.clock.now())

    def _hold_addresses(self, obj: Object) -> None:
        for one in (obj.get("status") or {}).get("podIPs") or ():
            self._addresses.hold(obj["metadata"]["uid"], one["ip"])

    def _functions(self, obj: Object) -> dict[str, Function]:
        """Returns the functions that templates can call for an object, by the names that kwok gives them."""

        def node_ip(name: str) -> str:
            node = self.cache.get("nodes", "", name)
            addresses = ((node or {}).get("status") or {}).get("addresses") or ()
            known: list[str] = [one["address"] for one in addresses if one["type"] == "InternalIP"]
            known += self._addresses.list_for(f"node/{name}")
            return known[0] if known else self._addresses.node(name)

        def pod_ip(node: str, host_network: bool, uid: str, *names: str) -> str:
            if host_network:
                return node_ip(node)
            return (self._addresses.list_for(uid) or self._addresses.pod(uid, ()))[0]

        uid, name = obj["metadata"].get("uid", ""), obj["metadata"]["name"]
        node_name = (obj.get("spec") or {}).get("nodeName", "") if obj["kind"] == "Pod" else name
        return {
            "Now": self._micro_time,
            "StartTime": lambda: self._start_time,
            "Version": lambda: git_version(self.context.version),
            "NodeIP": lambda: node_ip(node_name),
            "NodeName": lambda: node_name,
            "NodePort": lambda: KUBELET_PORT,
            "NodeIPWith": node_ip,
            "NodeIPsWith": lambda name: [node_ip(name)],
            "PodIP": lambda: pod_ip(node_name, False, uid),
            "PodIPWith": pod_ip,
            "PodIPsWith": lambda *arguments: [pod_ip(*arguments)],
            "NodeConditions": _node_conditions,
        }


def _node_conditions() -> list[Object]:
    """Returns the conditions of a healthy node, Ready first."""
    found = [
        {"type": type_, "status": status, "reason": reason, "message": message}
        for type_, (status, reason, message) in HEALTHY.items()
    ]
    network = {
        "type": "NetworkUnavailable",
        "status": "False",
        "reason": "RouteCreated",
        "message": "RouteController created a route",
    }
    return [found[-1], *found[:-1], network]


def _key_of(resource: str, obj: StoredObject) -> Key:
    metadata = obj["metadata"]
    return Key(f"{resource}{_SEPARATOR}{metadata.get('namespace', '')}", metadata["name"])
