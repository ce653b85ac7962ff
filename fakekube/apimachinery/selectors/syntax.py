"""The syntax of the keys and values of labels. Each check returns the texts of what is wrong, in order.

The results are cached, as many objects share the same labels.

Specified by: k8s.io/apimachinery/pkg/api/validate/content (kube.go, dns.go).
"""

from __future__ import annotations

import re
from functools import lru_cache

from fakekube.apimachinery.schema.dns import fits, long_name

_NAME_LENGTH = 63

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"

_is_name = re.compile(_NAME).fullmatch
_is_value = re.compile(_VALUE).fullmatch

_ENDS = "and must start and end with an alphanumeric character"
_NAME_TEXT = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_TEXT = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)


@lru_cache(maxsize=4096)
def label_key(value: str) -> tuple[str, ...]:
    """Validates a qualified name: an optional subdomain and a slash, then a name (keys of labels, finalizers …)."""
    prefix, slash, name = value.rpartition("/")
    if not slash and len(name) <= _NAME_LENGTH and _is_name(name):
        return ()
    if "/" in prefix:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_NAME_TEXT}{optional}",)
    errors = []
    if slash:
        errors += [f"prefix part {problem}" for problem in _prefix_problems(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif not fits(name, _NAME_LENGTH):
        errors.append(f"name part {_too_long(_NAME_LENGTH)}")
    if not _is_name(name):
        errors.append(f"name part {_NAME_TEXT}")
    return tuple(errors)


def _prefix_problems(prefix: str) -> list[str]:
    return long_name(prefix) if prefix else ["must be non-empty"]


@lru_cache(maxsize=4096)
def label_value(value: str) -> tuple[str, ...]:
    """Validates the value of a label; it may be empty."""
    if len(value) <= _NAME_LENGTH and _is_value(value):
        return ()
    errors = (_too_long(_NAME_LENGTH),) if not fits(value, _NAME_LENGTH) else ()
    return errors if _is_value(value) else (*errors, _VALUE_TEXT)


def _too_long(maximum: int) -> str:
    return f"must be no more than {maximum} bytes"
