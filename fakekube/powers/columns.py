"""Rows as columns with a table of strings: the form in which the page gets requests, changes, marks and objects.

    {"strings": ["", "pods", …], "columns": {"number": [1, 2], "resource": [1, 1]}, "next": 2, "more": false, "oldest": 0}

Invariant: the first string is the empty one; all columns of a table have the same length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

#: The largest integer that JavaScript reads exactly.
LARGEST_NUMBER: Final = (1 << 53) - 1


def revision_value(revision: int) -> int | str:
    """Returns a revision as a number, or as a string if JavaScript would not read it exactly."""
    return revision if revision <= LARGEST_NUMBER else str(revision)


class Table:
    """Columns under construction.

    Args:
        columns: the names of the columns; a name with a `*` is one of strings.
    """

    __slots__ = ("_adders", "_columns", "_names", "_strings")

    def __init__(self, columns: Sequence[str]) -> None:
        self._strings: dict[str, int] = {"": 0}
        self._names = [name.removesuffix("*") for name in columns]
        self._columns: list[list[Any]] = [[] for _ in columns]
        self._adders = [(column.append, name.endswith("*")) for name, column in zip(columns, self._columns, strict=True)]

    def add(self, *values: Any) -> None:
        """Adds a row."""
        strings = self._strings
        for (append, is_text), value in zip(self._adders, values, strict=True):
            append(strings.setdefault(value, len(strings)) if is_text else value)

    def __len__(self) -> int:
        return len(self._columns[0])

    def data(self, **more: Any) -> dict[str, Any]:
        """Returns the table as plain data, with further members."""
        columns = dict(zip(self._names, self._columns, strict=True))
        return {"strings": list(self._strings), "columns": columns, **more}
