"""The kinds of batch: Jobs and CronJobs.

Specified by: pkg/apis/batch/validation, pkg/apis/batch/v1/defaults.go, pkg/registry/batch, pkg/api/job.
"""
