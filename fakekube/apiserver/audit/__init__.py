"""Audit: events about requests, selected by a policy, for a log file, a webhook or a subscriber in this process.

* `policy` reads an audit Policy and evaluates its rules.
* `context` collects the data of one request and emits its events.
* `backends` write events to a log file or send them to a webhook.
* `auditor` connects these for one cluster.
"""
