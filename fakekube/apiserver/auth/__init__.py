"""Authenticates and authorizes requests.

* `authentication` turns a request's credentials into a `User`, by `certificates`, `service_accounts` (which also signs tokens) or
  `jwt` (OpenID Connect, configured by `authentication_configuration`); `impersonation` exchanges the user for another one.
* `authorization` defines authorizers, `authorizers` builds those of a cluster: `rbac`, `node`, `webhook`.
* `access` puts them together for the requests of one cluster, and for the review kinds (TokenReview, SubjectAccessReview …).
"""
