"""The CronJob controller: `controller` syncs CronJobs and their Jobs, `utils` calculates scheduled times.

Specified by: pkg/controller/cronjob.
"""
