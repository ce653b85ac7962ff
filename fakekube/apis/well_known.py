"""Labels, annotations, taints, effects, finalizers, users and types of Secrets of Kubernetes that more than one module uses.

The names are those of the Go constants.

Specified by: k8s.io/api/core/v1/{well_known_labels,well_known_taints,annotation_key_constants,types}.go,
k8s.io/api/apps/v1/types.go, k8s.io/component-helpers/storage/volume/helpers.go,
k8s.io/api/{certificates,discovery,networking}/v1, k8s.io/kubernetes/pkg/{apis/certificates,serviceaccount,volume/util},
plugin/pkg/admission/serviceaccount, k8s.io/apiserver/pkg/authentication/serviceaccount/util.go,
k8s.io/kube-aggregator/pkg/controllers/autoregister.
"""

from __future__ import annotations

from typing import Final

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"

KUBELET_PORT: Final = 10250

#: The ConfigMap of each namespace that has the CA of the cluster.
ROOT_CA_CERT_CONFIG_MAP_NAME: Final = "kube-root-ca.crt"

NODE_USER_NAME_PREFIX: Final = "system:node:"

NODES_GROUP: Final = "system:nodes"

SERVICE_ACCOUNT_USERNAME_PREFIX: Final = "system:serviceaccount:"
#: The extra attribute of a user whose token is bound to a pod, with the node of the pod.
NODE_NAME_KEY: Final = "authentication.kubernetes.io/node-name"

_ALL_SERVICE_ACCOUNTS_GROUP: Final = "system:serviceaccounts"

AUTO_REGISTER_MANAGED_LABEL: Final = "kube-aggregator.kubernetes.io/automanaged"

SYSTEM_PRIVILEGED_GROUP: Final = "system:masters"

KUBE_APISERVER_CLIENT_SIGNER_NAME: Final = "kubernetes.io/kube-apiserver-client"
KUBE_APISERVER_CLIENT_KUBELET_SIGNER_NAME: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING_SIGNER_NAME: Final = "kubernetes.io/kubelet-serving"
LEGACY_UNKNOWN_SIGNER_NAME: Final = "kubernetes.io/legacy-unknown"

NAMESPACE_NODE_LEASE: Final = "kube-node-lease"
NAMESPACE_SYSTEM: Final = "kube-system"

DEFAULT_SERVICE_ACCOUNT_NAME: Final = "default"

TERMINAL_POD_PHASES: Final = frozenset({"Succeeded", "Failed"})

ANNOTATION_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
ANN_MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"
BETA_STORAGE_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
CONTROLLER_REVISION_HASH_LABEL: Final = "controller-revision-hash"
DEPRECATED_APP_ARMOR_ANNOTATION_KEY_PREFIX: Final = "container.apparmor.security.beta.kubernetes.io/"
#: The revision of a rollback, a field of extensions/v1beta1.
DEPRECATED_ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"
#: The templateGeneration, a field of extensions/v1beta1.
DEPRECATED_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
ENDPOINTS_LAST_CHANGE_TRIGGER_TIME: Final = "endpoints.kubernetes.io/last-change-trigger-time"
ENFORCE_MOUNTABLE_SECRETS_ANNOTATION: Final = "kubernetes.io/enforce-mountable-secrets"
INVALID_SINCE_LABEL_KEY: Final = "kubernetes.io/legacy-token-invalid-since"
IS_HEADLESS_SERVICE: Final = "service.kubernetes.io/headless"
JOB_TRACKING_FINALIZER: Final = "batch.kubernetes.io/job-tracking"
LABEL_ARCH_STABLE: Final = "kubernetes.io/arch"
LABEL_HOSTNAME: Final = "kubernetes.io/hostname"
LABEL_IP_ADDRESS_FAMILY: Final = "ipaddress.kubernetes.io/ip-family"
LABEL_OS_STABLE: Final = "kubernetes.io/os"
LABEL_SERVICE_NAME: Final = "kubernetes.io/service-name"
LABEL_SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"
LABEL_TOPOLOGY_ZONE: Final = "topology.kubernetes.io/zone"
LAST_APPLIED_CONFIG_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
MIRROR_POD_ANNOTATION_KEY: Final = "kubernetes.io/config.mirror"
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
POD_GROUP_PROTECTION_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"
PVC_PROTECTION_FINALIZER: Final = "kubernetes.io/pvc-protection"
PV_PROTECTION_FINALIZER: Final = "kubernetes.io/pv-protection"
SECCOMP_CONTAINER_ANNOTATION_KEY_PREFIX: Final = "container.seccomp.security.alpha.kubernetes.io/"
SECCOMP_POD_ANNOTATION_KEY: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECRET_TYPE_BOOTSTRAP_TOKEN: Final = "bootstrap.kubernetes.io/token"
SECRET_TYPE_SERVICE_ACCOUNT_TOKEN: Final = "kubernetes.io/service-account-token"
SERVICE_ACCOUNT_NAME_KEY: Final = "kubernetes.io/service-account.name"
SERVICE_ACCOUNT_UID_KEY: Final = "kubernetes.io/service-account.uid"
TAINT_EFFECT_NO_EXECUTE: Final = "NoExecute"
TAINT_EFFECT_NO_SCHEDULE: Final = "NoSchedule"
TAINT_EFFECT_PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
TAINT_NODE_DISK_PRESSURE: Final = "node.kubernetes.io/disk-pressure"
TAINT_NODE_MEMORY_PRESSURE: Final = "node.kubernetes.io/memory-pressure"
TAINT_NODE_NETWORK_UNAVAILABLE: Final = "node.kubernetes.io/network-unavailable"
TAINT_NODE_NOT_READY: Final = "node.kubernetes.io/not-ready"
TAINT_NODE_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
TAINT_NODE_PID_PRESSURE: Final = "node.kubernetes.io/pid-pressure"
TAINT_NODE_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
TAINT_NODE_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
VAC_PROTECTION_FINALIZER: Final = "kubernetes.io/vac-protection"


def service_account_username(namespace: str, name: str) -> str:
    """Returns the user name of a service account (MakeUsername)."""
    return f"{SERVICE_ACCOUNT_USERNAME_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Returns the groups of a service account, without system:authenticated (MakeGroupNames)."""
    return (_ALL_SERVICE_ACCOUNTS_GROUP, f"{_ALL_SERVICE_ACCOUNTS_GROUP}:{namespace}")
