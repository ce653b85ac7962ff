"""MutatingAdmissionWebhook: calls the mutating webhooks one after the other; each gets the object as the previous one left it.

When a plugin has asked for reinvocation, the chain runs a second time. Then a webhook is called again if its
reinvocationPolicy is IfNeeded, it was called in the first run, and the object has changed since.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating (dispatcher.go, reinvocationcontext.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fakekube.apimachinery.errors import status
from fakekube.apimachinery.patch.json_patch import Operation as PatchOperation
from fakekube.apimachinery.schema.trees import copied
from fakekube.apis.rest.cluster_access import Call
from fakekube.apis.rest.strategy import Object
from fakekube.apiserver.admission.matching import Match, is_exempt
from fakekube.apiserver.admission.plugin import Attributes, Operation, Plugin
from fakekube.apiserver.admission.versioned import VersionedAttributes
from fakekube.apiserver.webhooks.admission import patches
from fakekube.apiserver.webhooks.admission.configurations import CallFailedError, Calls, Configurations, Webhook, matching
from fakekube.base.golang.strconv import go_json, go_quote

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
        state.output = copied(attributes.object)

    def _call_hook(self, webhook: Webhook, match: Match, attributes: Attributes, place: str) -> bool:
        """Calls a webhook and applies its patch. Returns whether it changed the object. Raises StatusError."""
        versioned, changed = VersionedAttributes(attributes, match.resource), False
        try:
            changed = self._changed_by(webhook, match, versioned, place)
        except CallFailedError as error:
            if not webhook.fails_open:
                raise status.internal(str(error)) from None
            attributes.add_annotation(f"failed-open.{_MUTATION}{place}", webhook.name)
        finally:
            annotation = {"configuration": webhook.configuration, "webhook": webhook.name, "mutated": changed}
            attributes.add_annotation(f"{_MUTATION}{place}", go_json(annotation))
        return changed

    def _changed_by(self, webhook: Webhook, match: Match, versioned: VersionedAttributes, place: str) -> bool:
        response = self._calls.ask(webhook, match, versioned)
        if not response.patch:
            return False
        try:
            operations = patches.decoded(response.patch)
        except patches.PatchDecodeError as error:
            raise CallFailedError(webhook, f"received undecodable patch in webhook response: {error}") from None
        if not operations:
            return False
        if versioned.object is None:
            refused = f"admission webhook {go_quote(webhook.name)} attempted to modify the object"
            raise status.internal(f"{refused}, which is not supported for this operation")
        if response.patch_type != "JSONPatch":
            raise CallFailedError(webhook, f"unsupported patch type {go_quote(response.patch_type)}")
        changed = patches.patch(versioned, operations, response.patch)
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
