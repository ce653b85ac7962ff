"""API groups that extension API servers serve: proxies requests to the Service of an APIService, like kube-aggregator.

`controller` observes the APIServices and checks the availability of their servers in its own threads; `proxy` forwards
requests; `discovery` and `openapi` collect the documents of the servers. `backends` defines the servers: the one of a Service
(`remote`), or a WSGI application of this process (`mounted`).

Invariant: while no APIService has a Service, the cost for a request is one attribute test.
"""
