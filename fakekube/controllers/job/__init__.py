"""Jobs: pods that are to succeed so many times.

`controller` wakes up, and frees pods whose Job is over; `sync` decides in one pass whether a Job is finished, or which pods
it needs; `creation` makes the pods; `tracking` counts each ended pod exactly once, by a finalizer; `indexes`, `policies`,
`backoff` and `conditions` are functions of objects.

Specified by: pkg/controller/job.
"""
