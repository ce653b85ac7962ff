"""Authenticates and authorizes requests.

* `authentication` turns a request's credentials into a `User`; `tokens` signs and verifies service account
  tokens.
* `impersonation` implements user impersonation; `authorization` authorizes requests, by `rbac` with the
  roles of the cluster.
* `reviews` implements the review kinds (TokenReview, SubjectAccessReview …) with the same code.
"""
