"""ValidatingAdmissionWebhook: calls all validating webhooks concurrently; the request is denied if one of them denies it.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Callable

from fakekube.apimachinery.errors import StatusError, status
from fakekube.apis.rest.cluster_access import Call
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin
from fakekube.apiserver.admission.matching import VersionedAttributes, is_exempt
from fakekube.apiserver.webhooks.admission.configurations import CallFailedError, Calls, Configurations, Webhook, matching
from fakekube.apiserver.webhooks.admission.reviews import Response

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
