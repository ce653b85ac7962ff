"""What a test author can do with a running cluster beside using its API: recorded requests, faults, history, saved states.

`observation` is called by the application before and after each request, and wraps the stream of a watch. An `exchange` is the
record of one request and its response, `requests` keeps the latest of them and selects among them. `faults` has the armed
faults, each with one of the `fault_actions`; `streams` is a watch with faults. `recording`, `replay`, `state`, `history` and
`export` are about the contents of the store.

Invariant: faults do not make up state. A conflict is a real write, a 410 a real compaction, and a request whose response is lost
was performed.

Specified by: the behaviour of kube-apiserver, its storage and the network between it and its clients.
"""
