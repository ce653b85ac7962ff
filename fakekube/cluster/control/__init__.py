"""The control API: the methods of `Cluster` over HTTP, under /fakekube/v1.

`cluster.serving.Control` passes all other requests to the Kubernetes API; `endpoints` authorizes requests and has the table of
paths, `powers` and `pods` their functions, `page` those of the page, which it serves, and `members` parses request bodies.
Only `members` is imported before the first request.
"""
