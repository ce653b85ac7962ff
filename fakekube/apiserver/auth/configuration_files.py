"""Reads configuration files of the group apiserver.config.k8s.io with strict decoding, as kube-apiserver does.

An invalid file raises an `OptionError` that names the flag. Unknown fields and fields of the wrong type are errors;
both are detected from the fields that the reader of a kind requests.

Specified by: k8s.io/apiserver/pkg/apis/apiserver (load, v1, v1beta1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fakekube.apimachinery.codecs import yaml
from fakekube.apimachinery.codecs.errors import DecodeError
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import aggregate
from fakekube.apiserver.auth.options import OptionError, read_text
from fakekube.base.golang.durations import parse_duration

GROUP = "apiserver.config.k8s.io"


class Section:
    """A mapping in a configuration file, with its path.

    Fields are taken out by name and type; `done` reports the remaining ones as unknown.
    """

    def __init__(self, value: Any, path: str, flag: str) -> None:
        if not isinstance(value, dict):
            raise OptionError(f"--{flag}: {path or 'the file'} is not a mapping")
        self._left = dict(value)
        self.path = path
        self._flag = flag

    def _taken(self, name: str, kind: type[Any], default: Any) -> Any:
        value = self._left.pop(name, None)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise OptionError(f"--{self._flag}: {self.at(name)} is not a {_NAMES[kind]}")
        return value

    def at(self, name: str) -> str:
        """Returns the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Reports whether the field is set and not null."""
        return self._left.get(name) is not None

    def text(self, name: str) -> str:
        """Takes a string; "" if it is not set."""
        return str(self._taken(name, str, ""))

    def flag(self, name: str) -> bool:
        """Takes a boolean; False if it is not set."""
        return bool(self._taken(name, bool, False))

    def texts(self, name: str) -> Sequence[str]:
        """Takes a list of strings."""
        values = self._taken(name, list, [])
        if not all(isinstance(value, str) for value in values):
            raise OptionError(f"--{self._flag}: {self.at(name)} is not a list of strings")
        return tuple(values)

    def seconds(self, name: str) -> float:
        """Takes a Go duration and returns seconds; 0 if it is not set."""
        text = self.text(name)
        try:
            return parse_duration(text) / 1e9 if text else 0.0
        except ValueError as error:
            raise OptionError(f"--{self._flag}: {self.at(name)}: {error}") from None

    def section(self, name: str) -> Section:
        """Takes a mapping; an empty one if it is not set."""
        return Section(self._left.pop(name, None) or {}, self.at(name), self._flag)

    def sections(self, name: str) -> Sequence[Section]:
        """Takes a list of mappings."""
        values = self._taken(name, list, [])
        return [Section(value, f"{self.at(name)}[{index}]", self._flag) for index, value in enumerate(values)]

    def ignore(self, name: str) -> None:
        """Takes a field that has no effect here."""
        self._left.pop(name, None)

    def done(self) -> None:
        """Raises OptionError if there are unknown fields."""
        if self._left:
            unknown = ", ".join(f'unknown field "{self.at(name)}"' for name in self._left)
            raise OptionError(f"--{self._flag}: strict decoding error: {unknown}")


_NAMES: Mapping[type[Any], str] = {str: "string", bool: "boolean", list: "list", int: "number"}


def loaded(path: str, flag: str, kind: str, versions: Sequence[str], group: str = GROUP) -> Section:
    """Returns the configuration in a file, of this kind and one of these versions. Raises OptionError."""
    try:
        value, _ = yaml.loads(read_text(path, flag).encode())
    except (DecodeError, UnicodeEncodeError) as error:
        raise OptionError(f"--{flag}: {path}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise OptionError(f"--{flag}: {path}: nested too deeply") from None
    section = Section(value or {}, "", flag)
    api_version, found = section.text("apiVersion"), section.text("kind")
    if found != kind or api_version not in [f"{group}/{version}" for version in versions]:
        raise OptionError(f'--{flag}: {path}: no kind "{found}" is registered for version "{api_version}"')
    return section


def refuse(flag: str, errors: Sequence[FieldError]) -> None:
    """Raises OptionError if there are errors."""
    if errors:
        raise OptionError(f"--{flag}: {aggregate(errors)}")
