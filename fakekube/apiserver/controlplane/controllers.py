"""The control loops that run inside kube-apiserver.

A loop writes what the API server itself maintains: the APIServices of served versions, the conditions and the resources of
CustomResourceDefinitions, the condition `Dangling` of FlowSchemas, the ConfigMap kube-system/extension-apiserver-authentication.
The real server has asynchronous controllers; here a loop runs in the thread that wrote one of its sources, right after the
write, so that the client sees its result as soon as it has the response.

Invariant: one thread at a time runs a loop; changes caused by its own writes are processed in the same run. After a write of a
definition, or of an object of a terminating one, the registry serves exactly the versions of the definitions in the store.

Specified by: pkg/controlplane/controller/{crdregistration,clusterauthenticationtrust};
k8s.io/kube-aggregator/pkg/controllers/autoregister (checkAPIService);
k8s.io/apiextensions-apiserver/pkg/controller/{status,establish,finalizer}, pkg/apiserver/customresource_handler.go;
k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go (presyncFlowSchemaStatus).
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson

from fakekube.apiextensions.definition import conditions
from fakekube.apimachinery import features
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.data import API_EXTENSIONS
from fakekube.apimachinery.errors import StatusError
from fakekube.apis.apiregistration import LOCAL_IS_AVAILABLE
from fakekube.apis.rest.cluster_access import Call, ClusterAccess, Recorded
from fakekube.apis.rest.resource import Registry, Resource
from fakekube.apis.validation.objectmeta import condition, with_condition, with_condition_since
from fakekube.apis.well_known import AUTO_REGISTER_MANAGED_LABEL, NAMESPACE_SYSTEM
from fakekube.base.chance import random_uuid
from fakekube.base.clock import Clock
from fakekube.base.depth import with_deep_stack
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object
from fakekube.net.streams import Source, subscribe_weakly
from fakekube.store import Reflector, Store


class ControlLoop:
    """A control loop that runs after every change of its sources, as long as something refers to it: the sources do not."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self._working = threading.RLock()
        self._busy = False
        subscribe_weakly(self, ControlLoop.refresh, sources)

    @with_deep_stack
    def refresh(self) -> None:
        """Runs steps until there is nothing left to do."""
        with self._working:
            if self._busy:  # a write of this loop has called it; the loop below processes the change
                return
            self._busy = True
            try:
                while self.step():
                    pass
            finally:
                self._busy = False

    def step(self) -> bool:
        """Reconciles once; returns whether there was anything to do."""
        raise NotImplementedError


API_REGISTRATION, API_SERVICES = "apiregistration.k8s.io", "apiservices"
ALWAYS = "true"

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
        if (obj["metadata"].get("labels") or {}).get(AUTO_REGISTER_MANAGED_LABEL) != ALWAYS or obj["spec"] == desired:
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
            "labels": {AUTO_REGISTER_MANAGED_LABEL: ALWAYS},
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


PLURAL = "customresourcedefinitions"


class CustomResourceDefinitionController(ControlLoop):
    """Serves the definitions of one cluster."""

    def __init__(self, store: Store[Document], registry: Registry, services: ClusterAccess, clock: Clock, call: Call) -> None:
        self._store, self._registry, self._services, self._clock, self._call = store, registry, services, clock, call
        self._bucket = store.bucket(f"{PLURAL}.{API_EXTENSIONS}")
        self._known = Reflector(self._bucket)
        self._changed: dict[str, None] = {}
        """The names of changed definitions. They stay until all are processed: `refresh` may start again with a deep stack."""
        self._served: dict[str, tuple[Object, list[Resource]]] = {}
        """Name → the last observed definition, and its served resources."""
        self._went_on = threading.Condition()
        self._due: dict[str, float] = {}
        """Names of terminating definitions that wait → until when, by the clock."""
        self._terminating: dict[str, str] = {}
        """Names of terminating definitions → the bucket with their objects."""
        super().__init__((self._bucket,))
        if self._bucket.count():
            self.refresh()

    def step(self) -> bool:
        """Processes every changed definition; returns whether there was one."""
        self._changed |= dict.fromkeys(self._known.catch_up())
        changed, present = self._changed, self._known.records
        deleted = [name for name in changed if name not in present]
        renamed = any(self._releases_names(name, present[name].value.object) for name in changed if name in present)
        for name in deleted:
            self._serve(name, {}, [])
        for name in [*present] if deleted or renamed else changed:  # because other definitions may accept released names
            if name in present:
                self._process(name, present[name].value.object)
        self._changed = {}
        return bool(changed)

    def _releases_names(self, name: str, obj: Object) -> bool:
        """Reports whether a definition has released names since it was last observed."""
        known = self._served.get(name)
        return known is not None and not conditions.names_of(known[0]) <= conditions.names_of(obj)

    def _all(self) -> Iterator[Object]:
        yield from (record.value.object for record in self._bucket.page().records)

    def _process(self, name: str, obj: Object) -> None:
        known = self._served.get(name)
        if known and known[1] and conditions.is_same_serving(known[0], obj):
            self._served[name] = (obj, known[1])
        else:
            self._serve(name, obj, self._resources_of(obj))
        change = conditions.next_state(obj, self._all(), self._print_now())
        if change is not None:
            self._write(name, obj, change)
        elif conditions.is_ending(obj) and not self._waits(name):
            self._finalize(name, obj)

    def _waits(self, name: str) -> bool:
        """Reports whether a terminating definition is still to be seen, by the pace of the cluster; a timer goes on with it."""
        if not self._services.pace or self._clock.held:
            return False
        now = self._clock.monotonic()
        due = self._due.get(name)
        if due is None:
            self._due[name] = due = now + self._services.pace
            self._clock.call_at(due, partial(_go_on, weakref.ref(self), name), what="the end of a definition")
        elif due <= now:
            del self._due[name]
        return due > now

    def go_on(self, name: str) -> None:
        """Processes a terminating definition again."""
        with self._working:
            self._changed[name] = None
            self.refresh()
        with self._went_on:
            self._went_on.notify_all()

    @property
    def waits(self) -> bool:
        """Reports whether a terminating definition waits for the pace of the cluster."""
        return bool(self._due) and not self._clock.held

    def wait(self, timeout: float) -> bool:
        """Waits until no definition waits. Returns False after `timeout` real seconds."""
        with self._went_on:
            return self._went_on.wait_for(lambda: not self.waits, max(timeout, 0.0))

    def _resources_of(self, obj: Object) -> list[Resource]:
        if not conditions.is_served(obj):
            return []
        # Imported with the first definition: that is slow, and most clusters have none.
        from fakekube.apiextensions.resource import resources_of

        emulation = self._services.emulation
        with features.emulating(emulation):
            return resources_of(obj, self._call, emulation)

    def _serve(self, name: str, obj: Object, resources: list[Resource]) -> None:
        known = self._served.get(name)
        old = known[1] if known else []
        if old or resources:
            self._registry.replace([(r.group, r.version, r.plural) for r in old], resources)
        if resources and not old:
            self._store.bucket(resources[0].bucket).forget()  # the watch cache of a new resource has no history
        if obj:
            self._served[name] = (obj, resources)
        else:
            self._served.pop(name, None)

    def _finalize(self, name: str, obj: Object) -> None:
        """Deletes the remaining objects of a terminating definition, then removes its finalizer."""
        bucket_name = f"{obj['spec']['names']['plural']}.{obj['spec']['group']}"
        bucket = self._store.bucket(bucket_name)
        for record in bucket.page().records:
            self._delete_instance(bucket_name, record.key)
        if bucket.count():
            if name not in self._terminating:
                self._terminating[name] = bucket_name
                bucket.subscribe(self._instances_changed)
            return
        if self._terminating.pop(name, None):
            bucket.unsubscribe(self._instances_changed)
        if conditions.is_released(conditions.finalize(obj, self._print_now())):
            self._services.remove(API_EXTENSIONS, PLURAL, "", name)
        else:
            self._write(name, obj, partial(conditions.finalize, now=self._print_now()))

    def _instances_changed(self) -> None:
        with self._working:
            if self._busy:
                return
            for name in list(self._terminating):
                known = self._served.get(name)
                if known is not None and not self._store.bucket(self._terminating[name]).count():
                    self._finalize(name, known[0])

    def _delete_instance(self, bucket_name: str, key: str) -> None:
        """Removes an object, or marks it as deleted if it has finalizers."""
        bucket = self._store.bucket(bucket_name)
        record = bucket.get(key)
        if record is None:
            return
        meta = record.value.object["metadata"]
        if not meta.get("finalizers"):
            bucket.commit(key, None, None)
        elif "deletionTimestamp" not in meta:
            marked = {**meta, "deletionGracePeriodSeconds": 0, "deletionTimestamp": self._print_now()}
            marked["generation"] = meta.get("generation", 0) + 1
            obj = {**record.value.object, "metadata": dict(sorted(marked.items()))}
            bucket.commit(key, None, lambda revision: _with_resource_version(obj, revision))

    def _write(self, name: str, seen: Object, change: conditions.Change) -> None:
        """Writes a definition, unless another client has changed it in the meantime: then it is processed again."""
        try:
            self._services.update(
                API_EXTENSIONS,
                PLURAL,
                "",
                name,
                lambda old: change(old) if old is seen else old,
                recorded=Recorded("status", self._clock.now()),
            )
        except StatusError:  # it has been deleted in the meantime
            return

    def _print_now(self) -> str:
        return print_time(self._clock.now())


def _go_on(reference: weakref.ref[CustomResourceDefinitionController], name: str) -> None:
    """Goes on with a definition if the cluster still exists: its clock must not keep it."""
    controller = reference()
    if controller is not None:
        controller.go_on(name)


def _with_resource_version(obj: Mapping[str, Any], revision: int) -> Document:
    return Document({**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}})


_FLOW_CONTROL, SCHEMAS, LEVELS = "flowcontrol.apiserver.k8s.io", "flowschemas", "prioritylevelconfigurations"
CONFIG_CONSUMER = "api-priority-and-fairness-config-consumer-v1"

_MEMBERS = ("lastTransitionTime", "message", "reason", "status", "type")
_DANGLING_FIELDS: Mapping[str, Any] = {
    "f:status": {"f:conditions": {'k:{"type":"Dangling"}': {".": {}, **{f"f:{name}": {} for name in _MEMBERS}}}}
}


class DanglingConditionController(ControlLoop):
    """Updates the condition `Dangling` of all FlowSchemas."""

    def __init__(self, store: Store[Document], services: ClusterAccess, clock: Clock) -> None:
        self._services, self._clock = services, clock
        self._schemas = store.bucket(f"{SCHEMAS}.{_FLOW_CONTROL}")
        super().__init__((self._schemas, store.bucket(f"{LEVELS}.{_FLOW_CONTROL}")))

    def step(self) -> bool:
        before = self._schemas.end
        for schema in list(self._services.list(_FLOW_CONTROL, SCHEMAS)):
            try:
                self._services.update(_FLOW_CONTROL, SCHEMAS, "", schema["metadata"]["name"], self._with_condition)
            except StatusError:  # it has been deleted in the meantime
                continue
        return self._schemas.end != before

    def _with_condition(self, old: Object) -> Object:
        level = old["spec"]["priorityLevelConfiguration"]["name"]
        found = self._services.get(_FLOW_CONTROL, LEVELS, "", level) is not None
        what = f"This FlowSchema references the PriorityLevelConfiguration object named {go_quote(level)}"
        state = {
            "status": "False" if found else "True",
            "reason": "Found" if found else "NotFound",
            "message": f"{what} and it exists" if found else f"{what} but there is no such object",
        }
        if state.items() <= condition(old, "Dangling").items():
            return old
        now = print_time(self._clock.now())
        metadata = {**old["metadata"], "managedFields": _with_dangling_applied(old["metadata"].get("managedFields") or [], now)}
        return with_condition_since({**old, "metadata": metadata}, type_="Dangling", **state, since=now)


def _with_dangling_applied(entries: list[Object], now: str) -> list[Object]:
    """Returns the managedFields after this apply."""
    ours = {
        "manager": CONFIG_CONSUMER,
        "operation": "Apply",
        "apiVersion": f"{_FLOW_CONTROL}/v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": _DANGLING_FIELDS,
        "subresource": "status",
    }
    others = [one for one in entries if one["manager"] != CONFIG_CONSUMER]
    return sorted([*others, ours], key=lambda one: (one["operation"], one.get("time", ""), one["manager"]))


# ---------------------------------------------------------------------------------------------------------------------
# Publishes the ConfigMap kube-system/extension-apiserver-authentication for extension API servers.
#
# It has the CA bundles of clients and of front proxies, and the names of the headers in which front proxies pass the user.
# Existing content is kept and merged with that of this server; a deleted ConfigMap is created again.
#
# Specified by: k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust.


NAME: Final = "extension-apiserver-authentication"
MANAGER: Final = "kube-apiserver"

_CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)


@dataclass(slots=True, frozen=True)
class ClusterAuthenticationInfo:
    """The authentication settings for extension API servers. Certificates are PEM, "" if there are none."""

    client_ca: str
    request_header_ca: str
    allowed_names: Sequence[str] = ()
    username_headers: Sequence[str] = ()
    uid_headers: Sequence[str] = ()
    group_headers: Sequence[str] = ()
    extra_prefixes: Sequence[str] = ()

    def data(self, existing: Mapping[str, str]) -> dict[str, str]:
        """Returns the data of the ConfigMap, merged with the existing data."""
        data = {"client-ca-file": _certificates(existing.get("client-ca-file", ""), self.client_ca)}
        authorities = _certificates(existing.get("requestheader-client-ca-file", ""), self.request_header_ca)
        if authorities:
            data["requestheader-client-ca-file"] = authorities
            for key, values in (
                ("allowed-names", self.allowed_names),
                ("username-headers", self.username_headers),
                ("uid-headers", self.uid_headers),
                ("group-headers", self.group_headers),
                ("extra-headers-prefix", self.extra_prefixes),
            ):
                name = f"requestheader-{key}"
                merged = list(dict.fromkeys((*_decode_list(existing.get(name, "")), *values)))
                if merged or key != "uid-headers":
                    data[name] = orjson.dumps(merged).decode()
        return {key: text for key, text in data.items() if text}


class ClusterAuthenticationTrustController(ControlLoop):
    """Creates and updates the ConfigMap."""

    def __init__(self, store: Store[Document], services: ClusterAccess, clock: Clock, info: ClusterAuthenticationInfo) -> None:
        self._services, self._clock, self._info = services, clock, info
        self._config_maps = store.bucket("configmaps")
        super().__init__((self._config_maps,))
        self.refresh()

    def step(self) -> bool:
        existing = self._services.get("", "configmaps", NAMESPACE_SYSTEM, NAME)
        if existing is None:
            return self._create()
        if self._info.data(existing.get("data") or {}) == existing.get("data"):
            return False
        try:
            self._services.update("", "configmaps", NAMESPACE_SYSTEM, NAME, self._with_data)
        except StatusError:  # it has been deleted in the meantime
            return True
        return False

    def _create(self) -> bool:
        data, now = self._info.data({}), print_time(self._clock.now())
        metadata = {
            "name": NAME,
            "namespace": NAMESPACE_SYSTEM,
            "uid": random_uuid(),
            "creationTimestamp": now,
            "managedFields": [_managed_fields(data, now)],
        }
        try:
            self._services.create("", "configmaps", NAMESPACE_SYSTEM, {"metadata": metadata, "data": data})
        except StatusError:  # another client has created it
            return True
        return False

    def _with_data(self, old: Object) -> Object:
        return {**old, "data": self._info.data(old.get("data") or {})}


def _managed_fields(data: Mapping[str, str], now: str) -> dict[str, Any]:
    fields: dict[str, Any] = {".": {}, **{f"f:{key}": {} for key in sorted(data)}}
    return {
        "manager": MANAGER,
        "operation": "Update",
        "apiVersion": "v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": fields},
    }


def _certificates(present: str, own: str) -> str:
    """Returns all certificates of both texts, each once."""
    return "".join(dict.fromkeys(f"{text.strip()}\n" for text in _CERTIFICATE.findall(present + "\n" + own)))


def _decode_list(encoded: str) -> list[str]:
    try:
        value = orjson.loads(encoded)
    except ValueError:
        return []
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
