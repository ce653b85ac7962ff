"""Plugins that read in the annotations of a namespace where its pods may run; they are off by default.

PodNodeSelector adds a node selector, PodTolerationRestriction tolerations.

Specified by: plugin/pkg/admission/podnodeselector, plugin/pkg/admission/podtolerationrestriction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import status
from fakekube.apimachinery.errors.field import aggregate, invalid
from fakekube.apimachinery.schema.decode import DecodeError, decode
from fakekube.apimachinery.selectors.labels import label_key, label_value
from fakekube.apimachinery.selectors.nodes import Toleration, is_superset, merge_tolerations
from fakekube.apis.core.pods.resources import qos_class
from fakekube.apis.well_known import TAINT_EFFECT_NO_SCHEDULE, TAINT_NODE_MEMORY_PRESSURE
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin
from fakekube.apiserver.admission.pods import PODS
from fakekube.base.golang.json_reader import JSONError, parse
from fakekube.base.objects import Object

_NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULT_TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations"
_ALLOWED_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_CLUSTER_DEFAULT = "clusterDefaultNodeSelector"
_MEMORY_PRESSURE = {"key": TAINT_NODE_MEMORY_PRESSURE, "operator": "Exists", "effect": TAINT_EFFECT_NO_SCHEDULE}
_TOLERATIONS = "[]k8s.io/api/core/v1.Toleration"


def _annotations(attributes: Attributes) -> Mapping[str, str]:
    """Returns the annotations of the namespace of a request. Raises StatusError 404."""
    namespace = attributes.context.services.get("", "namespaces", "", attributes.namespace)
    if namespace is None:
        raise status.not_found("", "namespaces", attributes.namespace)
    found: Mapping[str, str] = namespace["metadata"].get("annotations") or {}
    return found


# --- Node selectors ---------------------------------------------------------------------------------------------------


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


# --- Tolerations ------------------------------------------------------------------------------------------------------


class PodTolerationRestriction(Plugin):
    """Adds the default tolerations in the annotation of a namespace to its pods, and enforces its whitelist.

    Args:
        default, whitelist: the cluster's tolerations, for namespaces without annotations.
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
            spec["tolerations"] = merge_tolerations([*(spec.get("tolerations") or ()), *more])
        self.validate(attributes)

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        held = attributes.object["spec"].get("tolerations") or ()
        if not held:
            return
        given = _tolerations_in(_annotations(attributes), _ALLOWED_TOLERATIONS)
        allowed, scope = (self._whitelist, "cluster") if given is None else (given, "namespace")
        if allowed and not all(any(is_superset(one, toleration) for one in allowed) for toleration in held):
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
        found: list[Object] = decode(features.current().types.type_of(_TOLERATIONS), parse(text.encode())) or []
    except (JSONError, DecodeError) as problem:
        raise status.generic(500, "", str(problem)) from None
    return found
