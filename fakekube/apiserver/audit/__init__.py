"""Audit: events about requests, selected by a policy, for a log file, a webhook or a subscriber in this process.

* `policy` reads an audit Policy and evaluates its rules.
* `auditor` collects the data of each request (`AuditContext`), emits its events, and writes them to a log file or sends them to a
  webhook (`LogBackend`, `WebhookBackend`).
"""
