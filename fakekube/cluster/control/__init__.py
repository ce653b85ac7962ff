"""The control API: the methods of `Cluster` over HTTP, under /fakekube/v1.

`prefix` is the WSGI application that passes all other requests to the Kubernetes API; `endpoints` authorizes requests and
has the table of paths, `powers`, `pods` and `recordings` their functions, and `members` parses request bodies. Only `prefix` is
imported before the first request.
"""

from __future__ import annotations

from fakekube.cluster.control.prefix import WSGI, Control

__all__ = ["WSGI", "Control"]
