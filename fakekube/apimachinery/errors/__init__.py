"""Errors as values: field errors, and the errors that a client receives as a Status.

Every package may raise a `StatusError`; only `apiserver/http/` turns it into an HTTP response. `status.py` has all constructors
and their messages; `field.py` describes what is wrong with one field.

Specified by: k8s.io/apimachinery/pkg/api/errors, k8s.io/apimachinery/pkg/util/validation/field.
"""

from __future__ import annotations

from fakekube.apimachinery.errors.field import FieldError, FieldErrorType
from fakekube.apimachinery.errors.status import StatusError

__all__ = ["FieldError", "FieldErrorType", "StatusError"]
