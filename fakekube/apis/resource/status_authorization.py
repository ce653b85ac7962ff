"""Who may change the status of a ResourceClaim: allocation and users need the right to bind, devices that of their driver.

Specified by: pkg/registry/resource/utils.go (AuthorizedForBinding, AuthorizedForDeviceStatus); the gate
DRAResourceClaimGranularStatusAuthorization.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import forbidden
from fakekube.apimachinery.errors.status import describe_refusal, sanitise
from fakekube.apimachinery.errors.status import forbidden as status_forbidden
from fakekube.apis.rest.strategy import WriteContext
from fakekube.apis.well_known import NODE_NAME_KEY, SERVICE_ACCOUNT_USERNAME_PREFIX
from fakekube.base.objects import Object

_GROUP: Final = "resource.k8s.io"


def authorize_status(context: WriteContext, status: Object, old: Object) -> list[FieldError]:
    """Returns errors about changes of a status for which the user has no rights."""
    enabled = context.emulation.enabled
    if not enabled("DRAResourceClaimGranularStatusAuthorization"):
        return []
    errors = []
    status = context.resource.to_stored_form({"status": status}).get("status") or {}
    if any(status.get(name) != old.get(name) for name in ("allocation", "reservedFor")):
        path, verb = "status.allocation", context.verb
        if problem := _refusal(context, "binding", verb, "", ""):
            needed = f'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="{verb}"'
            errors.append(forbidden(path, f"{needed} permission: {problem}"))
    if "allocation" in status and enabled("DRAResourceClaimDeviceStatus"):
        errors += _authorize_devices(context, status, old)
    return errors


def _authorize_devices(context: WriteContext, status: Object, old: Object) -> list[FieldError]:
    """Returns errors about drivers whose devices have another status than before."""
    verbs = [f"arbitrary-node:{context.verb}"]
    if (node := _node_of(status["allocation"])) and _is_on_node(context, node):
        verbs.insert(0, f"associated-node:{context.verb}")
    errors = []
    for driver in sorted(_find_changed_drivers(status, old)):
        refusals = list(takewhile(bool, (_refusal(context, "driver", verb, context.namespace, driver) for verb in verbs)))
        if len(refusals) == len(verbs):
            needed = f'changing status.devices requires resource="resourceclaims/driver", verb="[{" ".join(verbs)}]"'
            errors.append(forbidden("status.devices", f"{needed} permission: {refusals[0]}"))
    return errors


def _find_changed_drivers(status: Object, old: Object) -> set[str]:
    now, before = _by_identity(status), _by_identity(old)
    return {key[0] for key in now.keys() | before.keys() if now.get(key) != before.get(key)}


def _by_identity(status: Object) -> dict[tuple[str, ...], Object]:
    fields = ("driver", "pool", "device", "shareID")
    return {tuple(one.get(name, "") for name in fields): one for one in status.get("devices") or ()}


def _node_of(allocation: Mapping[str, Any]) -> str:
    """Returns the only node that can use an allocation, if its selector names it; else ""."""
    terms: Sequence[Any] = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    if len(terms) != 1 or terms[0].get("matchExpressions"):
        return ""
    fields: Sequence[Any] = terms[0].get("matchFields") or ()
    is_name = len(fields) == 1 and (fields[0].get("key"), fields[0].get("operator")) == ("metadata.name", "In")
    values: Sequence[Any] = fields[0].get("values") or () if is_name else ()
    return str(values[0]) if len(values) == 1 else ""


def _is_on_node(context: WriteContext, node: str) -> bool:
    """Reports whether the user is a service account whose token is bound to a pod on a node."""
    return context.user.startswith(SERVICE_ACCOUNT_USERNAME_PREFIX) and list(context.extra.get(NODE_NAME_KEY) or ()) == [node]


def _refusal(context: WriteContext, subresource: str, verb: str, namespace: str, name: str) -> str:
    """Returns why the user may not do something with a part of claims; "" if it may."""
    asked = {"group": _GROUP, "version": context.resource.version, "resource": "resourceclaims", "subresource": subresource}
    allowed, reason = context.authorize({**asked, "verb": verb, "namespace": namespace, "name": name})
    if allowed:
        return ""
    refusal = describe_refusal(context.user, verb, "resourceclaims", subresource, group=_GROUP, namespace=namespace)
    problem = f"{sanitise(refusal)}: {reason}" if reason else sanitise(refusal)
    return status_forbidden(_GROUP, "resourceclaims", name, problem).message
