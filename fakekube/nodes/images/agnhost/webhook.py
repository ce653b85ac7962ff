"""`agnhost webhook` and `agnhost crd-conversion-webhook`: the webhook servers of Kubernetes' tests."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from fakekube.base.golang.strconv import go_quote
from fakekube.nodes.images.programs import flags, wait
from fakekube.nodes.images.servers import Answer, Request, listen_http, tls_context
from fakekube.nodes.runtime.program import Command, Program

Review = Mapping[str, Any]
Response = dict[str, Any]

_DELAY: Final = 5.0
_FOREVER: Final = 60.0
_ALLOWED: Final[Response] = {"allowed": True}


def _denial(message: str = "", reason: str = "") -> Response:
    return {"allowed": False, "status": {"metadata": {}, **({"message": message} if message else {"reason": reason})}}


def _json_patch(*operations: Response) -> Response:
    patch = b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patch": patch, "patchType": "JSONPatch"} if operations else _ALLOWED


def _object(request: Review) -> Mapping[str, Any]:
    found: Mapping[str, Any] = request.get("oldObject" if request["operation"] == "DELETE" else "object") or {}
    return found


def _allow_late(request: Review) -> Response:
    time.sleep(_DELAY)
    return {"allowed": True, "status": {"metadata": {}, "message": "this webhook allows all requests"}}


def _add_label(request: Review) -> Response:
    labels = _object(request).get("metadata", {}).get("labels") or {}
    if not labels:
        return _json_patch({"op": "add", "path": "/metadata/labels", "value": {"added-label": "yes"}})
    if "added-label" not in labels:
        return _json_patch({"op": "add", "path": "/metadata/labels/added-label", "value": "yes"})
    if labels["added-label"] != "yes":
        return _json_patch({"op": "replace", "path": "/metadata/labels/added-label", "value": "yes"})
    return _ALLOWED


def _pods(request: Review) -> Response:
    pod = _object(request)
    label = (pod.get("metadata", {}).get("labels") or {}).get("webhook-e2e-test")
    messages = []
    if label == "webhook-disallow":
        messages.append("the pod contains unwanted label;")
    if label == "wait-forever":
        time.sleep(_FOREVER)
        messages.append("the pod response should not be sent;")
    named = [one["name"] for one in pod.get("spec", {}).get("containers") or ()]
    messages += ["the pod contains unwanted container name;" for name in named if "webhook-disallow" in name]
    return _denial(" ".join(messages)) if messages else _ALLOWED


def _attaching(request: Review) -> Response:
    options = _object(request)
    named = request.get("name") == "to-be-attached-pod"
    if named and options.get("stdin") and options.get("container") == "container1":
        return _denial("attaching to pod 'to-be-attached-pod' is not allowed")
    return _ALLOWED


def _mutating_pods(request: Review) -> Response:
    pod = _object(request)
    names = [one["name"] for one in pod["spec"].get("initContainers") or ()]
    if pod["metadata"].get("name") != "webhook-to-be-mutated" or "webhook-added-init-container" in names:
        return _ALLOWED
    added = {"image": "webhook-added-image", "name": "webhook-added-init-container", "resources": {}}
    return _json_patch({"op": "add", "path": "/spec/initContainers", "value": [added]})


def _sidecar(image: str) -> Callable[[Review], Response]:
    def mutate(request: Review) -> Response:
        if not image:
            return _denial("No image specified by the sidecar-image parameter")
        if "webhook-added-sidecar" in [one["name"] for one in _object(request)["spec"]["containers"]]:
            return _ALLOWED
        added = {"image": image, "name": "webhook-added-sidecar", "resources": {}}
        return _json_patch({"op": "add", "path": "/spec/containers/-", "value": added})

    return mutate


def _deny_unwanted(what: str, values: str) -> Callable[[Review], Response]:
    """Returns a webhook that denies writes of unwanted data, and deletions of protected ones."""

    def admit(request: Review) -> Response:
        value = (_object(request).get("data") or {}).get("webhook-e2e-test")
        if value == "webhook-disallow" and request["operation"] in ("CREATE", "UPDATE"):
            return _denial(reason=f"the {what} contains unwanted {values}")
        if value == "webhook-nondeletable" and request["operation"] == "DELETE":
            return _denial(reason=f"the {what} cannot be deleted because it contains unwanted key and value")
        return _ALLOWED

    return admit


def _mutating_data(request: Review) -> Response:
    data = _object(request).get("data") or {}
    stage = 2 if data.get("mutation-stage-1") == "yes" else 1 if data.get("mutation-start") == "yes" else 0
    return _json_patch({"op": "add", "path": f"/data/mutation-stage-{stage}", "value": "yes"}) if stage else _ALLOWED


def _definitions(request: Review) -> Response:
    labels = _object(request).get("metadata", {}).get("labels") or {}
    return _denial("the crd contains unwanted label") if labels.get("webhook-e2e-test") == "webhook-disallow" else _ALLOWED


_WEBHOOKS: Final[Mapping[str, Callable[[Review], Response]]] = {
    "/always-allow-delay-5s": _allow_late,
    "/always-deny": lambda request: _denial("this webhook denies all requests"),
    "/add-label": _add_label,
    "/pods": _pods,
    "/pods/attach": _attaching,
    "/mutating-pods": _mutating_pods,
    "/configmaps": _deny_unwanted("configmap", "key and value"),
    "/mutating-configmaps": _mutating_data,
    "/custom-resource": _deny_unwanted("custom resource", "data"),
    "/mutating-custom-resource": _mutating_data,
    "/crd": _definitions,
}
_JSON: Final = {"Content-Type": "application/json"}
_TLS: Final = {"tls-cert-file": "", "tls-private-key-file": "", "port": "443"}


async def _webhook(program: Program) -> int:
    given, _ = flags(program, {**_TLS, "sidecar-image": ""})
    webhooks = {**_WEBHOOKS, "/mutating-pods-sidecar": _sidecar(given["sidecar-image"])}

    def handle(request: Request) -> Answer:
        if request.path == "/readyz":
            return Answer("ok")
        admit = webhooks.get(request.path)
        if admit is None:
            return Answer("404 page not found\n", 404)
        try:
            review = json.loads(request.body)
            response = {"uid": review["request"]["uid"], **admit(review["request"])}
        except (ValueError, KeyError, TypeError) as error:
            return Answer(f"Request could not be decoded: {error}\n", 400)
        return Answer(
            json.dumps({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response}), headers=_JSON
        )

    return await _serve(program, given, handle)


async def _serve(program: Program, given: Mapping[str, str], handle: Callable[[Request], Answer]) -> int:
    context = tls_context(program, given["tls-cert-file"], given["tls-private-key-file"])
    with listen_http(program, int(given["port"]), handle, context):
        return await wait(program)


# --- Conversion -------------------------------------------------------------------------------------------------------


class _NotConvertedError(Exception):
    """An object cannot be converted; the text is that of the Status."""


def _convert(obj: Mapping[str, Any], version: str) -> Response:
    """Converts between the versions of stable.example.com: `hostPort` in v1, `host` and `port` in v2."""
    found, old = dict(obj), obj.get("apiVersion", "")
    if old == version:
        raise _NotConvertedError(f"conversion from a version to itself should not call the webhook: {version}")
    if (old, version) == ("stable.example.com/v1", "stable.example.com/v2"):
        if "hostPort" in found:
            value = found.pop("hostPort")
            parts = value.split(":")
            if len(parts) != 2:
                raise _NotConvertedError(f"invalid hostPort value `{value}`")
            found["host"], found["port"] = parts
    elif (old, version) == ("stable.example.com/v2", "stable.example.com/v1"):
        if "host" in found or "port" in found:
            found["hostPort"] = f"{found.pop('host', '')}:{found.pop('port', '')}"
    else:
        wrong = version if old.startswith("stable.example.com/") else old
        raise _NotConvertedError(f"unexpected conversion version {go_quote(wrong)}")
    return {**found, "apiVersion": version}


async def _crd_conversion_webhook(program: Program) -> int:
    given, _ = flags(program, _TLS)

    def handle(request: Request) -> Answer:
        if request.path == "/readyz":
            return Answer("ok")
        if request.path != "/crdconvert":
            return Answer("404 page not found\n", 404)
        try:
            review = json.loads(request.body)
            asked = review["request"]
            response: Response = {"uid": asked["uid"]}
            objects = [_convert(one, asked["desiredAPIVersion"]) for one in asked["objects"]]
            response |= {"convertedObjects": objects, "result": {"metadata": {}, "status": "Success"}}
        except _NotConvertedError as error:
            response["result"] = {"metadata": {}, "status": "Failure", "message": str(error)}
        except (ValueError, KeyError, TypeError) as error:
            return Answer(f"failed to deserialize body with error {error}\n", 400)
        return Answer(
            json.dumps({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response}), headers=_JSON
        )

    return await _serve(program, given, handle)


COMMANDS: Final[dict[str, Command]] = {"webhook": _webhook, "crd-conversion-webhook": _crd_conversion_webhook}
