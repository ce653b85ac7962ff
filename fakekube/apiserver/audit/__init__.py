"""Audit: events about requests, selected by a policy, for a log file, a webhook or a subscriber in this process.

* `policy` reads an audit Policy and evaluates its rules.
* `auditor` collects the data of each request (`AuditContext`), and emits its events.
* `backends` write them to a log file, or send them to a webhook.
"""
