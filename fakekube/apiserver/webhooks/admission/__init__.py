"""Admission plugins that call webhooks.

`configurations` provides the compiled webhooks, builds the AdmissionReview, calls a webhook and verifies the response; `plugins`
has MutatingAdmissionWebhook, with its patches, and ValidatingAdmissionWebhook; `image_policy` is another plugin. The
failurePolicy is applied in `plugins`.

No webhook is called under a lock. Without configurations, a write only reads the revision of an empty bucket.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook.
"""

from fakekube.apiserver.webhooks.admission.plugins import MutatingAdmissionWebhook, ValidatingAdmissionWebhook

__all__ = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"]
