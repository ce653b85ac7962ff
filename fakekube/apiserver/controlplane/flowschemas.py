"""Writes the condition `Dangling` of FlowSchemas, which says whether their priority level exists.

Specified by: k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go (presyncFlowSchemaStatus).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import StatusError
from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.apis.validation.objectmeta import condition, with_condition_since
from fakekube.apiserver.controlplane.control_loop import ControlLoop
from fakekube.base.clock import Clock
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object
from fakekube.store import Store

_FLOW_CONTROL, SCHEMAS, LEVELS = "flowcontrol.apiserver.k8s.io", "flowschemas", "prioritylevelconfigurations"
_CONFIG_CONSUMER = "api-priority-and-fairness-config-consumer-v1"

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
        "manager": _CONFIG_CONSUMER,
        "operation": "Apply",
        "apiVersion": f"{_FLOW_CONTROL}/v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": _DANGLING_FIELDS,
        "subresource": "status",
    }
    others = [one for one in entries if one["manager"] != _CONFIG_CONSUMER]
    return sorted([*others, ours], key=lambda one: (one["operation"], one.get("time", ""), one["manager"]))
