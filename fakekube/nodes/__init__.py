"""Nodes and their kubelets: pods that are bound to a node run, end and go, as a kubelet shows it.

Containers do not run; what a kubelet would say of them is written into the status of their pods. By default a pod is
ready as soon as it has a node, the pods of Jobs succeed at once, and a pod that is deleted is gone at once. What a pod is told
(by annotations, by `cluster.pods.on(…)`, by kwok's stages) it does by the cluster's clock, with everything on the way.
"""

from __future__ import annotations
