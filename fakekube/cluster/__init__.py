"""The public interface of a cluster: start, load, read, wait, snapshot, fork, stop.

`cluster` has the class that users see. Its base classes are parts of it: `observed` (what happened), `served` (the server, users
and recorded requests), `state` (the contents of the store). `components` builds the API server and the controllers, `serving` the
HTTP server, `kubeconfig` writes kubeconfig files, and `pool` has many clusters.
"""

from __future__ import annotations

import logging

from fakekube.cluster.cluster import Cluster
from fakekube.cluster.kubeconfig import TOKEN

__all__ = ["TOKEN", "Cluster"]

# As libraries do: a program that configures no logging is not written to.
logging.getLogger("fakekube").addHandler(logging.NullHandler())
