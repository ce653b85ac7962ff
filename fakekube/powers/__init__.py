"""The powers of a test author over a running cluster: what was asked of it (recorder), and what goes wrong (faults).

`observation` stands at the seams of the API: before and after a request, and around the stream of a watch. `exchange` is what is
kept of a request, `recorder` keeps them in a ring, and `requests` is the view that a test narrows. `faults` are armed by
`faults.on(…)`, one of the `actions` each; `streams` is a watch on its way to the client.

Invariant: the state stays true. A conflict is a real write, a 410 a real compaction, a lost answer a request that was performed.

Specified by: the behaviour of kube-apiserver, its storage and the network between it and its clients.
"""
