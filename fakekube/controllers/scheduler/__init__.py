"""kube-scheduler with its default configuration: binds pending pods to nodes.

`framework` defines the view of nodes and their pods, the state of a scheduling cycle, statuses and plugins; `plugins/` contains
the default plugins; `algorithm` runs a scheduling cycle, `preemption` selects pods to delete if no node fits; `queue` holds
pending pods and decides which events retry them; `scheduler` is the reconciler, and writes statuses and events.

Specified by: pkg/scheduler.
"""

from __future__ import annotations
