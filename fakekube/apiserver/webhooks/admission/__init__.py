"""Admission plugins that call webhooks.

`configurations` provides the compiled webhooks and calls them, `admission_review` builds the AdmissionReview and verifies the
response; `plugins` has MutatingAdmissionWebhook, with its patches, and ValidatingAdmissionWebhook, which apply the failurePolicy;
`image_policy` is another plugin.

No webhook is called under a lock. Without configurations, a write only reads the revision of an empty bucket.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook.
"""

from fakekube.apiserver.webhooks.admission.plugins import MutatingAdmissionWebhook, ValidatingAdmissionWebhook

__all__ = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"]
