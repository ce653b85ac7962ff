"""Admission plugins that are off by default, except those about namespaces, and ImagePolicyWebhook.

AlwaysPullImages, LimitPodHardAntiAffinityTopology, ExtendedResourceToleration, EventRateLimit, AlwaysDeny,
DenyServiceExternalIPs, OwnerReferencesPermissionEnforcement, PodNodeSelector, PodTolerationRestriction.

Specified by: plugin/pkg/admission/{alwayspullimages,antiaffinity,extendedresourcetoleration,eventratelimit,deny,gc},
plugin/pkg/admission/network/denyserviceexternalips, plugin/pkg/admission/{podnodeselector,podtolerationrestriction};
pkg/util/tolerations.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fakekube.apimachinery.errors import FieldError, StatusError, status
from fakekube.apimachinery.errors.field import aggregate, invalid, not_supported
from fakekube.apimachinery.selectors.labels import label_key, label_value
from fakekube.apimachinery.selectors.nodes import Toleration
from fakekube.apis.core.pods import visitor
from fakekube.apis.core.pods.resources import qos_class
from fakekube.apis.validation.resource_lists import is_extended
from fakekube.apis.well_known import LABEL_HOSTNAME, TAINT_EFFECT_NO_EXECUTE, TAINT_EFFECT_NO_SCHEDULE, TAINT_NODE_MEMORY_PRESSURE
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin, forbidden
from fakekube.apiserver.options import ConfigurationError
from fakekube.base.golang.json_reader import JSONError, parse
from fakekube.base.golang.strconv import go_quote, json_kind, unmarshal_error
from fakekube.base.golang.strings import aggregate_errors
from fakekube.base.objects import Object

PODS = ("", "pods")


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
    source = event.get("source") or event.get("deprecatedSource") or {}
    involved = event.get("involvedObject") or event.get("regarding") or {}
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
    resources = frozenset({("", "events"), ("events.k8s.io", "events")})

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


_NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULT_TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations"
_ALLOWED_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_CLUSTER_DEFAULT = "clusterDefaultNodeSelector"
_MEMORY_PRESSURE = {"key": TAINT_NODE_MEMORY_PRESSURE, "operator": "Exists", "effect": TAINT_EFFECT_NO_SCHEDULE}


def _annotations(attributes: Attributes) -> Mapping[str, str]:
    """Returns the annotations of the namespace of a request. Raises StatusError 404."""
    namespace = attributes.context.services.get("", "namespaces", "", attributes.namespace)
    if namespace is None:
        raise status.not_found("", "namespaces", attributes.namespace)
    found: Mapping[str, str] = namespace["metadata"].get("annotations") or {}
    return found


# ---------------------------------------------------------------- node selectors


class PodNodeSelector(Plugin):
    """Adds the node selector in the annotation of a namespace to its pods.

    Args:
        selectors: podNodeSelectorPluginConfig: the allowed labels by namespace, and the default selector.
    """

    name = "PodNodeSelector"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({PODS})

    def __init__(self, selectors: Mapping[str, str] | None = None) -> None:
        self._selectors = selectors or {}

    @classmethod
    def from_configuration(cls, configuration: Any) -> PodNodeSelector:
        return cls((configuration or {}).get("podNodeSelectorPluginConfig"))

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = attributes.object["spec"]
        wanted = self._get_node_selector(attributes)
        _check_conflicts(attributes, wanted)
        if wanted:
            spec["nodeSelector"] = {**wanted, **(spec.get("nodeSelector") or {})}
        self.validate(attributes)

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        _check_conflicts(attributes, self._get_node_selector(attributes))
        allowed = _labels_of(self._selectors.get(attributes.namespace, ""))
        asked = attributes.object["spec"].get("nodeSelector") or {}
        if allowed and any(allowed.get(key) != value for key, value in asked.items()):
            raise _make_forbidden(attributes, "pod node label selector labels conflict with its namespace whitelist")

    def _get_node_selector(self, attributes: Attributes) -> Mapping[str, str]:
        annotations = _annotations(attributes)
        text = annotations.get(_NODE_SELECTOR)
        return _labels_of(self._selectors.get(_CLUSTER_DEFAULT, "") if text is None else text)


def _check_conflicts(attributes: Attributes, wanted: Mapping[str, str]) -> None:
    assert attributes.object is not None
    asked = attributes.object["spec"].get("nodeSelector") or {}
    if any(key in wanted and wanted[key] != value for key, value in asked.items()):
        raise _make_forbidden(attributes, "pod node label selector conflicts with its namespace node label selector")


def _make_forbidden(attributes: Attributes, problem: str) -> status.StatusError:
    assert attributes.object is not None
    return status.forbidden("", "pods", attributes.object["metadata"].get("name", ""), problem)


def _labels_of(selector: str) -> dict[str, str]:
    """Parses `key=value,…` (ConvertSelectorToLabelsMap). Raises StatusError 500."""
    labels = {}
    for part in selector.split(",") if selector else ():
        pieces = part.split("=")
        if len(pieces) != 2:
            raise status.generic(500, "", f"invalid selector: [{' '.join(pieces)}]")
        key, value = pieces[0].strip(), pieces[1].strip()
        for path, text, problems in (("<nil>", key, label_key(key)), (f"[{key}]", value, label_value(value))):
            if problems:
                raise status.generic(500, "", aggregate([invalid(path, text, "; ".join(problems))]))
        labels[key] = value
    return labels


# ---------------------------------------------------------------- tolerations


class PodTolerationRestriction(Plugin):
    """Adds the default tolerations in the annotation of a namespace to its pods, and enforces its whitelist.

    Args:
        default, whitelist: The cluster's tolerations, for namespaces without annotations.
    """

    name = "PodTolerationRestriction"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({PODS})

    def __init__(self, default: Sequence[Toleration] = (), whitelist: Sequence[Toleration] = ()) -> None:
        self._default, self._whitelist = default, whitelist

    @classmethod
    def from_configuration(cls, configuration: Any) -> PodTolerationRestriction:
        said = configuration or {}
        return cls(said.get("default") or (), said.get("whitelist") or ())

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = attributes.object["spec"]
        more: list[Toleration] = []
        if attributes.operation is Operation.CREATE:
            given = _tolerations_in(_annotations(attributes), _DEFAULT_TOLERATIONS)
            more = list(self._default if given is None else given)
        if qos_class(spec) != "BestEffort":
            more.append(dict(_MEMORY_PRESSURE))
        if more:
            spec["tolerations"] = _merge_tolerations([*(spec.get("tolerations") or ()), *more])
        self.validate(attributes)

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        held = attributes.object["spec"].get("tolerations") or ()
        if not held:
            return
        given = _tolerations_in(_annotations(attributes), _ALLOWED_TOLERATIONS)
        allowed, scope = (self._whitelist, "cluster") if given is None else (given, "namespace")
        if allowed and not all(any(_is_superset(one, toleration) for one in allowed) for toleration in held):
            problem = f"pod tolerations (possibly merged with namespace default tolerations) conflict with its {scope} whitelist"
            raise status.generic(500, "", problem)


def _tolerations_in(annotations: Mapping[str, str], key: str) -> list[Object] | None:
    """Returns the tolerations in an annotation; None if it is not set. Raises StatusError 500."""
    text = annotations.get(key)
    if text is None:
        return None
    if not text:
        return []
    try:
        found = parse(text.encode())
    except JSONError as problem:
        raise status.generic(500, "", str(problem)) from None
    if not isinstance(found, list | None):
        raise status.generic(500, "", unmarshal_error(json_kind(found), "[]v1.Toleration"))
    for item in found or ():
        if not isinstance(item, dict | None):
            raise status.generic(500, "", unmarshal_error(json_kind(item), "v1.Toleration"))
    return [item or {} for item in found or ()]


def _merge_tolerations(tolerations: Sequence[Toleration]) -> list[Toleration]:
    """Returns the tolerations that no other one covers (MergeTolerations)."""
    merged: list[Toleration] = []
    for index, toleration in enumerate(tolerations):
        later = (other for other in tolerations[index + 1 :] if other != toleration)
        if not any(_is_superset(other, toleration) for other in (*merged, *later)):
            merged.append(toleration)
    return merged


def _is_superset(one: Toleration, other: Toleration) -> bool:
    """Reports whether `one` tolerates every taint that `other` tolerates."""
    if one == other:
        return True
    operator = one.get("operator", "")
    if one.get("key", "") != other.get("key", "") and (one.get("key") or operator != "Exists"):
        return False
    if one.get("effect") and one["effect"] != other.get("effect", ""):
        return False
    if one.get("effect") == TAINT_EFFECT_NO_EXECUTE and one.get("tolerationSeconds") is not None:
        seconds = other.get("tolerationSeconds")
        if seconds is None or seconds > one["tolerationSeconds"]:
            return False
    if operator in ("", "Equal"):
        return bool(other.get("operator", "") == "Equal" and other.get("value", "") == one.get("value", ""))
    return bool(operator == "Exists")


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
