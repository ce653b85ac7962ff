"""Caches of bounded size for values that can be computed again.

Invariant: a `BoundedCache` never holds more entries than its maximum, nor more than `MAXIMUM_SIZE` bytes as far as it is told
their sizes; a full cache is cleared, so that readers need not maintain the order of use. A `cached_bytes` function keeps the
latest results up to a number of bytes. What comes from outside may be of any length: a `cache_by_text` function keeps nothing
about texts that are longer than `LONGEST_TEXT`, `cache_by_key` and `cache_if` functions nothing about keys and arguments that
their own conditions exclude.

A process that has nothing to do after much work calls `forget_all`: what caches hold is of objects that may be gone.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
K = TypeVar("K")
V = TypeVar("V")

#: The maximal size of a `BoundedCache`, in bytes.
MAXIMUM_SIZE: Final = 16 * 1024 * 1024
#: The maximal length of a text that is kept in a cache, in characters.
LONGEST_TEXT: Final = 2048
_ABSENT: Final[Any] = object()

_filled: Final[weakref.WeakValueDictionary[int, BoundedCache[Any, Any]]] = weakref.WeakValueDictionary()
"""The caches that have entries, or had some, by their identities."""
_forgetters: Final[list[Callable[[], object]]] = []
"""Functions that empty other caches."""

#: A function with a cache.
F = TypeVar("F", bound=Callable[..., Any])


def forget_all() -> None:
    """Empties all caches of the process whose values take much memory."""
    for reference in _filled.valuerefs():
        cache = reference()
        if cache is not None:
            cache.clear()
    for forget in _forgetters:
        forget()


def forgets_by(forget: Callable[[], object]) -> None:
    """Lets `forget_all` call a function that empties a cache."""
    _forgetters.append(forget)


def forgettable(cached: F) -> F:
    """Decorates functions with `functools.cache` whose results are large: `forget_all` drops them."""
    forgets_by(cached.cache_clear)  # type: ignore[attr-defined]
    return cached


def trim(encoded: bytes) -> bytes:
    """Returns a copy of what an encoder has made, to be kept.

    Bytes of orjson hold its whole buffer, often 4 KiB more than the text.
    """
    return memoryview(encoded).tobytes()


class BoundedCache(dict[K, V]):
    """A dict whose entries are set by `add` only.

    Args:
        maximum: the maximal number of entries.
    """

    __slots__ = ("__weakref__", "_maximum", "_size")

    def __init__(self, maximum: int) -> None:
        super().__init__()
        self._maximum = maximum
        self._size = 0

    def clear(self) -> None:
        """Removes all entries."""
        super().clear()
        self._size = 0

    def add(self, key: K, value: V, size: int = 0) -> V:
        """Adds a value and returns it. A full cache is cleared first.

        Args:
            key, value: the entry.
            size: its approximate size in bytes, if that depends on what clients send.
        """
        if size > MAXIMUM_SIZE:
            return value
        if not self:
            _filled[id(self)] = self
        self._size += size
        if len(self) >= self._maximum or self._size > MAXIMUM_SIZE:
            self.clear()
            self._size = size
        self[key] = value
        return value


def cached_bytes(maximum: int) -> Callable[[Callable[[bytes], bytes]], Callable[[bytes], bytes]]:
    """Returns a decorator that keeps the results of a function from bytes to bytes.

    Args:
        maximum: the maximal number of bytes of all kept arguments and results; what was not used longest is forgotten first.
    """

    def decorate(function: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        kept: dict[bytes, bytes] = {}
        lock = threading.Lock()
        size = 0

        def forget() -> None:
            nonlocal size
            with lock:
                kept.clear()
                size = 0

        forgets_by(forget)

        @wraps(function)
        def cached(argument: bytes) -> bytes:
            nonlocal size
            with lock:
                found = kept.pop(argument, None)
                if found is not None:
                    kept[argument] = found
                    return found
            made = function(argument)
            with lock:
                if argument not in kept:
                    kept[argument] = made
                    size += len(argument) + len(made)
                while size > maximum:
                    oldest = next(iter(kept))
                    size -= len(oldest) + len(kept.pop(oldest))
            return made

        return cached

    return decorate


class _KeyedCache(BoundedCache[K, V]):
    """The results of a function of one value, for the values that its condition admits."""

    __slots__ = ("_function", "_is_kept")

    def __init__(self, maximum: int, function: Callable[[K], V], is_kept: Callable[[K], bool]) -> None:
        super().__init__(maximum)
        self._function = function
        self._is_kept = is_kept

    def __missing__(self, key: K) -> V:
        made = self._function(key)
        return self.add(key, made) if self._is_kept(key) else made


def cache_by_key(is_kept: Callable[[K], bool], maximum: int) -> Callable[[Callable[[K], V]], Callable[[K], V]]:
    """Returns a decorator that keeps the results of a function of one value, such as a tuple, for some values.

    A hit is a look-up in a dict, without a call in Python.

    Args:
        is_kept: reports whether the value is small enough to be kept.
        maximum: the maximal number of results; a full cache is cleared.
    """
    return lambda function: _KeyedCache(maximum, function, is_kept).__getitem__


def cache_by_text(maximum: int) -> Callable[[Callable[[str], V]], Callable[[str], V]]:
    """Returns a decorator that keeps the results of a function of a text, except for long texts; see `cache_by_key`."""
    return cache_by_key(_is_short, maximum)


def _is_short(text: str) -> bool:
    return len(text) <= LONGEST_TEXT


def cache_if(is_kept: Callable[..., bool], maximum: int) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Returns a decorator that keeps the results of a function for some arguments, which must be hashable.

    Args:
        is_kept: reports whether the arguments are small enough to be kept. Results for arguments by name are not kept.
        maximum: the maximal number of results; a full cache is cleared.
    """

    def decorate(function: Callable[P, V]) -> Callable[P, V]:
        kept: BoundedCache[tuple[object, ...], V] = BoundedCache(maximum)
        get = kept.get

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> V:
            if kwargs:
                return function(*args, **kwargs)
            found: V = get(args, _ABSENT)
            if found is _ABSENT:
                found = function(*args, **kwargs)
                if is_kept(*args):
                    kept.add(args, found)
            return found

        return call

    return decorate
