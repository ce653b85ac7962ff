"""API groups that other servers serve: APIServices with a Service behind, as kube-aggregator passes requests on to them.

`controller` follows which APIServices there are and whether their servers answer, in threads of its own; `proxy` passes
requests on; `discovery` and `openapi` know what the servers say of themselves. `backends` are the servers: behind a
Service (`remote`), or a WSGI application of this process (`mounted`).

Invariant: while no APIService has a Service, a request costs one attribute test more.
"""
