"""Feature gates, and what one server emulates: a minor with its gates.

Theory of operation: `data` has the history of each gate (the minors at which its stage, default or lock change). `FeatureGates`
reads the last entry that is not later than the emulated minor, gate by gate, when it is asked. `Emulation` combines the gates
with the facts and types of the minor. Equal settings give the same `Emulation`, so that what is compiled for one (`compiled`)
serves all clusters with its settings.

Invariant: an `Emulation` never changes, and one that nobody asks loads nothing.

Specified by: k8s.io/component-base/featuregate/feature_gate.go; docs/feature-gates.md lists the gates that have no effect here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fakekube.apimachinery import data
from fakekube.base.golang.strings import aggregate_errors

if TYPE_CHECKING:
    from fakekube.apimachinery.schema.builtin import Builtins

ALL_ALPHA: Final = "AllAlpha"
ALL_BETA: Final = "AllBeta"

_STAGES: Final[Mapping[str, str]] = {"a": "ALPHA", "b": "BETA", "g": "", "d": "DEPRECATED"}
_ENTRY: Final = re.compile(r"(\d+)([abgd])(\+?)(!?)(?:@(\d+))?")

_Made = TypeVar("_Made")


class FeatureGateError(ValueError):
    """Gates cannot be set like this; the text is kube-apiserver's."""


@dataclass(slots=True, frozen=True)
class FeatureSpec:
    """A gate in one minor."""

    stage: str
    """ALPHA, BETA, DEPRECATED, "" for what is generally available, or `PRE_ALPHA`."""
    default: bool
    locked: bool
    """The gate cannot be set to anything but its default."""


PRE_ALPHA: Final = "PreAlpha"
"""The stage of a gate that the emulated minor does not know, but the server does."""
_PRE_ALPHA: Final = FeatureSpec(PRE_ALPHA, default=False, locked=False)


class _Enabled(dict[str, bool]):
    """Whether gates are on, by name: as they are set, and of others as `find` says. Every request asks, so it is a dict."""

    def __init__(self, find: Callable[[str], bool]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, name: str) -> bool:
        found = self[name] = self._find(name)
        return found


class FeatureGates:
    """The gates of a server of one minor.

    Args:
        version: the minor of the server ("1.37").
        emulated: the minor that it emulates (--emulated-version).
        changed: the gates that are set, with their values, AllAlpha and AllBeta included.

    Raises FeatureGateError for unknown and locked gates, and if a gate is on that depends on one that is off.
    """

    def __init__(self, version: str, emulated: str, changed: Mapping[str, bool]) -> None:
        self._histories, self._minor = data.minor(version).features if changed else None, _number(emulated)
        self._version, self._emulated = version, emulated
        self._enabled = _Enabled(self._value)
        self.enabled: Callable[[str], bool] = self._enabled.__getitem__
        """Reports whether a gate is on.

        A gate that is gone has the value that it had in the last minor; one that comes later is off.
        """
        self._changed: Mapping[str, bool] = dict(changed)
        if changed:
            self._set(changed)

    def _value(self, name: str) -> bool:
        return self.spec(name).default if name in self._of_minor else self._last_value(name)

    def _last_value(self, name: str) -> bool:
        for minor in reversed(list(data.RELEASES)):
            if _number(minor) < _number(self._version) and name in data.minor(minor).features:
                return _spec(data.minor(minor).features[name], _number(minor)).default
        return False

    def spec(self, name: str) -> FeatureSpec:
        """Returns stage, default and lock of a gate in the emulated minor. Raises KeyError for an unknown one."""
        return _spec(self._of_minor[name], self._minor)

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names of all gates of the minor, sorted."""
        return iter(self._of_minor)

    @property
    def are_default(self) -> bool:
        """Whether all gates have the values that they have in the server's own minor by default."""
        return not self._changed and self._emulated == self._version

    def is_set(self, name: str) -> bool:
        """Reports whether a gate was set by its name."""
        return name in self._changed

    @property
    def _of_minor(self) -> Mapping[str, str]:
        if self._histories is None:
            self._histories = data.minor(self._version).features
        return self._histories

    def _set(self, changed: Mapping[str, bool]) -> None:
        errors = []
        special: dict[str, bool] = {}
        for name, value in changed.items():
            if name not in self._of_minor:
                raise FeatureGateError(f"unrecognized feature gate: {name}")
            spec = self.spec(name)
            if spec.locked and value != spec.default:
                errors.append(f"cannot set feature gate {name} to {_go(value)}, feature is locked to {_go(spec.default)}")
            elif name in (ALL_ALPHA, ALL_BETA):
                special[_STAGES["a" if name == ALL_ALPHA else "b"]] = value
                self._enabled[name] = value
            elif spec is _PRE_ALPHA:
                errors.append(
                    f"cannot set feature gate {name} to {_go(value)}, feature is PreAlpha at emulated version {self._emulated}, "
                    f"min compatibility version {_preceding(self._emulated)}"
                )
            else:
                self._enabled[name] = value
        if special:
            for name in self._of_minor:
                value_of_stage = special.get(self.spec(name).stage)
                if value_of_stage is not None and name not in (ALL_ALPHA, ALL_BETA):
                    self._enabled.setdefault(name, value_of_stage)
        errors = errors or list(self._validate_dependencies())
        if errors:
            raise FeatureGateError(aggregate_errors(errors))

    def _validate_dependencies(self) -> Iterator[str]:
        for name, history in self._of_minor.items():
            if ">" in history and self.enabled(name):
                needed = [word[1:] for word in history.split() if word.startswith(">")]
                off = [other for other in needed if not self.enabled(other)]
                if off:
                    yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"


def _spec(history: str, minor: int) -> FeatureSpec:
    """Returns the last entry of a history that is not later than a minor, whose servers are compatible with the minor before."""
    found = _PRE_ALPHA
    for word in history.split():
        entry = _ENTRY.fullmatch(word)
        if entry is None or int(entry[1]) > minor or (entry[5] and int(entry[5]) > minor - 1):
            continue
        found = FeatureSpec(_STAGES[entry[2]], bool(entry[3]), bool(entry[4]))
    return found


def _go(value: bool) -> str:
    return "true" if value else "false"


def _number(version: str) -> int:
    return int(version.partition(".")[2])


def _preceding(version: str) -> str:
    return f"1.{_number(version) - 1}"


class Emulation:
    """What one server emulates: a minor and its gates. Make it with `emulation`, so that it is compared by identity.

    Args:
        version: the minor of the server ("1.37").
        gates: its feature gates.
        emulated: the minor whose gates and APIs it has (--emulated-version); by default its own.
    """

    def __init__(self, version: str, gates: FeatureGates, emulated: str = "") -> None:
        self.version = version
        self.emulated = emulated or version
        self.minor = _number(version)
        """The number of the minor: 37."""
        self.gates = gates
        self.enabled: Callable[[str], bool] = gates.enabled
        """Reports whether a feature gate is on."""
        self._compiled: dict[Hashable, Any] = {}
        self._compiling = RLock()

    def __repr__(self) -> str:
        return f"Emulation({self.version})"

    @cached_property
    def facts(self) -> data.Facts:
        """The facts of the minor."""
        return data.minor(self.version)

    @cached_property
    def types(self) -> Builtins:
        """The built-in types of the minor."""
        from fakekube.apimachinery.schema.builtin import builtins

        return builtins(self.version)

    @property
    def scheme(self) -> str:
        """The name of the server's scheme in errors about kinds that are not registered: where it is in the source."""
        return f"pkg/runtime/scheme.go:{111 if self.minor >= 35 else 110}"

    def compiled(self, key: Hashable, make: Callable[[Emulation], _Made]) -> _Made:
        """Returns what `make` makes of this emulation; it is called once for each key."""
        try:
            found: _Made = self._compiled[key]
        except KeyError:
            with self._compiling:
                if key not in self._compiled:
                    self._compiled[key] = make(self)
                found = self._compiled[key]
        return found


_emulations: dict[tuple[str, str, tuple[tuple[str, bool], ...]], Emulation] = {}


def emulation(version: str = data.DEFAULT, gates: Mapping[str, bool] | None = None, emulated: str = "") -> Emulation:
    """Returns the emulation of a minor with some gates set; the same one for the same arguments.

    Args:
        version: the minor of the server.
        gates: those that are set, with their values.
        emulated: the minor whose gates and APIs it has; by default its own.

    Raises:
        LookupError: the minor is unknown; the message lists the known ones.
        FeatureGateError: a gate is unknown or locked, or depends on one that is off.
    """
    key = version, emulated or version, tuple(sorted((gates or {}).items()))
    found = _emulations.get(key)
    if found is None:
        if version not in data.RELEASES:
            raise LookupError(f"Kubernetes {version} is not known; known: {', '.join(data.RELEASES)}")
        made = Emulation(version, FeatureGates(version, emulated or version, gates or {}), emulated)
        if gates:
            from fakekube.apimachinery.data.gates_without_effect import warn_of_gates_without_effect

            warn_of_gates_without_effect(gates)
        found = _emulations.setdefault(key, made)
    return found


DEFAULT: Final = emulation()
"""The default minor with its default gates."""

CURRENT: Final[ContextVar[Emulation]] = ContextVar("emulation", default=DEFAULT)
"""The emulation of the server whose request this thread serves."""


def current() -> Emulation:
    """Returns the emulation of the server whose request this thread serves; `DEFAULT` outside of requests.

    It is for helpers that only print values; what has a context or a strategy asks that.
    """
    return CURRENT.get()


@contextmanager
def emulating(emulation: Emulation) -> Iterator[None]:
    """Makes an emulation the current one for the time of a `with` block."""
    token = CURRENT.set(emulation)
    try:
        yield
    finally:
        CURRENT.reset(token)
