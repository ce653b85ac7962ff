"""kube-scheduler with its default configuration: binds pending pods to nodes.

`framework` defines statuses and plugins, `cycle` the state of a scheduling cycle, `nodeinfo` the view of nodes and their pods;
`plugins/` contains the default plugins; `algorithm` runs a scheduling cycle, `preemption` follows if no node fits; `queue` holds
pending pods, `queueing_hints` decides which events retry them; `scheduler` is the reconciler.

Specified by: pkg/scheduler.
"""

from __future__ import annotations
