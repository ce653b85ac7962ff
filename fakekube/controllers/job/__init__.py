"""The Job controller: pods that must succeed a given number of times.

`controller` handles events, decides in one pass whether a Job has finished and which pods it needs, and removes the finalizers of
pods whose Job has finished; `tracking` holds the state of a pass and counts each terminated pod exactly once, by means of a
finalizer; `utils` has the conditions, `indexed_job_utils` completion indexes and the successPolicy, `pod_failure_policy` and
`backoff_utils` what failed pods cause.

Specified by: pkg/controller/job.
"""
