"""The public interface of a cluster: start, load, read, wait, snapshot, fork, stop.

`cluster` has the class that users see; `serving` and `kubeconfigs` are the ways in, `state` handles what it holds.
"""

from __future__ import annotations

from fakekube.cluster.cluster import Cluster
from fakekube.cluster.kubeconfigs import TOKEN

__all__ = ["TOKEN", "Cluster"]
