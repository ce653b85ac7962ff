"""Provides the compiled webhooks of all configurations of one kind.

Invariant: the webhooks are those in the current state of the store. A configuration is compiled once for each of its versions.

Specified by: k8s.io/apiserver/pkg/admission/configuration, plugin/webhook/accessors.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.apis.rest.strategy import Object
from fakekube.apiserver.admission.matching import Criteria

if TYPE_CHECKING:
    from fakekube.apiserver.admission.cel.matchconditions import MatchConditions


_GROUP = "admissionregistration.k8s.io"

#: The supported versions of AdmissionReview.
_REVIEW_VERSIONS = ("v1", "v1beta1")
#: The values of sideEffects with which a webhook is called for a dry run.
_DRY_RUN_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_DEFAULT_TIMEOUT = 10


@dataclass
class Webhook:
    """One webhook of a configuration."""

    configuration: str
    """The name of its configuration."""
    uid: str
    """Unique among the webhooks of the cluster."""
    spec: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @cached_property
    def criteria(self) -> Criteria:
        """The requests that it is called for."""
        return Criteria.of_webhook(self.spec)

    @property
    def fails_open(self) -> bool:
        """Whether a request is allowed when the webhook cannot be called."""
        return self.spec.get("failurePolicy") == "Ignore"

    @property
    def timeout(self) -> int:
        """The timeout of a call in seconds."""
        return self.spec.get("timeoutSeconds") or _DEFAULT_TIMEOUT

    @property
    def supports_dry_run(self) -> bool:
        return self.spec.get("sideEffects") in _DRY_RUN_SIDE_EFFECTS

    @property
    def reinvocable(self) -> bool:
        """Whether it is called again when a later plugin has changed the object."""
        return self.spec.get("reinvocationPolicy") == "IfNeeded"

    @cached_property
    def conditions(self) -> MatchConditions | None:
        """The compiled matchConditions; None if there are none."""
        given = self.spec.get("matchConditions")
        if not given:
            return None
        from fakekube.apiserver.admission.cel.matchconditions import MatchConditions

        return MatchConditions(given, self.spec.get("failurePolicy") or "Fail")

    @cached_property
    def review_version(self) -> str | None:
        """The first of its versions of AdmissionReview that is supported; None if none is."""
        known = (version for version in self.spec.get("admissionReviewVersions") or () if version in _REVIEW_VERSIONS)
        return next(known, None)


class Configurations:
    """The mutating or the validating webhooks of a cluster.

    Args:
        plural: the resource of the configurations.
    """

    def __init__(self, plural: str) -> None:
        self._plural = plural
        self._revision = -1
        self._webhooks: Sequence[Webhook] = ()

    def webhooks(self, services: ClusterAccess) -> Sequence[Webhook]:
        """Returns all webhooks, ordered by the names of their configurations."""
        revision = services.last_change(_GROUP, self._plural)
        if revision != self._revision:
            found = services.list(_GROUP, self._plural)
            self._webhooks, self._revision = [hook for obj in found for hook in _webhooks(obj)], revision
        return self._webhooks


def _webhooks(configuration: Object) -> list[Webhook]:
    name = configuration["metadata"]["name"]
    seen: Counter[str] = Counter()
    found = []
    for spec in configuration.get("webhooks") or ():
        found.append(Webhook(name, f"{name}/{spec['name']}/{seen[spec['name']]}", spec))
        seen[spec["name"]] += 1
    return found
