"""Who is asking, and may they: credentials become users, users impersonate, roles allow.

* `authentication` turns a request's credentials into a `User`; `tokens` signs and verifies service account
  tokens.
* `impersonation` lets a user ask as another one; `authorization` decides, by `rbac` over the cluster's
  roles.
* `reviews` answers the review kinds (TokenReview, SubjectAccessReview …) with the same code.
"""
