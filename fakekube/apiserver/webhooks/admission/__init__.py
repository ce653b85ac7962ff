"""Admission plugins that call webhooks.

`configurations` provides the compiled webhooks, `reviews` builds the AdmissionReview and verifies the response, `calls`
calls a webhook, `patches` applies the patch of a mutating webhook; `mutating`, `validating` and `image_policy` are the plugins.

No webhook is called under a lock. Without configurations, a write only reads the revision of an empty bucket.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook.
"""

from fakekube.apiserver.webhooks.admission.plugins import MutatingAdmissionWebhook, ValidatingAdmissionWebhook

__all__ = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"]
