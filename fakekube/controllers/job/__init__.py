"""The Job controller: pods that must succeed a given number of times.

`controller` handles events, and removes the finalizers of pods whose Job has finished; `sync` decides in one pass whether a Job
has finished and which pods it needs; `sync_context` holds the state of a pass; `creation` builds pods and selects those to
remove; `tracking` counts each terminated pod exactly once, by means of a finalizer; `indexes`, `policies`, `backoff` and
`conditions` contain functions of objects.

Specified by: pkg/controller/job.
"""
