"""Valid objects of the kinds that the random scenarios play with. `{n}` is the object's name, `{ns}` its namespace."""

from __future__ import annotations

from typing import Any

_LABELS = {"app": "a", "tier": "front"}
_CONTAINER = {
    "name": "c",
    "image": "nginx:1.27",
    "ports": [{"containerPort": 80, "name": "web"}],
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
}
_POD = {"containers": [_CONTAINER], "restartPolicy": "Always"}
_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [_CONTAINER]}}

#: kind -> (group/version path, plural, namespaced, object without apiVersion/kind/metadata.name, subresources)
KINDS: dict[str, tuple[str, str, bool, dict[str, Any], tuple[str, ...]]] = {
    "ConfigMap": ("v1", "configmaps", True, {"metadata": {"labels": _LABELS}, "data": {"k": "v", "l": "w"}}, ()),
    "Secret": (
        "v1",
        "secrets",
        True,
        {"metadata": {"labels": _LABELS}, "data": {"k": "dg=="}, "stringData": {"p": "q"}, "type": "Opaque"},
        (),
    ),
    "Service": (
        "v1",
        "services",
        True,
        {
            "metadata": {"labels": _LABELS},
            "spec": {
                "selector": {"app": "a"},
                "ports": [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "dns", "port": 53, "protocol": "UDP"}],
            },
        },
        ("status",),
    ),
    "Pod": ("v1", "pods", True, {"metadata": {"labels": _LABELS}, "spec": _POD}, ("status",)),
    "ServiceAccount": (
        "v1",
        "serviceaccounts",
        True,
        {"metadata": {"labels": _LABELS}, "automountServiceAccountToken": False},
        (),
    ),
    "Event": (
        "v1",
        "events",
        True,
        {
            "involvedObject": {"kind": "Pod", "namespace": "{ns}", "name": "p"},
            "reason": "Started",
            "message": "it did",
            "type": "Normal",
            "source": {"component": "t"},
            "count": 1,
        },
        (),
    ),
    "Deployment": (
        "apps/v1",
        "deployments",
        True,
        {
            "metadata": {"labels": _LABELS},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE},
        },
        ("status", "scale"),
    ),
    "Job": (
        "batch/v1",
        "jobs",
        True,
        {"metadata": {"labels": _LABELS}, "spec": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}},
        ("status",),
    ),
    "Lease": (
        "coordination.k8s.io/v1",
        "leases",
        True,
        {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z"}},
        (),
    ),
    "Role": (
        "rbac.authorization.k8s.io/v1",
        "roles",
        True,
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]},
        (),
    ),
    "RoleBinding": (
        "rbac.authorization.k8s.io/v1",
        "rolebindings",
        True,
        {
            "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"},
        },
        (),
    ),
    "PodDisruptionBudget": (
        "policy/v1",
        "poddisruptionbudgets",
        True,
        {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
        ("status",),
    ),
    "Node": ("v1", "nodes", False, {"metadata": {"labels": {"zone": "z1"}}, "spec": {"podCIDR": "10.1.0.0/24"}}, ("status",)),
    "ClusterRole": (
        "rbac.authorization.k8s.io/v1",
        "clusterroles",
        False,
        {"rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}]},
        (),
    ),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses", False, {"value": 10, "description": "d"}, ()),
}

#: A definition and its custom resource, made by the scenarios that draw the kind "Widget".
WIDGET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 0, "maximum": 100, "default": 3},
                "color": {"type": "string", "enum": ["red", "green", "blue"], "default": "red"},
                "name": {"type": "string", "maxLength": 10, "pattern": "^[a-z]+$"},
                "ratio": {"type": "number"},
                "flag": {"type": "boolean", "nullable": True},
                "parts": {
                    "type": "array",
                    "maxItems": 5,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["id"],
                    "items": {
                        "type": "object",
                        "required": ["id"],
                        "properties": {"id": {"type": "string"}, "count": {"type": "integer", "default": 1}},
                    },
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "options": {"type": "object", "additionalProperties": {"type": "string"}},
                "port": {"x-kubernetes-int-or-string": True},
                "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
            "x-kubernetes-validations": [
                {"rule": "!has(self.name) || self.name != 'bad'", "message": "name must not be bad", "fieldPath": ".name"},
                {
                    "rule": "self.size >= oldSelf.size",
                    "messageExpression": "oldSelf.size > 3 ? 'a size above 3 may not shrink' : 'size may not shrink'",
                },
            ],
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}}},
    },
}


def widget_definition(plural: str, kind: str, group: str, scope: str = "Namespaced") -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {
                "plural": plural,
                "singular": kind.lower(),
                "kind": kind,
                "listKind": f"{kind}List",
                "shortNames": [plural[:3]],
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": WIDGET_SCHEMA},
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"},
                    },
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    "selectableFields": [{"jsonPath": ".spec.color"}],
                }
            ],
        },
    }


WIDGET = {
    "metadata": {"labels": _LABELS},
    "spec": {
        "size": 4,
        "color": "blue",
        "parts": [{"id": "a"}, {"id": "b", "count": 2}],
        "tags": ["x", "y"],
        "options": {"o": "1"},
        "port": "http",
        "extra": {"deep": {"er": 1}},
    },
}
