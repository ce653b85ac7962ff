"""Admission plugins that are off by default, except those about namespaces, and ImagePolicyWebhook.

AlwaysPullImages, LimitPodHardAntiAffinityTopology, ExtendedResourceToleration, EventRateLimit, AlwaysDeny,
DenyServiceExternalIPs, OwnerReferencesPermissionEnforcement; PodNodeSelector and PodTolerationRestriction are in `pod_placement`.

Specified by: plugin/pkg/admission/{alwayspullimages,antiaffinity,extendedresourcetoleration,eventratelimit,deny,gc},
plugin/pkg/admission/network/denyserviceexternalips.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError, StatusError, status
from fakekube.apimachinery.errors.field import aggregate, invalid, not_supported
from fakekube.apis.core.pods import visitor
from fakekube.apis.validation.resource_lists import is_extended
from fakekube.apis.well_known import LABEL_HOSTNAME, TAINT_EFFECT_NO_SCHEDULE
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin, forbidden
from fakekube.apiserver.admission.pod_placement import PodNodeSelector, PodTolerationRestriction
from fakekube.apiserver.admission.pods import PODS
from fakekube.apiserver.options import ConfigurationError
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.strings import aggregate_errors
from fakekube.base.objects import Object


class PodPlugin(Plugin):
    """A plugin for the creation and update of pods."""

    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({PODS})


class AlwaysPullImages(PodPlugin):
    """Sets the pull policy Always, so that pods need the credentials for their images."""

    name = "AlwaysPullImages"

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        if _adds_no_image(attributes):
            return
        spec = attributes.object["spec"]
        for container in visitor.containers(spec):
            container["imagePullPolicy"] = "Always"
        for volume in spec.get("volumes") or ():
            if volume.get("image") is not None:
                volume["image"]["pullPolicy"] = "Always"

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        if _adds_no_image(attributes):
            return
        errors = [
            forbidden(attributes, aggregate([not_supported(path, policy, ("Always",))])).message
            for path, policy in _pull_policies(attributes.object["spec"])
            if policy != "Always"
        ]
        if errors:
            raise status.generic(500, "", aggregate_errors(errors))


def _adds_no_image(attributes: Attributes) -> bool:
    """Reports whether an update adds no image."""
    if attributes.operation is not Operation.UPDATE or attributes.object is None or attributes.old is None:
        return False
    before = {container.get("image") for container in visitor.containers(attributes.old["spec"])}
    return all(container.get("image") in before for container in visitor.containers(attributes.object["spec"]))


def _pull_policies(spec: Object) -> Iterator[tuple[str, Any]]:
    """Yields the pull policies of a pod with their paths."""
    for container, path in visitor.containers_with_paths(spec, "spec"):
        yield f"{path}.imagePullPolicy", container.get("imagePullPolicy", "")
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("image") is not None:
            yield f"spec.volumes[{index}].image.pullPolicy", volume["image"].get("pullPolicy", "")


class LimitPodHardAntiAffinityTopology(PodPlugin):
    """Rejects required anti-affinity with a topology key other than the hostname."""

    name = "LimitPodHardAntiAffinityTopology"

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        affinity = (attributes.object["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
        for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            key = term.get("topologyKey", "")
            if key != LABEL_HOSTNAME:
                name = attributes.object["metadata"].get("name", "")
                problem = f"has TopologyKey {key} but only key {LABEL_HOSTNAME} is allowed"
                raise status.forbidden("", "pods", name, f"affinity.PodAntiAffinity.RequiredDuringScheduling {problem}")


class ExtendedResourceToleration(PodPlugin):
    """Adds tolerations for the extended resources that a pod requests."""

    name = "ExtendedResourceToleration"

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = attributes.object["spec"]
        found = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        requests = ((container.get("resources") or {}).get("requests") or {} for container in found)
        names = sorted({name for amounts in requests for name in amounts if is_extended(name)})
        held = spec.get("tolerations") or []
        tolerated = {item.get("key") for item in held if item == _tolerate_resource(item.get("key"))}
        added = [_tolerate_resource(name) for name in names if name not in tolerated]
        if added:
            spec["tolerations"] = [*held, *added]


def _tolerate_resource(name: str | None) -> Object:
    return {"key": name, "operator": "Exists", "effect": TAINT_EFFECT_NO_SCHEDULE}


_CACHE_SIZE = 4096
_SOURCE = ("component", "host")
_OBJECT = ("kind", "namespace", "name", "uid", "apiVersion")


def _source_and_object(attributes: Attributes) -> str:
    event = attributes.object or {}
    source, involved = event.get("source") or {}, event.get("involvedObject") or {}
    return "".join([*(source.get(name, "") for name in _SOURCE), *(involved.get(name, "") for name in _OBJECT)])


#: Type of a limit → the key of its buckets.
_KEYS: Mapping[str, Callable[[Attributes], str]] = {
    "Server": lambda attributes: "",
    "Namespace": lambda attributes: attributes.namespace,
    "User": lambda attributes: attributes.context.user,
    "SourceAndObject": _source_and_object,
}


@dataclass(slots=True)
class _Limit:
    type: str
    qps: int
    burst: int
    size: int
    buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    """Key → tokens at some time, and that time."""

    def accept(self, attributes: Attributes) -> str:
        """Takes a token for the event; returns the error if there is none, else ""."""
        key, now = _KEYS[self.type](attributes), attributes.context.clock.monotonic()
        tokens, since = self.buckets.pop(key, (float(self.burst), now))
        tokens = min(tokens + (now - since) * self.qps, self.burst)
        allowed = tokens >= 1
        self.buckets[key] = (tokens - 1 if allowed else tokens, now)
        if len(self.buckets) > self.size:
            self.buckets.popitem(last=False)
        return "" if allowed else f"limit reached on type {self.type} for key {key}"


class EventRateLimit(Plugin):
    """See the module."""

    name = "EventRateLimit"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({("", "events")})
    repeatable = False

    def __init__(self, limits: list[_Limit]) -> None:
        self._limits = limits
        self._lock = threading.Lock()

    @classmethod
    def from_configuration(cls, configuration: Any) -> EventRateLimit:
        """Raises ConfigurationError."""
        limits = (configuration or {}).get("limits") or []
        errors = [] if limits else [invalid("limits", None, "must not be empty")]
        for index, limit in enumerate(limits):
            errors += _errors(limit, f"limits[{index}]")
        if errors:
            raise ConfigurationError(aggregate(errors))
        return cls(
            [_Limit(limit["type"], limit["qps"], limit["burst"], limit.get("cacheSize") or _CACHE_SIZE) for limit in limits]
        )

    def validate(self, attributes: Attributes) -> None:
        if attributes.context.dry_run:
            return
        with self._lock:
            problems = [problem for limit in self._limits if (problem := limit.accept(attributes))]
        if problems:
            raise StatusError(429, "TooManyRequests", f"Too many requests: {aggregate_errors(problems)}")


def _errors(limit: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    if limit.get("type") not in _KEYS:
        errors.append(not_supported(f"{path}.type", limit.get("type", ""), sorted(_KEYS)))
    errors += [
        invalid(f"{path}.{name}", limit.get(name, 0), "must be positive") for name in ("burst", "qps") if limit.get(name, 0) <= 0
    ]
    if limit.get("type") != "Server" and limit.get("cacheSize", 0) < 0:
        errors.append(invalid(f"{path}.cacheSize", limit["cacheSize"], "must not be negative"))
    return errors


#: Users with this permission may set blockOwnerDeletion for every owner.
_ANYTHING = {"verb": "update", "group": "*", "version": "*", "resource": "*", "subresource": "finalizers", "name": "*"}


class AlwaysDeny(Plugin):
    """Rejects every write."""

    name = "AlwaysDeny"
    operations = frozenset(Operation)
    subresources = None

    def admit(self, attributes: Attributes) -> None:
        raise forbidden(attributes, "admission control is denying all modifications")

    def validate(self, attributes: Attributes) -> None:
        raise forbidden(attributes, "admission control is denying all modifications")


class DenyServiceExternalIPs(Plugin):
    """Rejects new external IPs of Services."""

    name = "DenyServiceExternalIPs"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({("", "services")})

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        addresses = attributes.object["spec"].get("externalIPs") or ()
        held = ((attributes.old or {}).get("spec") or {}).get("externalIPs") or ()
        if not set(addresses) <= set(held):
            raise forbidden(attributes, "Use of external IPs is denied by admission control")


class OwnerReferencesPermissionEnforcement(Plugin):
    """Requires the permission to delete an object for changes of its owners, and to update an owner's finalizers for
    blockOwnerDeletion."""

    name = "OwnerReferencesPermissionEnforcement"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    subresources = None

    def validate(self, attributes: Attributes) -> None:
        resource = attributes.resource
        if (resource.group, resource.plural, attributes.subresource) == ("", "pods", "status"):
            return
        new, old = _owners(attributes.object), _owners(attributes.old)
        if new == old:
            return
        if attributes.operation is not Operation.CREATE:
            self._check_deletion(attributes)
        blocking = [owner for owner in _blocking(new) if not _is_blocking(owner, old)]
        if not blocking or attributes.context.authorize(_ANYTHING)[0]:
            return
        for owner in blocking:
            self._check_owner(attributes, owner)

    @staticmethod
    def _check_deletion(attributes: Attributes) -> None:
        resource = attributes.resource
        allowed, reason = attributes.context.authorize(
            {
                "verb": "delete",
                "group": resource.group,
                "version": resource.version,
                "resource": resource.plural,
                "subresource": attributes.subresource,
                "namespace": attributes.namespace,
                "name": attributes.name,
            }
        )
        if not allowed:
            raise forbidden(attributes, f"cannot set an ownerRef on a resource you can't delete: {reason}, <nil>")

    @staticmethod
    def _check_owner(attributes: Attributes, owner: Mapping[str, Any]) -> None:
        api_version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
        group, _, version = api_version.rpartition("/")
        resource = attributes.context.services.resource_of_kind(group, version, kind)
        if resource is None:
            problem = f"no matches for kind {go_quote(kind)} in version {go_quote(api_version)}"
            what = f"cannot find RESTMapping for APIVersion {api_version} Kind {kind}: {problem}"
            raise forbidden(attributes, f"cannot set blockOwnerDeletion in this case because {what}")
        allowed, reason = attributes.context.authorize(
            {
                "verb": "update",
                "group": resource.group,
                "version": resource.version,
                "resource": resource.plural,
                "subresource": "finalizers",
                "namespace": attributes.namespace if resource.namespaced else "",
                "name": owner.get("name", ""),
            }
        )
        if not allowed:
            what = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
            raise forbidden(attributes, f"{what}: {reason}, <nil>")


def _owners(obj: Object | None) -> Sequence[Mapping[str, Any]]:
    return ((obj or {}).get("metadata") or {}).get("ownerReferences") or []


def _blocking(owners: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (owner for owner in owners if owner.get("blockOwnerDeletion"))


def _is_blocking(owner: Mapping[str, Any], owners: Sequence[Mapping[str, Any]]) -> bool:
    return any(other.get("uid") == owner.get("uid") for other in _blocking(owners))


OPTIONAL_PLUGINS: Final[tuple[type[Plugin], ...]] = (
    AlwaysDeny,
    AlwaysPullImages,
    DenyServiceExternalIPs,
    EventRateLimit,
    ExtendedResourceToleration,
    LimitPodHardAntiAffinityTopology,
    OwnerReferencesPermissionEnforcement,
    PodNodeSelector,
    PodTolerationRestriction,
)
"""The plugins of this module, all of them off by default."""
