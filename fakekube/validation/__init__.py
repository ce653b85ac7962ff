"""The vocabulary of validation that the kinds of all API groups share.

Names, object metadata, IP addresses, selectors, resource lists, tolerations, expressions: each check takes a value and the
path of its field, and returns what is wrong as `FieldError`s in the order of the real server.

Specified by: k8s.io/apimachinery/pkg/api/validation, pkg/util/validation, pkg/apis/core/validation.
"""
