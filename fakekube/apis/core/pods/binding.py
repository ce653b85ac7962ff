"""The subresource binding of pods, which assigns a pod to a node, and the resource bindings, which does the same.

Specified by: pkg/registry/core/pod/storage/storage.go (BindingREST).
"""

from __future__ import annotations

from fakekube.apimachinery.errors import FieldError, StatusError, status
from fakekube.apimachinery.errors.field import aggregate, not_supported, required
from fakekube.apis.core.pods.defaults import drop_old_annotations
from fakekube.apis.rest.strategy import WriteContext, check_key_name
from fakekube.apis.validation.objectmeta import set_condition
from fakekube.apis.validation.rules import SUBDOMAIN, from_minor
from fakekube.base.objects import Object

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bind_named(context: WriteContext, _name: str, body: Object) -> Object:
    """Handles a POST to the bindings of a namespace; the body has the name of the pod, and its uid is not checked."""
    meta = {field: value for field, value in (body.get("metadata") or {}).items() if field != "uid"}
    return bind(context, meta.get("name", ""), {**body, "metadata": meta})


def bind(context: WriteContext, name: str, body: Object) -> Object:
    """Handles a POST to pods/binding. Raises StatusError."""
    meta = body.get("metadata") or {}
    if meta.get("name", "") != name:
        raise status.bad_request("name in URL does not match name in Binding object")
    errors = _validate_target(body.get("target") or {})
    if errors:
        raise status.generic(500, "", aggregate(errors))
    context.check(body)
    check_key_name(name)

    def assign(pod: Object) -> Object:
        _check_preconditions(context, pod, meta)
        _check_unbound(pod)
        return _assign_pod(context, pod, body)

    if context.dry_run:
        assign(_get_pod(context, name))
    else:
        context.services.update("", "pods", context.namespace, name, assign)
    return SUCCESS


def _get_pod(context: WriteContext, name: str) -> Object:
    pod = context.services.get("", "pods", context.namespace, name)
    if pod is None:
        raise status.not_found("", "pods", name)
    return pod


def _validate_target(target: Object) -> list[FieldError]:
    """Validates the binding (ValidatePodBinding)."""
    kind = target.get("kind", "")
    errors = [] if kind in ("", "Node") else [not_supported("target.kind", kind, ("Node", "<empty>"))]
    name = target.get("name")
    if not name:
        return [*errors, required("target.name")]
    return errors + (SUBDOMAIN.run(name, "target.name") if from_minor(37) else [])


def _check_preconditions(context: WriteContext, pod: Object, expected: Object) -> None:
    meta = pod["metadata"]
    for field, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        value = expected.get(field)
        found = meta.get(field)
        if value and value != found:
            problem = status.precondition_failed(shown, value, found)
            prefix = "" if context.dry_run else "/registry"  # only the storage layer adds it
            key = f"{prefix}/pods/{context.namespace}/{meta['name']}"
            raise status.conflict("", "pods", meta["name"], status.invalid_object(key, problem))


def _check_unbound(pod: Object) -> None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if "deletionTimestamp" in pod["metadata"]:
        raise _binding_conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _binding_conflict(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _binding_conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _binding_conflict(name: str, problem: str) -> StatusError:
    return status.conflict("", "pods/binding", name, problem)


def _assign_pod(context: WriteContext, pod: Object, body: Object) -> Object:
    """Returns the pod with the node, and with the annotations of the binding and, with PodTopologyLabelsAdmission, its labels."""
    sent = body.get("metadata") or {}
    meta = dict(pod["metadata"])
    copied = ("labels", "annotations") if context.emulation.enabled("PodTopologyLabelsAdmission") else ("annotations",)
    for field in copied:
        if sent.get(field):
            meta[field] = {**(meta.get(field) or {}), **sent[field]}
    drop_old_annotations(meta)
    state = dict(pod.get("status") or {})
    if context.emulation.enabled("ClearingNominatedNodeNameAfterBinding"):
        state.pop("nominatedNodeName", None)
    state["conditions"] = set_condition(
        state.get("conditions") or (), {"type": "PodScheduled", "status": "True"}, context.clock.now()
    )
    spec = {**pod["spec"], "nodeName": body["target"]["name"]}
    return {**pod, "metadata": meta, "spec": spec, "status": state}
