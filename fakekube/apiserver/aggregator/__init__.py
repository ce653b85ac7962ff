"""API groups that extension API servers serve: proxies requests to the Service of an APIService, like kube-aggregator.

`controller` observes the APIServices and checks the availability of their servers in its own threads; `proxy` forwards requests;
`documents` collects discovery and OpenAPI of the servers. `locations` finds the server of an APIService; `backends` defines
servers: a WSGI application of this process, or the one of a Service (`remote`).

Invariant: while no APIService has a Service, the cost for a request is one attribute test.
"""
