"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook.

Mutating webhooks are called one after the other; each gets the object as the previous one left it. When a plugin has asked for
reinvocation, the chain runs a second time: then a webhook is called again if its reinvocationPolicy is IfNeeded, it was called in
the first run, and the object has changed since. A patch is applied to the object in the version that the webhook was sent; the
result is decoded as the type of its own kind and apiVersion, and defaulted. Custom resources are not decoded, since they have no
type here. Validating webhooks are called concurrently; the request is denied if one of them denies it.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating (dispatcher.go: callAttrMutatingHook,
reinvocationcontext.go), k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fakekube.apiextensions.instances.objects import readable_metadata
from fakekube.apimachinery.codecs import DecodeError as CodecError
from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.patch import json_patch
from fakekube.apimachinery.patch.json_patch import Operation as PatchOperation
from fakekube.apimachinery.patch.json_patch import PatchRejected
from fakekube.apimachinery.schema import decode as schema_decode
from fakekube.apimachinery.schema import defaults, printing
from fakekube.apimachinery.schema.model import Type
from fakekube.apimachinery.schema.trees import deep_copy
from fakekube.apis.rest.cluster_access import Call
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin
from fakekube.apiserver.admission.matching import Match, VersionedAttributes, is_exempt
from fakekube.apiserver.webhooks.admission.admission_review import Response, TypeMetaError, type_meta
from fakekube.apiserver.webhooks.admission.configurations import CallFailedError, Calls, Configurations, Webhook, matching
from fakekube.base.golang.strconv import go_json, go_quote
from fakekube.base.objects import Object


class PatchDecodeError(Exception):
    """A patch is not a list of operations; has Go's error message."""


def _decode_patch(data: bytes) -> list[PatchOperation]:
    """Decodes the operations of a patch. Raises PatchDecodeError."""
    try:
        value, _ = json.loads(data)
        return json_patch.decode(value, strict=False)[0]
    except CodecError as error:
        raise PatchDecodeError(str(error)) from None
    except StatusError as error:
        raise PatchDecodeError(error.message) from None


def patch(versioned: VersionedAttributes, operations: list[PatchOperation], data: bytes) -> bool:
    """Applies operations to the object of a request. Returns whether they changed it; `data` is the encoded patch.

    Raises StatusError 500 if an operation cannot be applied, or the result is not an object of the same kind.
    """
    before = versioned.object
    assert before is not None
    try:
        patched = json_patch.perform(before, operations)
    except PatchRejected as error:
        raise status.internal(str(error)) from None
    if versioned.resource.custom and versioned.kind == versioned.resource.gvk:
        after = _decode_unstructured(versioned, patched)
        changed = after != before
    else:
        after, type_ = _decode_typed(versioned, patched)
        changed = _differ(type_, _without_kind(after), _without_kind(before))
    _default(versioned, after)
    versioned.object = after
    versioned.write_back()
    return changed


def _differ(type_: Type, one: Object, other: Object) -> bool:
    """Reports whether two objects of a type differ as typed objects, where an empty value may equal a missing one."""
    names = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
    parts = ({name: obj[name] for name in names if name in obj} for obj in (one, other))
    first, second = (printing.normalise(type_, part) for part in parts)
    return bool(first != second)


def _decode_unstructured(versioned: VersionedAttributes, patched: Any) -> Object:
    """Returns a copy of a patched custom resource without the fields of its metadata that cannot be decoded."""
    kind, api_version = _type_meta(patched)
    if not kind:
        raise status.internal(status.missing_kind(json.dumps(patched).decode()))
    if api_version.rpartition("/")[0] != versioned.kind.group:
        wanted = versioned.attributes.resource.api_version
        raise status.generic(500, "", status.not_convertible(f"{api_version}, Kind={kind}", wanted))
    metadata = patched.get("metadata")
    found: Object = deep_copy({**patched, "metadata": readable_metadata(metadata) if isinstance(metadata, dict) else {}})
    return found


def _type_meta(patched: Any) -> tuple[str, str]:
    """Raises StatusError 500."""
    try:
        return type_meta(patched)
    except TypeMetaError as error:
        raise status.internal(str(error)) from None


def _decode_typed(versioned: VersionedAttributes, patched: Any) -> tuple[Object, Type]:
    """Decodes a patched object of a built-in kind. Returns the copy and its type. Raises StatusError 500."""
    kind, api_version = _type_meta(patched)
    kind, api_version = kind or versioned.kind.kind, api_version or versioned.kind.api_version
    group, _, version = api_version.rpartition("/")
    type_ = versioned.resource.emulation.types.kind_type(group, version, kind)
    if type_ is None:
        raise status.internal(status.not_registered(kind, api_version))
    try:
        found: Object = schema_decode.decode(type_, patched)
    except schema_decode.DecodeError as error:
        raise status.internal(str(error)) from None
    if (kind, api_version) != (versioned.kind.kind, versioned.kind.api_version):
        wanted = f"{versioned.kind.group or 'core'}.{versioned.kind.kind}"
        raise status.generic(500, "", f"converting ({version}.{kind}) to ({wanted}): unknown conversion")
    return {"kind": kind, "apiVersion": api_version, **_without_kind(found)}, type_


def _without_kind(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}


def _default(versioned: VersionedAttributes, obj: Object) -> None:
    """Applies the defaults of the version that the webhook was sent."""
    resource, kind = versioned.resource, versioned.kind
    if not resource.custom or kind != resource.gvk:
        defaults.apply(versioned.resource.emulation.types, kind.group, kind.version, kind.kind, obj)
    if kind == resource.gvk:
        resource.strategy.default(obj)
        resource.strategy.default_times(obj, versioned.attributes.context.clock)


_PATCH, _MUTATION = "patch.webhook.admission.k8s.io/", "mutation.webhook.admission.k8s.io/"


@dataclass(slots=True)
class _Reinvocation:
    """The reinvocation context: the state of the first run of the chain."""

    output: Object | None = None
    """The object after the last webhook."""
    invoked: set[str] = field(default_factory=set)
    """The webhooks with the policy IfNeeded that were called since the last change."""
    again: set[str] = field(default_factory=set)
    """The webhooks that are called again in the second run."""

    def require_reinvoking(self) -> None:
        """Marks the webhooks called so far for reinvocation, since the object has changed."""
        self.again |= self.invoked
        self.invoked = set()


class MutatingAdmissionWebhook(Plugin):
    """The admission plugin.

    Args:
        call: sends the requests.
    """

    name = "MutatingAdmissionWebhook"
    operations = frozenset(Operation)
    subresources = None
    acts_for = "webhooks_or_policies"
    dynamic = True

    def __init__(self, call: Call) -> None:
        self._configurations = Configurations("mutatingwebhookconfigurations")
        self._calls = Calls(call, mutating=True)

    def admit(self, attributes: Attributes) -> None:
        webhooks = self._configurations.webhooks(attributes.context.services)
        if webhooks and not is_exempt(attributes):
            self._dispatch(webhooks, attributes)

    def _dispatch(self, webhooks: Sequence[Webhook], attributes: Attributes) -> None:
        context = attributes.reinvocation_context()
        state: _Reinvocation = context.values.setdefault(self.name, _Reinvocation())
        if context.is_reinvoke and state.output != attributes.object:
            state.require_reinvoking()
        for index, webhook in enumerate(webhooks):
            match = matching(webhook, attributes)
            if match is None or (context.is_reinvoke and webhook.uid not in state.again):
                continue
            changed = self._call_hook(webhook, match, attributes, f"round_{int(context.is_reinvoke)}_index_{index}")
            if changed:
                state.require_reinvoking()
                context.should_reinvoke = True
            if webhook.reinvocable:
                state.invoked.add(webhook.uid)
        state.output = deep_copy(attributes.object)

    def _call_hook(self, webhook: Webhook, match: Match, attributes: Attributes, place: str) -> bool:
        """Calls a webhook and applies its patch. Returns whether it changed the object. Raises StatusError."""
        versioned, changed = VersionedAttributes(attributes, match.resource), False
        try:
            changed = self._call_mutating_hook(webhook, match, versioned, place)
        except CallFailedError as error:
            if not webhook.fails_open:
                raise status.internal(str(error)) from None
            attributes.add_annotation(f"failed-open.{_MUTATION}{place}", webhook.name)
        finally:
            annotation = {"configuration": webhook.configuration, "webhook": webhook.name, "mutated": changed}
            attributes.add_annotation(f"{_MUTATION}{place}", go_json(annotation))
        return changed

    def _call_mutating_hook(self, webhook: Webhook, match: Match, versioned: VersionedAttributes, place: str) -> bool:
        response = self._calls.ask(webhook, match, versioned)
        if not response.patch:
            return False
        try:
            operations = _decode_patch(response.patch)
        except PatchDecodeError as error:
            raise CallFailedError(webhook, f"received undecodable patch in webhook response: {error}") from None
        if not operations:
            return False
        if versioned.object is None:
            refused = f"admission webhook {go_quote(webhook.name)} attempted to modify the object"
            raise status.internal(f"{refused}, which is not supported for this operation")
        if response.patch_type != "JSONPatch":
            raise CallFailedError(webhook, f"unsupported patch type {go_quote(response.patch_type)}")
        changed = patch(versioned, operations, response.patch)
        _annotate_patch(versioned.attributes, webhook, operations, place)
        return changed


def _annotate_patch(attributes: Attributes, webhook: Webhook, operations: Sequence[PatchOperation], place: str) -> None:
    annotation = {
        "configuration": webhook.configuration,
        "webhook": webhook.name,
        "patch": [dict(sorted(operation.items())) for operation in operations],
        "patchType": "JSONPatch",
    }
    attributes.add_annotation(f"{_PATCH}{place}", go_json(annotation), "Request")


# --- Validating webhooks -----------------------------------------------------------------------------------------------


_FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/"


class ValidatingAdmissionWebhook(Plugin):
    """The admission plugin.

    Args:
        call: sends the requests.
    """

    name = "ValidatingAdmissionWebhook"
    operations = frozenset(Operation)
    subresources = None
    acts_for = "webhooks_or_policies"
    dynamic = True

    def __init__(self, call: Call) -> None:
        self._configurations = Configurations("validatingwebhookconfigurations")
        self._calls = Calls(call, mutating=False)

    def validate(self, attributes: Attributes) -> None:
        webhooks = self._configurations.webhooks(attributes.context.services)
        if not webhooks or is_exempt(attributes):
            return
        found = [(webhook, matching(webhook, attributes)) for webhook in webhooks]
        relevant = [(webhook, match) for webhook, match in found if match is not None]
        views: dict[Resource, VersionedAttributes] = {}
        for _, match in relevant:
            if match.resource not in views:
                views[match.resource] = _convert_objects(attributes, match.resource)
        begun = [(webhook, self._calls.begin(webhook, match, views[match.resource])) for webhook, match in relevant]
        refusals = [_refusal(webhook, answer, attributes, index) for index, (webhook, answer) in enumerate(begun)]
        for refusal in refusals:
            if refusal is not None:
                raise refusal


def _refusal(webhook: Webhook, answer: Callable[[], Response], attributes: Attributes, index: int) -> StatusError | None:
    """Waits for the response of a webhook. Returns the error if the request is denied, else None."""
    try:
        answer()
    except CallFailedError as error:
        if not webhook.fails_open:
            return status.internal(str(error))
        attributes.add_annotation(f"{_FAILED_OPEN}round_0_index_{index}", webhook.name)
    except StatusError as error:
        return error
    return None


def _convert_objects(attributes: Attributes, resource: Resource) -> VersionedAttributes:
    """Converts the objects to a version before any webhook is called: an error denies the request whatever the failurePolicy.

    Raises StatusError 500.
    """
    versioned = VersionedAttributes(attributes, resource)
    try:
        versioned.object, versioned.old  # noqa: B018
    except StatusError as error:
        raise status.internal(error.message) from None
    return versioned
