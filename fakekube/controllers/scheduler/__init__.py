"""kube-scheduler with its default configuration: binds pending pods to nodes.

`framework` defines the state of a scheduling cycle, statuses and plugins, `nodeinfo` the view of nodes and their pods, `volumes`
that of claims; `plugins/` contains the default plugins; `algorithm` runs a scheduling cycle, `preemption` follows if no node
fits; `queue` holds pending pods and decides which events retry them; `events` writes statuses and events; `scheduler` is the
reconciler.

Specified by: pkg/scheduler.
"""

from __future__ import annotations
