"""ValidatingAdmissionWebhook: asks validating webhooks, all at the same time, and refuses what one of them refuses.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from fakekube.admission.matching import Match, is_exempt
from fakekube.admission.plugin import Attributes, Operation, Plugin
from fakekube.admission.versioned import VersionedAttributes
from fakekube.errors import StatusError, status
from fakekube.registry.resource import Resource
from fakekube.registry.webhook_calls import Call
from fakekube.webhooks.admission.calls import CallFailedError, Calls, matching
from fakekube.webhooks.admission.configurations import Configurations, Webhook

__all__ = ["ValidatingAdmissionWebhook"]

_FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io/"


class ValidatingAdmissionWebhook(Plugin):
    """See the module."""

    name = "ValidatingAdmissionWebhook"
    operations = frozenset(Operation)
    subresources = None

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
                views[match.resource] = _seen(attributes, match.resource)
        results = _all_at_once([
            partial(self._refusal, webhook, match, views[match.resource], index)
            for index, (webhook, match) in enumerate(relevant)
        ])
        for refusal in results:
            if refusal is not None:
                raise refusal

    def _refusal(self, webhook: Webhook, match: Match, versioned: VersionedAttributes, index: int) -> StatusError | None:
        """Why a webhook does not let the request pass; None if it does."""
        try:
            self._calls.ask(webhook, match, versioned)
        except CallFailedError as error:
            if not webhook.fails_open:
                return status.internal(str(error))
            versioned.attributes.add_annotation(f"{_FAILED_OPEN}round_0_index_{index}", webhook.name)
        except StatusError as error:
            return error
        return None


def _seen(attributes: Attributes, resource: Resource) -> VersionedAttributes:
    """The objects in a version, converted here, where an error refuses the request whatever the webhooks say."""
    versioned = VersionedAttributes(attributes, resource)
    try:
        versioned.object, versioned.old  # noqa: B018
    except StatusError as error:
        raise status.internal(error.message) from None
    return versioned


def _all_at_once(tasks: Sequence[Callable[[], StatusError | None]]) -> list[StatusError | None]:
    """The results of all tasks, in their order. Raises what one of them raises."""
    results: list[StatusError | None] = [None] * len(tasks)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            results[index] = tasks[index]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,), name="fakekube-webhook") for index in range(1, len(tasks))]
    for thread in threads:
        thread.start()
    if tasks:
        run(0)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
