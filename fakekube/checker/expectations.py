"""Expected effects of a reaction: `--expect RESOURCE/NAME[:PATH[=VALUE]]`, where `{name}` is the name of a copy.

--expect 'configmaps/{name}-copy'
--expect 'widgets.example.com/{name}:status.phase=Ready'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fakekube.controllers.client import ApiError, UnknownResource

if TYPE_CHECKING:
    from fakekube.checker.reaction import Copy
    from fakekube.checker.trial import Trial

_FORM = re.compile(r"(?P<resource>[a-z0-9.]+)/(?P<name>[^:/]+)(?::(?P<path>[^=]+)(?:=(?P<value>.*))?)?")
#: A dot without a backslash before it.
_DOT = re.compile(r"(?<!\\)\.")


@dataclass(slots=True, frozen=True)
class Expectation:
    """One expected object or field."""

    resource: str
    name: str
    path: Sequence[str] = ()
    value: str | None = None

    @classmethod
    def parse(cls, text: str) -> Expectation:
        """Parses an expectation. Raises ValueError."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not RESOURCE/NAME[:PATH[=VALUE]]")
        path = tuple(part.replace("\\.", ".") for part in _DOT.split(found["path"])) if found["path"] else ()
        return cls(found["resource"], found["name"], path, found["value"])

    def is_met(self, trial: Trial, copy: Copy) -> bool:
        """Reports whether the expected object or field exists for one of the objects of a copy."""
        return any(self._is_there(trial, obj) for obj in copy.objects)

    def _is_there(self, trial: Trial, obj: dict[str, Any]) -> bool:
        metadata = obj["metadata"]
        name = self.name.replace("{name}", metadata["name"])
        try:
            value: Any = trial.cluster.get(self.resource, name, namespace=metadata.get("namespace"))
        except (ApiError, UnknownResource):
            return False
        for part in self.path:
            if isinstance(value, list) and part.isdigit() and int(part) < len(value):
                value = value[int(part)]
            elif isinstance(value, dict) and part in value:
                value = value[part]
            else:
                return False
        return self.value is None or _text(value) == self.value


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(slots=True, frozen=True)
class Expectations:
    """All expectations of a check."""

    signs: Sequence[Expectation] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Expectations:
        """Parses expectations. Raises ValueError."""
        return cls([Expectation.parse(text) for text in texts])

    def met(self, trial: Trial, copy: Copy) -> bool:
        """Reports whether all expectations are met for a copy."""
        return all(sign.is_met(trial, copy) for sign in self.signs)
