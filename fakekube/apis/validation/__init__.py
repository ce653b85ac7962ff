"""Checks that the validation of all API groups shares.

Names, object metadata, IP addresses, selectors, resource lists, tolerations, expressions: each check takes a value and
the path of its field, and returns `FieldError`s in the order of the real server.

Specified by: k8s.io/apimachinery/pkg/api/validation, pkg/util/validation, pkg/apis/core/validation.
"""
