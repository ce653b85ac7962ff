"""Admission webhooks: the plugins that ask the webhooks of mutating and validating configurations.

`configurations` reads what is configured, `reviews` says what a webhook is sent and judges its answer, `calls` puts both
together with the caller, `patches` applies what a mutating webhook answers; `mutating` and `validating` are the plugins.

No call is made under a lock. With nothing configured, a write costs one look at an empty bucket.

Specified by: k8s.io/apiserver/pkg/admission/plugin/webhook.
"""

from fakekube.webhooks.admission.mutating import MutatingAdmissionWebhook
from fakekube.webhooks.admission.validating import ValidatingAdmissionWebhook

__all__ = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"]
