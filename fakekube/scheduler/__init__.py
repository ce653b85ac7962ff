"""kube-scheduler: binds the pods that name it to nodes, as the real one with its default configuration.

`framework` holds the words of the scheduling framework (statuses, plugins, a cycle), `nodeinfo` what is known of nodes
and their pods, `plugins/` the default plugins one by one, `algorithm` a scheduling cycle, `preemption` what follows when
no node fits, `queue` which events make a pod that did not fit worth another try, and `scheduler` the reconciler.
"""

from __future__ import annotations
