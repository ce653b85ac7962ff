"""Encodes objects whose texts differ only in some strings, as those of the pods of a workload do, without reading them.

After the name, such texts have the same length. So `struct` cuts each at the same places into what is equal in all of them, which
is compared, and the strings that vary, which Protobuf has as they are, except for times. The encoding of one object, with marks
in place of these strings, is made into that of the others. When a text differs in another string, the template is made again. The
name may have any length: what is before it, such as the lengths of the messages around it, is kept for each length.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from operator import itemgetter
from typing import Final

import orjson

from fakekube.apimachinery.codecs import EncodeError
from fakekube.apimachinery.codecs.document import BEFORE_NAME, MAX_MISSES, SAMPLE, Document
from fakekube.base.caches import BoundedCache
from fakekube.base.objects import StoredObject

Encode = Callable[[StoredObject], bytes]
EncodeTime = Callable[[str], bytes]
"""Encodes the content of a time. Raises ValueError for other texts."""

_QUOTE, _ESCAPE = b'"\\'

#: The strings that objects of one workload may have each for itself: not words, such as `Running`, nor versions. In FieldsV1 and
#: in annotations a string may stand in another one.
_find_strings: Final = re.compile(rb':\\?"(?!(?:[A-Za-z]*|v[0-9])\\?")([^"\\]+)(?=\\?")').finditer
_is_time: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z").fullmatch
#: What stands in place of a name, and the shortest length of what is found in an encoding only where it was put.
_NAME: Final = b"~name"
_SHORTEST_MARK: Final = 4

#: The maximum number of lengths of which templates are kept, and of templates with texts of one length.
_MOST_LENGTHS: Final = 256
_MOST_ALIKE: Final = 8
#: The maximum length of what follows a name, and the maximum number of strings that vary: to learn takes an encoding for each
#: short one.
_LONGEST: Final = 16 * 1024
_MOST_STRINGS: Final = 64
#: The bytes of a template for each byte of its text, approximately.
_TEMPLATE_SIZE: Final = 3


def _mark(number: int, value: bytes) -> bytes:
    """Returns what stands in place of a string: of the same length, a time if that is one."""
    if _is_time(value):
        minute, second = divmod(number, 60)
        return b"2500-10-11T12:%02d:%02d%b" % (minute, second, b".654321Z" if len(value) > 20 else b"Z")
    return (b"~%03d" % number).ljust(len(value), b"-") if len(value) >= _SHORTEST_MARK else b"~" * len(value)


def _find_change(made: bytes, other: bytes, length: int) -> int:
    """Returns the position of a mark, where two encodings differ; -1 if they differ elsewhere, too."""
    begin = next((place for place, (one, two) in enumerate(zip(made, other, strict=False)) if one != two), 0)
    end = begin + length
    return begin if made[begin:end] == b"~" * length and made[end:] == other[end:] else -1


Span = tuple[int, int]
"""Where a string begins and ends, counted from the end of the name."""
Ends = Sequence[int]
"""Where strings begin and end, in turn: an array, since pairs of numbers would take more bytes than the text."""


class _Template:
    """The texts of objects that differ only in some strings, and their encoding."""

    __slots__ = ("_body", "_choose", "_ends", "_text", "_times", "_varying", "equal", "is_learned", "openings", "unpack")

    def __init__(self, body: bytes, ends: Ends, varying: frozenset[Span] = frozenset()) -> None:
        """
        Args:
            body: what follows the name of one of the objects.
            ends: its strings.
            varying: those that are not the same in all of the objects.
        """
        self._body, self._ends, self._varying = body, ends, varying
        ends = [0, *chain.from_iterable(sorted(varying)), len(body)]
        self.unpack = struct.Struct("".join(f"{end - begin}s" for begin, end in pairwise(ends))).unpack_from
        """Cuts a text."""
        self.equal: tuple[bytes, ...] = self.unpack(body)[::2]
        """What is equal in the texts of such objects: every other part."""
        self.is_learned = False
        self.openings: dict[int, bytes] = {}
        """What is encoded before a name, by its length."""
        self._text = b""
        """The encoding, to be formatted with what is before the name and with the strings. Empty if it is not known."""
        self._choose: Callable[[Sequence[bytes]], tuple[bytes, ...]] = tuple
        """Returns these from the strings, which the opening follows, in the order in which they are encoded."""
        self._times: tuple[tuple[int, int], ...] = ()
        """The numbers of the strings that are times, with the lengths of their encodings."""

    def widen(self, body: bytes) -> _Template | None:
        """Returns the template of an object as well, which has another string; None if it differs in more."""
        ends = [0, *self._ends, len(body)]
        if any(body[begin:end] != self._body[begin:end] for begin, end in zip(ends[::2], ends[1::2], strict=True)):
            return None
        strings = zip(ends[1:-1:2], ends[2:-1:2], strict=True)
        others = {(begin, end) for begin, end in strings if body[begin:end] != self._body[begin:end]}
        return _Template(body, self._ends, self._varying | others)

    def fill(self, opening: bytes, strings: Sequence[bytes], encode_time: EncodeTime) -> bytes | None:
        """Returns the encoding of an object; None if it is not known.

        Args:
            opening: what is before the name.
            strings: the name, and what `unpack` has found.
            encode_time: encodes times.
        """
        texts = b"".join(strings)
        if not self._text or not texts.isascii() or _ESCAPE in texts or _QUOTE in texts:
            return None
        filled = [*strings, opening]
        try:
            for number, length in self._times:
                made = filled[number] = encode_time(filled[number].decode())
                if len(made) != length:
                    return None
        except ValueError:
            return None
        return self._text % self._choose(filled)

    def learn(self, strings: Sequence[bytes], encode: Encode, encode_time: EncodeTime) -> None:
        """Finds these strings in the encoding of an object, which remains unknown if it does not have each once."""
        self.is_learned = True
        if len(strings) > _MOST_STRINGS:
            return
        marks = [_mark(number, value) for number, value in enumerate(strings)]
        marks[0] = _NAME
        try:
            made = self._encode_with(marks, encode)
        except (EncodeError, orjson.JSONDecodeError):
            # One of them must have a form, such as that of a Secret's data, or is what follows a string that ends with a colon.
            return
        times: list[tuple[int, int]] = []
        places: list[tuple[int, int, int]] = []
        for number, mark in enumerate(marks):
            shown = mark
            if _is_time(mark) and mark not in made:
                shown = encode_time(mark.decode())
                times.append((number, len(shown)))
            if len(mark) < _SHORTEST_MARK:
                others = [*marks[:number], b"^" * len(mark), *marks[number + 1 :]]
                begin = _find_change(made, self._encode_with(others, encode), len(mark))
            else:
                begin = made.find(shown) if made.count(shown) == 1 else -1
            if begin < 0:
                return
            places.append((begin, begin + len(shown), number))
        places.sort()
        ends = [0, *(end for begin, stop, _ in places for end in (begin, stop)), len(made)]
        pieces = [made[begin:end].replace(b"%", b"%%") for begin, end in pairwise(ends)]
        self._choose = itemgetter(-1, *[number for _, _, number in places])
        self._times = tuple(times)
        self._text = b"%b" + b"%b".join([b"", *pieces[2::2]])  # the last one, since other threads look whether it is known

    def _encode_with(self, strings: Sequence[bytes], encode: Encode) -> bytes:
        """Returns the encoding of such an object with these strings."""
        text = b"".join(chain.from_iterable(zip(strings, self.equal, strict=True)))
        return encode(orjson.loads(BEFORE_NAME + text))


def template_encoder(encode: Encode, encode_time: EncodeTime) -> Callable[[Document], bytes | None]:
    """Returns a function that encodes a document without its tree; it returns None for one like which it has seen no other.

    Args:
        encode: encodes objects; before the name it has only what depends on lengths.
        encode_time: encodes times.
    """
    known: BoundedCache[int, tuple[_Template, ...]] = BoundedCache(_MOST_LENGTHS)
    misses = 0

    def encode_alike(document: Document) -> bytes | None:
        nonlocal misses
        if misses > MAX_MISSES and misses % SAMPLE:
            misses += 1
            return None
        text = document.text
        if not text.startswith(BEFORE_NAME):
            return None
        start = text.find(b'"', len(BEFORE_NAME))
        if text[start - 1] == _ESCAPE:
            return None
        length = len(text) - start
        for template in known.get(length, ()):
            parts = template.unpack(text, start)
            if parts[::2] == template.equal:
                misses = 0
                opening = template.openings.get(start)
                if opening is None:
                    return encode_first(document, template, text, start)
                return template.fill(opening, (text[len(BEFORE_NAME) : start], *parts[1::2]), encode_time)
        found = find_like(text[start:])
        if found is None:
            misses += 1
            return None
        misses = 0
        return encode_first(document, found, text, start)

    def find_like(body: bytes) -> _Template | None:
        """Returns a template for this text, which is made wider; None if this is the first text of its form."""
        if len(body) > _LONGEST or not body.isascii():  # what is invalid UTF-8 in an object looks like other text here
            return None
        alike = known.get(len(body), ())
        for place, template in enumerate(alike):
            wider = template.widen(body)
            if wider is not None:
                known.add(len(body), (*alike[:place], wider, *alike[place + 1 :]))
                return wider
        ends = array("H", chain.from_iterable(found.span(1) for found in _find_strings(body)))
        known.add(len(body), (_Template(body, ends), *alike[: _MOST_ALIKE - 1]), _TEMPLATE_SIZE * len(body))
        return None

    def encode_first(document: Document, template: _Template, text: bytes, start: int) -> bytes:
        """Encodes a document by its tree, and learns from it."""
        strings = text[len(BEFORE_NAME) : start], *template.unpack(text, start)[1::2]
        if not template.is_learned:
            template.learn(strings, encode, encode_time)
        made, rest = encode(document.tree), template.fill(b"", strings, encode_time)
        if rest is not None and made.endswith(rest):
            template.openings[start] = made.removesuffix(rest)
        return made

    return encode_alike
