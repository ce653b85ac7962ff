"""What goes wrong, as values: field errors, and the errors a client gets as a Status.

Shared furniture: every room may raise a `StatusError`; only `api/` turns it into an answer. All constructors and
their texts are in `status.py`; how one field is wrong is in `field.py`.
"""

from __future__ import annotations

from fakekube.errors.field import FieldError, FieldErrorType
from fakekube.errors.status import StatusError

__all__ = ["FieldError", "FieldErrorType", "StatusError"]
