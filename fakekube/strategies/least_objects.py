"""The least that an object of a built-in kind needs to be accepted, where its schema does not say it.

A schema does not state all that the validation of a kind demands: a selector that matches a template, a certificate that can be
read, exactly one of some fields. `fakekube.strategies.objects` draws what else the schema allows around these fields.

Specified by: the validation of each kind (k8s.io/kubernetes/pkg/apis/…/validation).
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from fakekube.apimachinery.data import RBAC
from fakekube.base.objects import Object

_POD_SPEC: Final = {"containers": [{"name": "main", "image": "nginx"}]}
_TEMPLATE: Final = {"metadata": {"labels": {"app": "a"}}, "spec": _POD_SPEC}
_SELECTED: Final = {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}
_JOB: Final = {"template": {"spec": {**_POD_SPEC, "restartPolicy": "Never"}}}
_PATH: Final = {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}
_ROLE_REF: Final = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}}
_MATCHED: Final = {
    "resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]
}
_REMOVAL: Final = "[JSONPatch{op: 'remove', path: '/metadata/labels'}]"
#: A PKCS #10 request for the subject "", and a certificate of a root authority, both with an Ed25519 key.
_REQUEST: Final = (
    "MH8wMwIBADAAMCowBQYDK2VwAyEAA6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbigADAFBgMrZXADQQD+T6LD/tC3dgs1QpDKx4kUxYQE7xZe9aBnQUcZ"
    "w2xzeoWgFx/pD/xHAMYHE4CCTNhwz2GdgvzsSlQWl8KwMroI"
)
_AUTHORITY: Final = """-----BEGIN CERTIFICATE-----
MIHbMIGOoAMCAQICAQEwBQYDK2VwMAwxCjAIBgNVBAMMAWEwIBcNMjYwMTAxMDAw
MDAwWhgPMjEyNjAxMDEwMDAwMDBaMAwxCjAIBgNVBAMMAWEwKjAFBgMrZXADIQAD
oQe/884Qvh1w3RjnS8CZZ+TWMJulDV8d3IZkElUxuKMTMBEwDwYDVR0TAQH/BAUw
AwEB/zAFBgMrZXADQQC4ZFBH6RfNk3w7Tgt4vzTIgb/KsYJiTR9HdVAmrqQfDSl8
rl3G4efJosO0zDPfLNfHmOszgVR4Hhw1rOUkEN4A
-----END CERTIFICATE-----
"""
_PEM_REQUEST: Final = f"-----BEGIN CERTIFICATE REQUEST-----\n{_REQUEST}\n-----END CERTIFICATE REQUEST-----\n"

#: Stands for the namespace of the object.
_NAMESPACE: Final = "{namespace}"
#: Group and kind → the fields of the least object.
_LEAST: Final[Mapping[tuple[str, str], Object]] = {
    ("", "PersistentVolume"): {
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}
    },
    ("", "PersistentVolumeClaim"): {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    ("", "Pod"): {"spec": _POD_SPEC},
    ("", "PodTemplate"): {"template": _TEMPLATE},
    ("", "ReplicationController"): {"spec": {"selector": {"app": "a"}, "template": _TEMPLATE}},
    ("", "Service"): {"spec": {"ports": [{"port": 80}]}},
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): {
        "spec": {
            "matchConstraints": _MATCHED,
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _REMOVAL}}],
            "reinvocationPolicy": "Never",
        }
    },
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): {"spec": {"policyName": "a"}},
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): {
        "spec": {"matchConstraints": _MATCHED, "validations": [{"expression": "true"}]}
    },
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): {
        "spec": {"policyName": "a", "validationActions": ["Deny"]}
    },
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        }
    },
    ("apiregistration.k8s.io", "APIService"): {
        "spec": {
            "group": "example.com",
            "groupPriorityMinimum": 1000,
            "service": {"name": "a", "namespace": "default"},
            "version": "v1",
            "versionPriority": 10,
        }
    },
    ("apps", "DaemonSet"): {"spec": _SELECTED},
    ("apps", "Deployment"): {"spec": _SELECTED},
    ("apps", "ReplicaSet"): {"spec": _SELECTED},
    ("apps", "StatefulSet"): {"spec": {**_SELECTED, "serviceName": "a"}},
    ("authorization.k8s.io", "LocalSubjectAccessReview"): {
        "metadata": {"namespace": _NAMESPACE},
        "spec": {"resourceAttributes": {"namespace": _NAMESPACE, "resource": "pods", "verb": "get"}, "user": "alice"},
    },
    ("authorization.k8s.io", "SelfSubjectAccessReview"): {"spec": _PATH},
    ("authorization.k8s.io", "SubjectAccessReview"): {"spec": {**_PATH, "user": "alice"}},
    ("autoscaling", "HorizontalPodAutoscaler"): {
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}
    },
    ("batch", "CronJob"): {"spec": {"jobTemplate": {"spec": _JOB}, "schedule": "* * * * *"}},
    ("batch", "Job"): {"spec": _JOB},
    ("certificates.k8s.io", "CertificateSigningRequest"): {
        "spec": {
            "request": b64encode(_PEM_REQUEST.encode()).decode(),
            "signerName": "example.com/signer",
            "usages": ["client auth"],
        }
    },
    ("certificates.k8s.io", "ClusterTrustBundle"): {"spec": {"trustBundle": _AUTHORITY}},
    ("certificates.k8s.io", "PodCertificateRequest"): {
        "spec": {
            "maxExpirationSeconds": 3600,
            "nodeName": "a",
            "nodeUID": "a",
            "podName": "a",
            "podUID": "a",
            "serviceAccountName": "default",
            "serviceAccountUID": "a",
            "signerName": "example.com/signer",
            "stubPKCS10Request": _REQUEST,
        }
    },
    ("events.k8s.io", "Event"): {
        "action": "Act",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reason": "Reason",
        "regarding": {"namespace": _NAMESPACE},
        "reportingController": "example.com/a",
        "reportingInstance": "a",
        "type": "Normal",
    },
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): {"spec": {"priorityLevelConfiguration": {"name": "workload-low"}}},
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): {
        "spec": {"limited": {"limitResponse": {"type": "Reject"}}, "type": "Limited"}
    },
    ("networking.k8s.io", "IPAddress"): {
        "spec": {"parentRef": {"group": "", "name": "a", "namespace": "default", "resource": "services"}}
    },
    ("networking.k8s.io", "IngressClass"): {"spec": {"controller": "example.com/a"}},
    ("networking.k8s.io", "ServiceCIDR"): {"spec": {"cidrs": ["192.168.0.0/24"]}},
    (RBAC, "ClusterRoleBinding"): _ROLE_REF,
    (RBAC, "RoleBinding"): _ROLE_REF,
    ("resource.k8s.io", "ResourceSlice"): {
        "spec": {"driver": "example.com", "nodeName": "a", "pool": {"generation": 1, "name": "a", "resourceSliceCount": 1}}
    },
    ("storage.k8s.io", "VolumeAttachment"): {
        "spec": {"attacher": "example.com", "nodeName": "a", "source": {"persistentVolumeName": "a"}}
    },
}

NO_NAME: Final = ""
#: Group and kind → the names that objects of it may have, where that is not any name.
NAMES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("widgets.example.com",),
    ("apiregistration.k8s.io", "APIService"): ("v1.example.com",),
    ("authorization.k8s.io", "LocalSubjectAccessReview"): (NO_NAME,),
    ("authorization.k8s.io", "SelfSubjectAccessReview"): (NO_NAME,),
    ("authorization.k8s.io", "SubjectAccessReview"): (NO_NAME,),
    ("networking.k8s.io", "IPAddress"): ("10.0.0.10", "10.0.0.11", "fd00::a"),
}


def least_object(group: str, kind: str, namespace: str) -> Object:
    """Returns the fields that an object of the kind needs; it belongs to the caller."""
    made: Object = json.loads(json.dumps(_LEAST.get((group, kind), {})).replace(_NAMESPACE, namespace))
    return made
