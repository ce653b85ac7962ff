"""Nodes and their kubelets: pods that are bound to a node run, terminate and are deleted, as a kubelet reports it.

By default no processes run; the kubelet writes the status that containers would have. A pod is ready as soon as it has a node,
the pods of Jobs succeed at once, and a deleted pod is removed at once. A pod with a plan (from annotations or
`cluster.pods.on(…)`) or with stages of kwok goes through their states by the cluster's clock.

Specified by: pkg/kubelet.
"""

from __future__ import annotations
