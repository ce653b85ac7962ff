"""Audit: what is written down of requests, by a policy, for a file, a webhook or a subscriber in this process.

* `policy` reads an audit Policy and says of a request how much is written down.
* `context` gathers what is known of one request, and makes events of it at its stages.
* `backends` take events: a file of JSON lines, a webhook.
* `auditor` puts these together for one cluster.
"""
