"""Labels, annotations, taints and effects that Kubernetes defines and that more than one module uses.

The names are those of the Go constants.

Specified by: k8s.io/api/core/v1/{well_known_labels,well_known_taints,annotation_key_constants,types}.go,
k8s.io/api/apps/v1/types.go, k8s.io/component-helpers/storage/volume/helpers.go.
"""

from __future__ import annotations

from typing import Final

ANN_MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"
CONTROLLER_REVISION_HASH_LABEL: Final = "controller-revision-hash"
IS_HEADLESS_SERVICE: Final = "service.kubernetes.io/headless"
LABEL_TOPOLOGY_ZONE: Final = "topology.kubernetes.io/zone"
LAST_APPLIED_CONFIG_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
TAINT_EFFECT_NO_EXECUTE: Final = "NoExecute"
TAINT_NODE_NOT_READY: Final = "node.kubernetes.io/not-ready"
TAINT_NODE_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
TAINT_NODE_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
