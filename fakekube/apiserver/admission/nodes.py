"""Admission of nodes and of what kubelets write: TaintNodesByCondition, NodeDeclaredFeatureValidator and NodeRestriction.

TaintNodesByCondition taints new nodes as not ready. NodeDeclaredFeatureValidator rejects changes of pods, and slices of devices,
that need features which their node does not declare. NodeRestriction restricts the users in the group system:nodes to their own
node and the pods that run on it; it is off by default, as in kube-apiserver, and kubeadm enables it together with the Node
authorizer.

Specified by: plugin/pkg/admission/{nodetaint,nodedeclaredfeatures,noderestriction},
k8s.io/component-helpers/nodedeclaredfeatures, k8s.io/kubelet/pkg/apis/well_known_labels.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import StatusError, status
from fakekube.apimachinery.selectors.nodes import selects_node
from fakekube.apis.core.nodes import CSI_NODE_OF_OTHER_NODE, LEASE_OF_OTHER_NODE
from fakekube.apis.core.pods import visitor
from fakekube.apis.core.pods.visitor import api_object_reference, claim_names
from fakekube.apis.core.serviceaccounts.token import uid_mismatch
from fakekube.apis.validation.differences import diff
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.to_internal import semantic_deep_equal
from fakekube.apis.well_known import (
    KUBE_APISERVER_CLIENT_KUBELET_SIGNER_NAME,
    KUBELET_SERVING_SIGNER_NAME,
    MIRROR_POD_ANNOTATION_KEY,
    NAMESPACE_NODE_LEASE,
    NODE_USER_NAME_PREFIX,
    NODES_GROUP,
    TAINT_EFFECT_NO_SCHEDULE,
    TAINT_NODE_NOT_READY,
)
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin, forbidden
from fakekube.base.golang.strconv import go_quote
from fakekube.base.golang.strings import aggregate_errors
from fakekube.base.objects import Object, Part

_NOT_READY_TAINT = {"key": TAINT_NODE_NOT_READY, "effect": TAINT_EFFECT_NO_SCHEDULE}


class TaintNodesByCondition(Plugin):
    """See the module."""

    name = "TaintNodesByCondition"
    operations = frozenset({Operation.CREATE})
    resources = frozenset({("", "nodes")})

    def admit(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        spec = attributes.object.setdefault("spec", {})
        taints = spec.get("taints") or []
        kept = {(taint.get("key"), taint.get("effect")) for taint in taints}
        if (_NOT_READY_TAINT["key"], _NOT_READY_TAINT["effect"]) not in kept:
            spec["taints"] = [*taints, dict(_NOT_READY_TAINT)]


def _changes_pod_resources(old: Part, new: Part) -> bool:
    return not semantic_deep_equal(old.get("resources"), new.get("resources"))


def _changes_init_containers(old: Part, new: Part) -> bool:
    """Reports whether the resources of a non-restartable init container change."""
    pairs = zip(old.get("initContainers") or (), new.get("initContainers") or (), strict=False)
    return any(
        not visitor.is_sidecar(one) and not semantic_deep_equal(one.get("resources"), other.get("resources"))
        for one, other in pairs
    )


def _changes_sizes_in_memory(old: Part, new: Part) -> bool:
    """Reports whether the size of a volume in memory changes; validation admits no other change of volumes."""
    pairs = zip(old.get("volumes") or (), new.get("volumes") or (), strict=False)
    return any(one.get("emptyDir") != other.get("emptyDir") for one, other in pairs)


#: The features that changes require, in the order of the error text.
_FEATURES: Mapping[str, Callable[[Part, Part], bool]] = {
    "InPlacePodLevelResourcesVerticalScaling": _changes_pod_resources,
    "InPlacePodVerticalScalingInitContainers": _changes_init_containers,
    "InPlacePodVerticalScalingMemoryBackedVolumes": _changes_sizes_in_memory,
}
_ALLOCATABLE_RESOURCES: Final = "DRANodeAllocatableResources"


class NodeDeclaredFeatureValidator(Plugin):
    """See the module."""

    name = "NodeDeclaredFeatureValidator"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({("", "pods"), ("resource.k8s.io", "resourceslices")})
    subresources = frozenset({"", "resize"})

    def validate(self, attributes: Attributes) -> None:
        if attributes.resource.plural == "resourceslices":
            if features.current().enabled(_ALLOCATABLE_RESOURCES) and from_minor(37):
                _validate_node_allocatable_devices(attributes)
        elif attributes.operation is Operation.UPDATE:
            self._validate_pod_update(attributes)

    def _validate_pod_update(self, attributes: Attributes) -> None:
        assert attributes.object is not None and attributes.old is not None
        new, old = attributes.object["spec"], attributes.old["spec"]
        name = new.get("nodeName")
        if not name or new == old:
            return
        missing = list(_missing_features(attributes, name, old, new))
        if missing:
            problem = f"pod update requires features {', '.join(missing)} which are not available on node {go_quote(name)}"
            raise forbidden(attributes, problem)


def _missing_features(attributes: Attributes, name: str, old: Part, new: Part) -> Iterator[str]:
    """Yields the required features that the node does not declare. Raises StatusError 403 if the node does not exist."""
    required = [feature for feature, is_required in _FEATURES.items() if is_required(old, new)]
    if not required:
        return
    node = attributes.context.services.get("", "nodes", "", name)
    if node is None:
        raise forbidden(attributes, f"node {go_quote(name)} not found")
    yield from (feature for feature in required if not _declares(node, feature))


def _declares(node: Part, feature: str) -> bool:
    return feature in ((node.get("status") or {}).get("declaredFeatures") or ())


def _validate_node_allocatable_devices(attributes: Attributes) -> None:
    """Validates that the nodes of devices with node allocatable resources support them (validateNodeAllocatableDRA)."""
    assert attributes.object is not None
    spec = attributes.object["spec"]
    for device in spec.get("devices") or ():
        if not device.get("nodeAllocatableResources"):
            continue
        for node in _nodes_of_device(attributes, device, device if spec.get("perDeviceNodeSelection") else spec):
            if not _declares(node, _ALLOCATABLE_RESOURCES):
                raise forbidden(
                    attributes, f"node {go_quote(node['metadata']['name'])} does not support {_ALLOCATABLE_RESOURCES} feature"
                )


def _nodes_of_device(attributes: Attributes, device: Part, place: Part) -> Iterable[Part]:
    """Returns the nodes that `place`, the device or its slice, names. Raises StatusError 403 for one that does not exist."""
    services, name, selector = attributes.context.services, place.get("nodeName"), place.get("nodeSelector")
    if name:
        node = services.get("", "nodes", "", name)
        if node is None:
            raise forbidden(attributes, f"node {go_quote(name)} not found for device {go_quote(device['name'])}")
        return (node,)
    if selector is not None:
        return (node for node in services.list("", "nodes") if selects_node(selector, node))
    return services.list("", "nodes")


_RESTRICTED: Final = "node-restriction.kubernetes.io"
_CLIENT_SIGNERS: Final = (KUBE_APISERVER_CLIENT_KUBELET_SIGNER_NAME, KUBELET_SERVING_SIGNER_NAME)

#: Labels in Kubernetes domains that a kubelet may set.
_KUBELET_LABELS: Final = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
_KUBELET_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")


class NodeRestriction(Plugin):
    """See the module."""

    name = "NodeRestriction"
    operations = frozenset({Operation.CREATE, Operation.UPDATE, Operation.DELETE})
    resources = frozenset(
        {
            ("", "pods"),
            ("", "nodes"),
            ("", "persistentvolumeclaims"),
            ("", "serviceaccounts"),
            ("coordination.k8s.io", "leases"),
            ("storage.k8s.io", "csinodes"),
            ("resource.k8s.io", "resourceslices"),
            ("certificates.k8s.io", "certificatesigningrequests"),
        }
    )
    subresources = None

    def admit(self, attributes: Attributes) -> None:
        context = attributes.context
        if NODES_GROUP not in context.groups or not context.user.startswith(NODE_USER_NAME_PREFIX):
            return
        node = context.user[len(NODE_USER_NAME_PREFIX) :]
        if not node:
            raise forbidden(attributes, f"could not determine node from user {go_quote(context.user)}")
        resource = attributes.resource
        check = _CHECKS.get((resource.group, resource.plural))
        if check is not None:
            check(node, attributes)


# --- Pods -------------------------------------------------------------------------------------------------------------


def _check_pod(node: str, attributes: Attributes) -> None:
    checks = {"": _check_pod_itself, "status": _check_pod_status, "eviction": _check_eviction}
    check = checks.get(attributes.subresource)
    if check is None:
        text = f"unexpected pod subresource {go_quote(attributes.subresource)}, only 'status' and 'eviction' are allowed"
        raise forbidden(attributes, text)
    check(node, attributes)


def _check_pod_itself(node: str, attributes: Attributes) -> None:
    if attributes.operation is Operation.CREATE:
        _check_mirror_pod(node, attributes)
    elif attributes.operation is Operation.DELETE:
        if _pod(attributes, attributes.name)["spec"].get("nodeName", "") != node:
            raise forbidden(attributes, f"node {go_quote(node)} can only delete pods with spec.nodeName set to itself")
    else:
        operation = go_quote(attributes.operation.value)
        text = f"unexpected operation {operation}, node {go_quote(node)} can only create and delete mirror pods"
        raise forbidden(attributes, text)


def _check_mirror_pod(node: str, attributes: Attributes) -> None:
    pod = attributes.object or {}
    meta, spec, shown = pod.get("metadata") or {}, pod.get("spec") or {}, go_quote(node)
    if MIRROR_POD_ANNOTATION_KEY not in (meta.get("annotations") or {}):
        text = f"pod does not have {go_quote(MIRROR_POD_ANNOTATION_KEY)} annotation, node {shown} can only create mirror pods"
        raise forbidden(attributes, text)
    if spec.get("nodeName", "") != node:
        raise forbidden(attributes, f"node {shown} can only create pods with spec.nodeName set to itself")
    owners = meta.get("ownerReferences") or ()
    if len(owners) > 1:
        raise forbidden(attributes, f"node {shown} can only create pods with a single owner reference set to itself")
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        raise forbidden(attributes, f"node {shown} can only create pods with an owner reference set to itself")
    if not owner.get("controller"):
        raise forbidden(attributes, f"node {shown} can only create pods with a controller owner reference set to itself")
    if owner.get("blockOwnerDeletion"):
        raise forbidden(attributes, f"node {shown} must not set blockOwnerDeletion on an owner reference")
    found = attributes.context.services.get("", "nodes", "", node)
    if found is None:
        raise status.not_found("", "node", node)  # listers use the singular
    uid = found["metadata"]["uid"]
    if owner.get("uid") != uid:
        raise forbidden(attributes, f"node {node} UID mismatch: expected {owner.get('uid', '')} got {uid}")
    reference = api_object_reference(spec)
    if reference:
        raise forbidden(attributes, f"node {shown} can not create pods that reference {reference}")


def _check_pod_status(node: str, attributes: Attributes) -> None:
    if attributes.operation is not Operation.UPDATE:
        raise forbidden(attributes, f"unexpected operation {go_quote(attributes.operation.value)}")
    new, old, shown = attributes.object or {}, attributes.old or {}, go_quote(node)
    if (old.get("spec") or {}).get("nodeName", "") != node:
        raise forbidden(attributes, f"node {shown} can only update pod status for pods with spec.nodeName set to itself")
    if not semantic_deep_equal(_metadata(new).get("labels"), _metadata(old).get("labels")):
        raise forbidden(attributes, f"node {shown} cannot update labels through pod status")
    states = (new.get("status") or {}, old.get("status") or {})
    for field, what in (
        ("resourceClaimStatuses", "resource claim statues"),
        ("extendedResourceClaimStatus", "extended resource claim status"),
    ):
        if not semantic_deep_equal(*(state.get(field) for state in states)):
            raise forbidden(attributes, f"node {shown} cannot update {what}")


def _check_eviction(node: str, attributes: Attributes) -> None:
    if attributes.operation is not Operation.CREATE:
        raise forbidden(attributes, f"unexpected operation {attributes.operation.value}")
    if _pod(attributes, attributes.name)["spec"].get("nodeName", "") != node:
        raise forbidden(attributes, f"node {node} can only evict pods with spec.nodeName set to itself")


def _pod(attributes: Attributes, name: str) -> Object:
    found = attributes.context.services.get("", "pods", attributes.namespace, name)
    if found is None:
        raise status.not_found("", "pod", name)  # listers use the singular
    return found


def _metadata(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return obj.get("metadata") or {}


# --- Nodes and their objects ------------------------------------------------------------------------------------------


def _check_node(node: str, attributes: Attributes) -> None:
    shown, name = go_quote(node), attributes.name
    if attributes.operation is Operation.CREATE and not name:
        name = _metadata(attributes.object or {}).get("name", "")
    if name != node:
        raise forbidden(attributes, f"node {shown} is not allowed to modify node {go_quote(name)}")
    if attributes.operation is Operation.DELETE:
        return
    new, old = attributes.object or {}, attributes.old or {}
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    labels = _forbidden_labels(_metadata(new).get("labels") or {}, _metadata(old).get("labels") or {})
    if attributes.operation is Operation.CREATE:
        if spec.get("configSource") is not None:
            raise forbidden(attributes, f"node {shown} is not allowed to create pods with a non-nil configSource")
        if labels:
            raise forbidden(attributes, f"node {shown} is not allowed to set the following labels: {', '.join(labels)}")
        return
    if spec.get("configSource") is not None and not semantic_deep_equal(spec["configSource"], old_spec.get("configSource")):
        raise forbidden(attributes, f"node {shown} is not allowed to update configSource to a new non-nil configSource")
    if not semantic_deep_equal(spec.get("taints"), old_spec.get("taints")):
        raise forbidden(attributes, f"node {shown} is not allowed to modify taints")
    if not semantic_deep_equal(_metadata(new).get("ownerReferences"), _metadata(old).get("ownerReferences")):
        raise forbidden(attributes, f"node {shown} is not allowed to modify ownerReferences")
    if labels:
        raise forbidden(attributes, f"is not allowed to modify labels: {', '.join(labels)}")


def _forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Returns the changed labels that a kubelet may not modify."""
    changed = [key for key in {**new, **old} if new.get(key) != old.get(key)]
    return sorted(key for key in changed if _is_forbidden_label(key))


def _is_forbidden_label(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    if _is_within(domain, _RESTRICTED):
        return True
    if not (_is_within(domain, "kubernetes.io") or _is_within(domain, "k8s.io")):
        return False
    return key not in _KUBELET_LABELS and not any(_is_within(domain, allowed) for allowed in _KUBELET_DOMAINS)


def _is_within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def _check_claim(node: str, attributes: Attributes) -> None:
    if attributes.subresource != "status":
        raise forbidden(attributes, "may only update PVC status")
    if attributes.operation is not Operation.UPDATE:
        raise forbidden(attributes, f"unexpected operation {go_quote(attributes.operation.value)}")
    new, old = _without_sizes(attributes.object or {}), _without_sizes(attributes.old or {})
    if not semantic_deep_equal(new, old):
        text = f"node {go_quote(node)} is not allowed to update fields other than status.quantity and status.conditions"
        raise forbidden(attributes, f"{text}: {diff('PersistentVolumeClaim', old, new)}")


def _without_sizes(claim: Object) -> Object:
    """Returns a claim without the fields that a kubelet may change."""
    dropped = ("capacity", "conditions", "allocatedResourceStatuses", "allocatedResources")
    meta = {key: value for key, value in _metadata(claim).items() if key not in ("resourceVersion", "managedFields")}
    state = {key: value for key, value in (claim.get("status") or {}).items() if key not in dropped}
    kept = {key: value for key, value in claim.items() if key not in ("kind", "apiVersion")}
    return {**kept, "metadata": meta, "status": state}


def _check_service_account(node: str, attributes: Attributes) -> None:
    if attributes.operation is not Operation.CREATE or attributes.subresource != "token":
        return
    request = (attributes.object or {}).get("spec") or {}
    reference = request.get("boundObjectRef") or {}
    if (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Pod") or not reference.get("name"):
        raise forbidden(attributes, "node requested token not bound to a pod")
    uid = reference.get("uid")
    if not uid:
        raise forbidden(attributes, "node requested token with a pod binding without a uid")
    pod = _pod(attributes, reference["name"])
    if uid != pod["metadata"]["uid"]:
        raise forbidden(attributes, uid_mismatch(uid))
    if pod["spec"].get("nodeName", "") != node:
        raise forbidden(attributes, "node requested token bound to a pod scheduled on a different node")
    if features.current().enabled("ServiceAccountNodeAudienceRestriction"):
        _check_audience(attributes, request, pod)


def _check_audience(attributes: Attributes, request: Mapping[str, Any], pod: Object) -> None:
    audiences = request.get("audiences") or ("",)
    if len(audiences) > 1:
        raise forbidden(attributes, "node may only request 0 or 1 audiences")
    audience, context = audiences[0], attributes.context
    problems: list[str] = []
    if _finds_audience(attributes, pod, audience, problems):
        return
    if problems:
        raise forbidden(attributes, f"error validating audience {go_quote(audience)}: {aggregate_errors(problems)}")
    asked = {
        "verb": "request-serviceaccounts-token-audience",
        "namespace": attributes.namespace,
        "version": "v1",
        "resource": audience,
        "name": attributes.name,
    }
    if not context.authorize(asked)[0]:
        text = f"audience {go_quote(audience)} not found in pod spec volume"
        raise forbidden(attributes, f"{text}, {context.user} is not authorized to request tokens for this audience")


def _finds_audience(attributes: Attributes, pod: Object, audience: str, problems: list[str]) -> bool:
    """Reports whether a volume of a pod requests tokens for this audience (podReferencesAudience).

    `problems` gets the messages about claims, volumes and drivers that were not found.
    """
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None and source["serviceAccountToken"].get("audience", "") == audience:
                return True
        try:
            driver = _csi_driver(attributes, volume, pod["metadata"]["name"])
        except StatusError as error:
            problems.append(error.message)
            continue
        if not driver:
            continue
        found = attributes.context.services.get("storage.k8s.io", "csidrivers", "", driver)
        if found is None:
            problems.append(status.not_found("storage.k8s.io", "csidriver", driver).message)
        elif any(one.get("audience", "") == audience for one in found["spec"].get("tokenRequests") or ()):
            return True
    return False


def _csi_driver(attributes: Attributes, volume: Mapping[str, Any], pod: str) -> str:
    """Returns the CSI driver of a volume of a pod, or "". Raises StatusError if its claim or volume does not exist."""
    if volume.get("csi") is not None:
        return str(volume["csi"].get("driver", ""))
    name = next(claim_names({"volumes": [volume]}, pod), None)
    if name is None:
        return ""
    get = attributes.context.services.get
    claim = get("", "persistentvolumeclaims", attributes.namespace, name)
    if claim is None:
        raise status.not_found("", "persistentvolumeclaim", name)
    bound = claim["spec"].get("volumeName", "")
    found = get("", "persistentvolumes", "", bound)
    if found is None:
        raise status.not_found("", "persistentvolume", bound)
    return str((found["spec"].get("csi") or {}).get("driver", ""))


def _name_of(attributes: Attributes) -> str:
    """Returns the name of the object; the URL of a create has none."""
    if attributes.operation is Operation.CREATE:
        return str(_metadata(attributes.object or {}).get("name", ""))
    return attributes.name


def _check_lease(node: str, attributes: Attributes) -> None:
    if attributes.namespace != NAMESPACE_NODE_LEASE:
        raise forbidden(attributes, f"can only access leases in the {go_quote(NAMESPACE_NODE_LEASE)} system namespace")
    if _name_of(attributes) != node:
        raise forbidden(attributes, LEASE_OF_OTHER_NODE)


def _check_csi_node(node: str, attributes: Attributes) -> None:
    if _name_of(attributes) != node:
        raise forbidden(attributes, CSI_NODE_OF_OTHER_NODE)
    if attributes.subresource != "status":
        return
    if not features.current().enabled("CSIVolumeHealth"):
        raise forbidden(attributes, "CSIVolumeHealth feature gate is disabled")
    assert attributes.object is not None and attributes.old is not None
    if not semantic_deep_equal(attributes.object.get("spec"), attributes.old.get("spec")):
        raise forbidden(attributes, f"node {go_quote(node)} is not allowed to modify CSINode spec via status")


def _check_resource_slice(node: str, attributes: Attributes) -> None:
    objects = {Operation.CREATE: attributes.object, Operation.DELETE: attributes.old}
    obj = objects.get(attributes.operation)
    if obj is not None and (obj.get("spec") or {}).get("nodeName", "") != node:
        verb = "create" if attributes.operation is Operation.CREATE else "delete"
        raise forbidden(attributes, f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


def _check_signing_request(node: str, attributes: Attributes) -> None:
    if attributes.operation is not Operation.CREATE:
        return
    spec = (attributes.object or {}).get("spec") or {}
    signer = spec.get("signerName", "")
    if signer not in _CLIENT_SIGNERS or features.current().enabled("AllowInsecureKubeletCertificateSigningRequests"):
        return

    from cryptography.x509.oid import NameOID

    from fakekube.apis.certificates.certificatesigningrequests import parse_csr, problem_with_request

    text = spec.get("request") or ""
    problem = problem_with_request(text)
    if problem:
        raise forbidden(attributes, f"unable to parse csr: {problem}")
    request = parse_csr(text)
    assert request is not None
    names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = str(names[-1].value) if names else ""
    if name != attributes.context.user:
        raise forbidden(attributes, "can only create a node CSR with CN=" + attributes.context.user)


_CHECKS: Final[Mapping[tuple[str, str], Callable[[str, Attributes], None]]] = {
    ("", "pods"): _check_pod,
    ("", "nodes"): _check_node,
    ("", "persistentvolumeclaims"): _check_claim,
    ("", "serviceaccounts"): _check_service_account,
    ("coordination.k8s.io", "leases"): _check_lease,
    ("storage.k8s.io", "csinodes"): _check_csi_node,
    ("resource.k8s.io", "resourceslices"): _check_resource_slice,
    ("certificates.k8s.io", "certificatesigningrequests"): _check_signing_request,
}
