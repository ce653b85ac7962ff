"""Services: strategy, types, allocation of cluster IPs and node ports, validation.

Specified by: pkg/registry/core/service, pkg/apis/core/validation (ValidateService).
"""
