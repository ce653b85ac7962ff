"""Where random values come from: uids, suffixes of names, addresses, ports, jitter.

Without a seed they come from a generator of the process. A cluster with a seed (`Cluster(seed=7)`) draws the values of each
request from a generator of its own, seeded with the seed, the request, and how many equal requests there were before. The
values do not depend on the order in which the requests of different threads come, so that two runs draw the same ones.

Invariant: what is drawn here is no secret; keys and tokens come from the operating system.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from struct import Struct
from typing import Final

#: Of its own, so that a test that seeds the generators of its process does not get the same values again.
_PROCESS = random.Random()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PROCESS.seed)

#: The bits of a UUID that are random, and those that say its version (4) and variant (RFC 9562).
_RANDOM_BITS = (1 << 128) - 1 & ~(0xF << 76 | 0x3 << 62)
_VERSION_BITS = 0x4 << 76 | 0x2 << 62
_UUID_GROUPS = Struct("8s4s4s4s12s").unpack


class Chance:
    """The chance of one cluster with a seed.

    Args:
        seed: two clusters with the same one draw the same values for the same requests.
    """

    def __init__(self, seed: int) -> None:
        self._seed = b"%d" % seed
        self._lock = threading.Lock()
        self._counts: dict[bytes, int] = {}
        """Digest of a request → how many equal ones have drawn values."""
        self.before_request: Callable[[str], None] | None = None
        """Called with the User-Agent of each request."""

    @contextmanager
    def serve(self, describe: Callable[[], bytes]) -> Iterator[None]:
        """Values that are drawn within the block come from the generator of one request.

        Args:
            describe: returns what distinguishes the request; called when the first value is drawn.
        """
        token = _CURRENT.set(_Draw(self, describe))
        try:
            yield
        finally:
            _CURRENT.reset(token)

    def generator(self, what: bytes) -> random.Random:
        """Returns the generator for the next request of this description."""
        digest = sha256(what).digest()
        with self._lock:
            number = self._counts.get(digest, 0)
            self._counts[digest] = number + 1
        return random.Random(int.from_bytes(sha256(b"%b/%b/%d" % (self._seed, digest, number)).digest()))


class _Draw:
    """The generator of one request; made when the first value is drawn."""

    def __init__(self, chance: Chance, describe: Callable[[], bytes]) -> None:
        self._chance, self._describe = chance, describe
        self._generator: random.Random | None = None

    @property
    def generator(self) -> random.Random:
        # Not a cached_property: before Python 3.12 one lock of the class would be held while a body is read.
        if self._generator is None:
            self._generator = self._chance.generator(self._describe())
        return self._generator


_CURRENT: ContextVar[_Draw | None] = ContextVar("chance", default=None)


def chance() -> random.Random:
    """Returns the generator for what is being done."""
    draw = _CURRENT.get()
    return _PROCESS if draw is None else draw.generator


def random_uuid() -> str:
    """Returns a UUID of version 4 (RFC 9562), as text."""
    digits = b"%032x" % (chance().getrandbits(128) & _RANDOM_BITS | _VERSION_BITS)
    return b"-".join(_UUID_GROUPS(digits)).decode()


# --- Suffixes of names, from an alphabet without vowels ----------------------------------------------------------------
# Specified by: k8s.io/apimachinery/pkg/util/rand (String, SafeEncodeString).


#: No vowels and no characters that look alike.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def random_string(length: int) -> str:
    """Returns `length` random characters of the alphabet."""
    return "".join(chance().choices(_ALPHABET, k=length))


def safe_encode_string(text: str) -> str:
    """Replaces each byte of a text by a character of the alphabet; names contain hashes in this form."""
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in text.encode())
