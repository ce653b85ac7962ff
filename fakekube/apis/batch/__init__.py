"""Jobs and what starts them by the clock.

Specified by: pkg/apis/batch/validation, pkg/apis/batch/v1/defaults.go, pkg/registry/batch, pkg/api/job.
"""
