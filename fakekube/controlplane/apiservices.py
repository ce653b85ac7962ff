"""The APIServices that the server itself writes: those of definitions, and what all of them say of being available.

Every version that a definition serves is registered, and restored if somebody changes or deletes it; the label
`automanaged` says so, and takes an object out of our hands when it goes. Behind an APIService with a Service there is
never anybody to answer here: it says what is missing first.

Specified by: pkg/controlplane/controller/crdregistration, k8s.io/kube-aggregator/pkg/controllers/autoregister
(checkAPIService), pkg/controllers/status/remote.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from fakekube.clock import Clock
from fakekube.codecs.document import Document
from fakekube.controlplane.control_loop import ControlLoop
from fakekube.errors import StatusError
from fakekube.golang.quoting import go_quote
from fakekube.golang.timestamps import print_time
from fakekube.registry.cluster_access import ClusterAccess, Recorded
from fakekube.registry.strategy import Object
from fakekube.store import Reflector, Store
from fakekube.validation.conditions import condition, with_condition

__all__ = ["AutoRegisterController", "AvailableConditionController"]

GROUP, PLURAL = "apiregistration.k8s.io", "apiservices"
LABEL, ALWAYS = "kube-aggregator.kubernetes.io/automanaged", "true"

#: Of the group versions of definitions: they come after the built-in ones, and among each other by their names.
_PRIORITIES = {"groupPriorityMinimum": 1000, "versionPriority": 100}
_OWNED_FIELDS: Mapping[str, Any] = {
    "f:metadata": {"f:labels": {".": {}, f"f:{LABEL}": {}}},
    "f:spec": {"f:group": {}, "f:groupPriorityMinimum": {}, "f:version": {}, "f:versionPriority": {}},
}
_LOCAL = ("True", "Local", "Local APIServices are always available")


class AutoRegisterController(ControlLoop):
    """An APIService for every version that definitions serve."""

    def __init__(self, store: Store[Document], services: ClusterAccess, clock: Clock) -> None:
        self._services, self._clock = services, clock
        definitions = store.bucket("customresourcedefinitions.apiextensions.k8s.io")
        registered = store.bucket(f"{PLURAL}.{GROUP}")
        self._definitions, self._registered = Reflector(definitions), Reflector(registered)
        self._served: dict[str, dict[str, Object]] = {}
        """Name of a definition → the specs of its APIServices by their names."""
        self._wanted: dict[str, Object] = {}
        """All of these."""
        super().__init__((definitions, registered))

    def step(self) -> bool:
        touched = self._learn_what_is_served() | set(self._registered.catch_up())
        written = [name for name in sorted(touched) if self._put_right(name)]
        return bool(written)

    def _learn_what_is_served(self) -> set[str]:
        """The names of the APIServices that are to come, go or change."""
        before = self._wanted
        for name in self._definitions.catch_up():
            record = self._definitions.records.get(name)
            served = {} if record is None else _served(record.value.object["spec"])
            if served != self._served.get(name, {}):
                self._served[name] = served
                self._wanted = {path: spec for specs in self._served.values() for path, spec in specs.items()}
            if not served:
                self._served.pop(name, None)
        return set() if self._wanted is before else set(before.keys() ^ self._wanted.keys())

    def _put_right(self, name: str) -> bool:
        """Write one APIService as it is to be; was that needed?"""
        record, wanted = self._registered.records.get(name), self._wanted.get(name)
        if record is None:
            if wanted is not None:
                self._create(name, wanted)
            return wanted is not None
        obj = record.value.object
        if (obj["metadata"].get("labels") or {}).get(LABEL) != ALWAYS or obj["spec"] == wanted:
            return False
        if wanted is None:
            self._services.remove(GROUP, PLURAL, "", name)
        else:
            self._restore(name, wanted)
        return True

    def _create(self, name: str, spec: Object) -> None:
        now = print_time(self._clock.now())
        owner = {
            "manager": "kube-apiserver", "operation": "Update", "apiVersion": f"{GROUP}/v1", "time": now,
            "fieldsType": "FieldsV1", "fieldsV1": _OWNED_FIELDS,
        }
        metadata = {
            "name": name, "uid": str(uuid.uuid4()), "creationTimestamp": now, "labels": {LABEL: ALWAYS}, "managedFields": [owner],
        }
        try:
            self._services.create(GROUP, PLURAL, "", _available({"metadata": metadata, "spec": spec}, _LOCAL, now))
        except StatusError:  # somebody else was faster: looked at again
            return

    def _restore(self, name: str, spec: Object) -> None:
        try:
            self._services.update(
                GROUP, PLURAL, "", name, lambda old: {**old, "spec": spec}, recorded=Recorded("", self._clock.now())
            )
        except StatusError:  # it has gone meanwhile
            return


class AvailableConditionController(ControlLoop):
    """The condition of the APIServices that have a Service."""

    def __init__(self, store: Store[Document], services: ClusterAccess, clock: Clock) -> None:
        self._services, self._clock = services, clock
        self._bucket = store.bucket(f"{PLURAL}.{GROUP}")
        self._registered = Reflector(self._bucket)
        self._remote: set[str] = set()
        """Names of the APIServices that have a Service."""
        super().__init__((self._bucket, store.bucket("services"), store.bucket("endpointslices.discovery.k8s.io")))

    def step(self) -> bool:
        before = self._bucket.end
        for name in self._registered.catch_up():
            record = self._registered.records.get(name)
            if record is not None and "service" in record.value.object["spec"]:
                self._remote.add(name)
            else:
                self._remote.discard(name)
        for name in sorted(self._remote):
            self._judge(name)
        return self._bucket.end != before

    def _judge(self, name: str) -> None:
        def judged(old: Object) -> Object:
            if "service" not in old["spec"]:
                return old
            known = condition(old, "Available")
            state = self._state(old["spec"])
            if state == (known.get("status"), known.get("reason"), known.get("message")):
                return old
            return _available(old, state, print_time(self._clock.now()))

        try:
            self._services.update(GROUP, PLURAL, "", name, judged, recorded=Recorded("status", self._clock.now()))
        except StatusError:  # it has gone meanwhile
            return

    def _state(self, spec: Object) -> tuple[str, str, str]:
        """(status, reason, message) of the condition: what is missing first."""
        reference = spec["service"]
        namespace, name, number = reference["namespace"], reference["name"], reference["port"]
        what = f"service/{name} in {go_quote(namespace)}"
        service = self._services.get("", "services", namespace, name)
        if service is None:
            return "False", "ServiceNotFound", f"{what} is not present"
        if service["spec"].get("type") == "ClusterIP":
            port = next((one for one in service["spec"].get("ports") or () if one["port"] == number), None)
            if port is None:
                return "False", "ServicePortError", f"{what} is not listening on port {number}"
            slices = self._slices(namespace, name)
            if not slices:
                return "False", "EndpointsNotFound", f"cannot find endpointslices for {what}"
            if not any(_serves(one, port.get("name", "")) for one in slices):
                text = f"endpointslices for {what} have no addresses with port name {go_quote(port.get('name', ''))}"
                return "False", "MissingEndpoints", text
        address = f"{service['spec'].get('clusterIP', '')}:{number}"
        url = f"https://{address}/apis/{spec['group']}/{spec['version']}"
        refused = f"Get {go_quote(url)}: dial tcp {address}: connect: connection refused"
        return "False", "FailedDiscoveryCheck", f"failing or missing response from {url}: {refused}"

    def _slices(self, namespace: str, service: str) -> list[Object]:
        found = self._services.list("discovery.k8s.io", "endpointslices", namespace)
        return [one for one in found if (one["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == service]


def _served(spec: Object) -> dict[str, Object]:
    """Name → spec of the APIServices for what one definition serves."""
    return {
        f"{version['name']}.{spec['group']}": {"group": spec["group"], "version": version["name"], **_PRIORITIES}
        for version in spec["versions"]
        if version["served"]
    }


def _serves(endpoint_slice: Object, port: str) -> bool:
    """Has it an endpoint that is ready, and a port of this name?"""
    ready = any((one.get("conditions") or {}).get("ready", True) for one in endpoint_slice.get("endpoints") or ())
    ports = endpoint_slice.get("ports") or ()
    return ready and any(one.get("name") == port and one.get("port") is not None for one in ports)


def _available(obj: Object, state: tuple[str, str, str], now: str) -> Object:
    """The APIService with the condition."""
    status, reason, message = state
    return with_condition(obj, type_="Available", status=status, reason=reason, message=message, now=now)
