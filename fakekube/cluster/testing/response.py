"""The response to a raw request: `cluster.request("GET", "/api/v1/pods", headers={"Accept": "application/yaml"})`.

Invariant: a response is complete and does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fakekube.apimachinery.codecs import json

__all__ = ["Response", "ResponseHeaders"]


class ResponseHeaders(Mapping[str, str]):
    """The headers of a response; names are case-insensitive, and a header that occurs several times has its first value.

    Args:
        fields: names and values, in their order.
    """

    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self._fields = tuple(fields)

    def __getitem__(self, name: str) -> str:
        found = self.get_all(name)
        if not found:
            raise KeyError(name)
        return found[0]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.lower() for name, _ in self._fields))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"ResponseHeaders({list(self._fields)})"

    def get_all(self, name: str) -> list[str]:
        """Returns all values of a header, in their order."""
        return [value for other, value in self._fields if other.lower() == name.lower()]


@dataclass(slots=True, frozen=True)
class Response:
    """The response to a request."""

    status: int
    """The HTTP status code."""
    headers: ResponseHeaders
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Returns the body, parsed as JSON. Raises ValueError if it is not JSON."""
        return json.reread(self.body)
