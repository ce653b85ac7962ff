"""Resources that admission does not show to webhooks and policies.

Specified by: pkg/kubeapiserver/admission/exclusion.
"""

from __future__ import annotations

from typing import Final

#: The gate with which no webhook sees reviews.
EXCLUDING_GATE: Final = "ExcludeAdmissionWebhookVirtualResources"

#: The reviews, which are not stored (exclusion.Excluded).
REVIEWS: Final = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
)
