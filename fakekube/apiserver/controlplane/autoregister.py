"""Registers the APIServices of the group versions that definitions serve.

Specified by: pkg/controlplane/controller/crdregistration; k8s.io/kube-aggregator/pkg/controllers/autoregister (checkAPIService).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import StatusError
from fakekube.apis.apiregistration import LOCAL_IS_AVAILABLE
from fakekube.apis.rest.cluster_access import ClusterAccess, Recorded
from fakekube.apis.validation.objectmeta import with_condition
from fakekube.apis.well_known import AUTO_REGISTER_MANAGED_LABEL
from fakekube.apiserver.controlplane.control_loop import ControlLoop
from fakekube.base.chance import random_uuid
from fakekube.base.clock import Clock
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object
from fakekube.store import Reflector, Store

API_REGISTRATION, API_SERVICES = "apiregistration.k8s.io", "apiservices"
_ALWAYS = "true"

#: The priorities of the group versions of definitions: after the built-in ones, and by name among each other.
_PRIORITIES = {"groupPriorityMinimum": 1000, "versionPriority": 100}
_CONDITION_FIELDS: Mapping[str, Any] = {
    "f:metadata": {"f:labels": {".": {}, f"f:{AUTO_REGISTER_MANAGED_LABEL}": {}}},
    "f:spec": {"f:group": {}, "f:groupPriorityMinimum": {}, "f:version": {}, "f:versionPriority": {}},
}
_LOCAL = ("True", "Local", LOCAL_IS_AVAILABLE)


class AutoRegisterController(ControlLoop):
    """Keeps an APIService for every version that definitions serve."""

    def __init__(self, store: Store[Document], services: ClusterAccess, clock: Clock) -> None:
        self._services, self._clock = services, clock
        definitions = store.bucket("customresourcedefinitions.apiextensions.k8s.io")
        registered = store.bucket(f"{API_SERVICES}.{API_REGISTRATION}")
        self._definitions, self._registered = Reflector(definitions), Reflector(registered)
        self._served: dict[str, dict[str, Object]] = {}
        """Name of a definition → the specs of its APIServices by their names."""
        self._desired: dict[str, Object] = {}
        """Name of an APIService → its spec, for all definitions."""
        super().__init__((definitions, registered))

    def step(self) -> bool:
        touched = self._update_desired() | set(self._registered.catch_up())
        written = [name for name in sorted(touched) if self._check_api_service(name)]
        return bool(written)

    def _update_desired(self) -> set[str]:
        """Reads changed definitions. Returns the names of the APIServices to create, delete or change."""
        before = self._desired
        for name in self._definitions.catch_up():
            record = self._definitions.records.get(name)
            served = {} if record is None else _api_service_specs(record.value.object["spec"])
            if served != self._served.get(name, {}):
                self._served[name] = served
                self._desired = {path: spec for specs in self._served.values() for path, spec in specs.items()}
            if not served:
                self._served.pop(name, None)
        return set() if self._desired is before else set(before.keys() ^ self._desired.keys())

    def _check_api_service(self, name: str) -> bool:
        """Writes one APIService, if necessary. Returns whether it was (checkAPIService)."""
        record, desired = self._registered.records.get(name), self._desired.get(name)
        if record is None:
            if desired is not None:
                self._create(name, desired)
            return desired is not None
        obj = record.value.object
        if (obj["metadata"].get("labels") or {}).get(AUTO_REGISTER_MANAGED_LABEL) != _ALWAYS or obj["spec"] == desired:
            return False
        if desired is None:
            self._services.remove(API_REGISTRATION, API_SERVICES, "", name)
        else:
            self._restore(name, desired)
        return True

    def _create(self, name: str, spec: Object) -> None:
        now = print_time(self._clock.now())
        owner = {
            "manager": "kube-apiserver",
            "operation": "Update",
            "apiVersion": f"{API_REGISTRATION}/v1",
            "time": now,
            "fieldsType": "FieldsV1",
            "fieldsV1": _CONDITION_FIELDS,
        }
        metadata = {
            "name": name,
            "uid": random_uuid(),
            "creationTimestamp": now,
            "labels": {AUTO_REGISTER_MANAGED_LABEL: _ALWAYS},
            "managedFields": [owner],
        }
        try:
            self._services.create(
                API_REGISTRATION, API_SERVICES, "", _available({"metadata": metadata, "spec": spec}, _LOCAL, now)
            )
        except StatusError:  # another client has created it: checked again in the next step
            return

    def _restore(self, name: str, spec: Object) -> None:
        try:
            self._services.update(
                API_REGISTRATION,
                API_SERVICES,
                "",
                name,
                lambda old: {**old, "spec": spec},
                recorded=Recorded("", self._clock.now()),
            )
        except StatusError:  # it has been deleted in the meantime
            return


def _api_service_specs(spec: Object) -> dict[str, Object]:
    """Returns name → spec of the APIServices of one definition."""
    return {
        f"{version['name']}.{spec['group']}": {"group": spec["group"], "version": version["name"], **_PRIORITIES}
        for version in spec["versions"]
        if version["served"]
    }


def _available(obj: Object, state: tuple[str, str, str], now: str) -> Object:
    """Returns the APIService with the condition Available."""
    status, reason, message = state
    return with_condition(obj, type_="Available", status=status, reason=reason, message=message, now=now)
