"""A stored object together with a cache of its encodings.

The values in the store are Documents. Invariant: the object of a Document never changes, so its encodings stay
valid: a list joins cached bytes, and an event for a thousand watchers is encoded once.

The store may hold a hundred thousand objects, and the cyclic collector looks at each of their dicts and lists. So only the
latest ones are held as trees; `keep_recent` packs older ones as JSON text, and the first use of `object` makes a tree again.
Whoever holds a tree may go on using it. Readers of many documents use `tree`, which leaves packed documents packed.

A process that has nothing to do compresses the documents that only the history has (`compress`).

The cache holds the *part*: the encoded item of a list. For JSON of built-in kinds it has neither `kind` nor
`apiVersion`; the response to a get prepends both to the same bytes (`apimachinery.codecs.formats`).
"""

from __future__ import annotations

import re
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, TypeVar

import orjson

from fakekube.apimachinery.codecs import json
from fakekube.base.caches import BoundedCache, forgettable, trim
from fakekube.base.objects import Object, StoredObject

V = TypeVar("V")

#: The number of documents whose objects are held as trees, each some 4 KB and a dozen objects for the collector. A rolling update
#: of 500 pods reads few older ones.
_MAX_RECENT: Final = 1500
#: The size that a document is taken to have as long as it is not known, in bytes.
_USUAL_SIZE: Final = 2048
_recent: deque[weakref.ref[Document]] = deque()


# --- Texts that resemble each other: the objects of one kind, the answers of one server ---------------------------------
#
# Many of them are compressed together, which takes a small part of what they take one by one. Who reads them one after another
# inflates each block once.


#: The bytes of the texts that are compressed together.
_BLOCK_BYTES: Final = 128 * 1024


class Block:
    """Texts that are compressed together."""

    __slots__ = ("data",)

    def __init__(self, texts: Sequence[bytes]) -> None:
        self.data = zlib.compress(b"".join(texts))


@forgettable
@lru_cache(maxsize=1)
def _inflate(block: Block) -> bytes:
    return zlib.decompress(block.data)


class CompressedText:
    """One of the texts of a block. Iteration yields the text, `len` is its number of bytes."""

    __slots__ = ("_block", "_length", "_start")

    def __init__(self, block: Block, start: int, length: int) -> None:
        self._block = block
        self._start = start
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        yield self.decompress()

    def decompress(self) -> bytes:
        """Returns the text."""
        return _inflate(self._block)[self._start : self._start + self._length]


def compress_texts(texts: Sequence[bytes]) -> list[CompressedText]:
    """Compresses texts; neighbours should resemble each other."""
    found: list[CompressedText] = []
    first, size = 0, 0
    for place, text in enumerate(texts):
        size += len(text)
        if size >= _BLOCK_BYTES or place == len(texts) - 1:
            members = texts[first : place + 1]
            block, start = Block(members), 0
            for member in members:
                found.append(CompressedText(block, start, len(member)))
                start += len(member)
            first, size = place + 1, 0
    return found


# --- Documents ----------------------------------------------------------------------------------------------------------


#: What most rows show of an object: its name and creationTimestamp, whether it is being deleted, and what follows the metadata.
Head = tuple[bytes, bytes, bool, bytes]


class Document:
    """An immutable object and its cached encodings."""

    __slots__ = ("__weakref__", "_end", "_json", "_made", "_packed", "has_floats", "object")

    object: Object
    """The object. The attribute is unset while the document is packed."""

    def __init__(self, obj: Object) -> None:
        self.object = obj
        self._json = b""  # the most frequent encoding has its own attribute
        self._made: dict[Hashable, Any] = {}
        self._packed: bytes | CompressedText = b""
        """The object as text; b"" before it is first packed."""
        self._end = 0
        """The position in the text after the metadata, if that comes first; else 0."""
        self.has_floats = True
        """Whether the object may contain floats or values of any form, which its JSON may write in another form."""

    def __getattr__(self, name: str) -> Any:
        """Makes the tree of a packed document again."""
        if name != "object":
            raise AttributeError(name)
        text = self._packed = self._text()
        tree = self.object = orjson.loads(text)
        keep_recent(self)
        return tree

    @property
    def is_compressed(self) -> bool:
        """Whether the object is held as a compressed text."""
        return isinstance(self._packed, CompressedText)

    @property
    def tree(self) -> StoredObject:
        """The object, for readers of many documents: that of a packed document is made for the caller and not kept."""
        try:
            return _get_tree(self)
        except AttributeError:
            return _unpack(self._text(), self._end)

    @property
    def tree_to_print(self) -> StoredObject:
        """Like `tree`, for cells, which show no managedFields: that of a packed document may be without them."""
        try:
            return _get_tree(self)
        except AttributeError:
            return _unpack(self._text(), self._end, managed_fields=False)

    def _text(self) -> bytes:
        """Returns the text of a packed document, which other threads may compress meanwhile."""
        packed = self._packed
        return packed if isinstance(packed, bytes) else packed.decompress()

    @property
    def text(self) -> bytes:
        """The text that the object is held as, or its JSON; b"" if there is none."""
        text = self._packed or self._json
        return text if isinstance(text, bytes) else self._text()

    @property
    def labels(self) -> Mapping[str, str] | None:
        """The labels of the object, or what it has in their place; of a packed document no more than the metadata is read."""
        try:
            tree = _get_tree(self)
        except AttributeError:
            text = self._text()
            tree = {"metadata": _read_metadata(text, self._end)[0]} if self._end else orjson.loads(text)
        return tree["metadata"].get("labels")  # type: ignore[no-any-return]

    def pack(self) -> None:
        """Holds the object as text from now on; not if it holds values that the text would change.

        Concurrent threads, also of forks, which share documents, may each pack it.
        """
        encoded = self._json
        try:
            tree = _get_tree(self)
            if self._packed:
                packed = self._text()
            elif encoded and not self.has_floats and _REPLACED not in encoded:
                packed = encoded
            else:
                packed = orjson.dumps(tree, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
        except AttributeError:  # it is packed
            return
        except orjson.JSONEncodeError:  # a RawObject, integers beyond 64 bits, invalid UTF-8
            return
        if packed == encoded:
            packed = encoded
        else:
            packed = trim(packed)
            self._json = b""
        self._packed, self._end = packed, _end_of_metadata(tree, packed)
        if self._made:
            # Of a copy, since other threads may add encodings meanwhile.
            self._made = {key: made for key, made in self._made.copy().items() if made.__class__ in _TREELESS}
        try:
            del self.object
        except AttributeError:  # another thread has packed it meanwhile
            return

    def encoding(self, key: Hashable, make: Callable[[StoredObject], V]) -> V:
        """Returns `make(object)`, cached by key.

        Concurrent threads may each call `make`; all get equal values, and one of them is cached.
        """
        made = self._made.get(key)
        if made is not None:
            return made  # type: ignore[no-any-return]
        try:
            tree = _get_tree(self)
        except AttributeError:
            made = make(self.tree)
            return self._made.setdefault(key, made) if made.__class__ in _TREELESS else made
        return self._made.setdefault(key, make(tree))  # type: ignore[no-any-return]

    def _found_text(self) -> tuple[bytes, int]:
        """Returns the text that the object is held as, or its JSON, and where its metadata ends in it; 0 if there is no text."""
        if not self._packed:
            text = self._json
            try:
                return text, _end_of_metadata(_get_tree(self), text)
            except AttributeError:  # another thread has packed it meanwhile
                pass
        packed = self._packed
        return packed if isinstance(packed, bytes) else packed.decompress(), self._end

    def find_description(self) -> bytes | None:
        """Returns the metadata after the creationTimestamp without managedFields, each member after a comma.

        None if the object has no text, or not all of the usual metadata.
        """
        text, end = self._found_text()
        found = _match_identity(text, len(_BEGINNING), end)
        if found is None:
            return None
        stop = found.end()
        begin = text.find(_BEFORE_MANAGED_FIELDS, stop, end)
        return text[stop : end - 1 if begin < 0 else begin]

    def find_head(self) -> Head | None:
        """Returns what most rows show of the object; None as in `find_description`, and if there is a brace before the time."""
        text, end = self._found_text()
        begin = len(BEFORE_NAME)
        stop = text.find(_BEFORE_CREATED, begin, end)
        if stop < 0 or not text.startswith(BEFORE_NAME):
            return None
        identity = text[begin:stop]
        # Without an escape each quote delimits a string, and without a brace all strings are metadata's own.
        if _ESCAPE in identity or _BRACE in identity:
            return None
        if text is not self._json and not json.is_canonical(identity, floats=False):
            return None
        start = stop + len(_BEFORE_CREATED)
        after = text.find(b'"', start)
        name = identity[: identity.find(b'"')]
        return name, text[start:after], text.startswith(_BEFORE_DELETION, after), text[end:]

    @property
    def json(self) -> bytes:
        """The object as compact JSON, as an item of a list; without a trailing newline."""
        encoded = self._json  # which another thread may drop meanwhile
        if not encoded:
            text = self._text() if self._packed else b""
            floats = self.has_floats
            is_canonical = text and json.is_canonical(text, floats=floats)
            encoded = self._json = text if is_canonical else trim(json.dumps(self.tree, floats=floats))
        return encoded

    def cut_metadata(self) -> bytes | None:
        """Returns the compact JSON of the metadata of a built-in object, cut out of its text; None where that is not possible."""
        text, end = self._found_text()
        cut = text[len(_BEGINNING) : end]  # metadata have no floats
        return cut if end and (text is self._json or json.is_canonical(cut, floats=False)) else None

    @property
    def size(self) -> int:
        """The approximate number of bytes of the object as JSON; of one that is held as a tree only if it was encoded."""
        return len(self._packed) or len(self._json) or _USUAL_SIZE

    def note_unchanged(self, *apply: Any) -> None:
        """Remembers the last apply that left the object as it is, by each of some values that `is_unchanged_by` gets."""
        self._made[_UNCHANGED] = list(apply)

    def is_unchanged_by(self, apply: Any) -> bool:
        """Reports whether this tells the last apply that left the object as it is."""
        return apply in self._made.get(_UNCHANGED, ())

    def supersede(self) -> None:
        """Drops the encodings after a newer version has replaced this one, but for the JSON if it will be held as that."""
        if self._made:
            self._made = {key: made for key, made in self._made.copy().items() if made.__class__ is not bytes}
        if self.has_floats or self._packed:
            self._json = b""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles a packed document without its encodings."""
        return _restore, (self._packed, self._end)

    def __repr__(self) -> str:
        metadata = self.tree.get("metadata") or {}
        return f"<Document {metadata.get('namespace', '')}/{metadata.get('name', '')}>"


def _restore(packed: bytes | CompressedText, end: int) -> Document:
    """Makes a packed document."""
    made = Document.__new__(Document)
    made._packed, made._end = packed, end
    made._json, made._made, made.has_floats = b"", {}, True
    return made


_get_tree: Final[Callable[[Document], Object]] = Document.__dict__["object"].__get__
"""Returns the object of a document; raises AttributeError if it is packed."""

#: The key of what `note_unchanged` remembers.
_UNCHANGED: Final = "unchanged by"

#: The encodings that refer to no part of a tree; a packed document keeps only these.
_TREELESS: Final = (bytes, tuple)


_BEGINNING: Final = b'{"metadata":'
#: What JSON has in place of a lone surrogate; the character itself is written as it is.
_REPLACED: Final = b"\\ufffd"
#: What follows a brace in metadata: fields of it, and one of its managedFields.
_FIELDS_OF_METADATA: Final = frozenset({"annotations", "finalizers", "labels", "managedFields", "ownerReferences", "subresource"})
#: What is before managedFields, which is the last field of metadata. Like what is between metadata and the next field, it cannot
#: be in a string, whose quotes are escaped, nor in a map of metadata, whose values are strings; names in managedFields have
#: prefixes.
_BEFORE_MANAGED_FIELDS: Final = b',"managedFields":['

#: What metadata begin with; texts without escapes, which are the same in all formats.
_match_identity: Final = re.compile(
    rb'\{"name":"T"(?:,"generateName":"T")?(?:,"namespace":"T")?,"uid":"T","resourceVersion":"T"'
    rb'(?:,"generation":\d+)?,"creationTimestamp":"T"'.replace(b"T", rb'[^"\\<>&\x80-\xff]*')
).match

#: How the text of an object with a name begins, what is before its time of creation, and after that if it is being deleted.
BEFORE_NAME: Final = b'{"metadata":{"name":"'
_BEFORE_CREATED: Final = b',"creationTimestamp":"'
_BEFORE_DELETION: Final = b'","deletionTimestamp":'
#: Numbers, as which bytes are found six times as fast.
_ESCAPE, _BRACE = b"\\{"

#: What is between the last field before the status of an object and its status, which is the last field.
_BEFORE_STATUS: Final = b'},"status":{'

#: The maximum number of parts that are kept as trees, and the maximum length of their texts in bytes.
_MAX_PARTS: Final = 256
_MAX_PART_BYTES: Final = 8192
_parts: BoundedCache[bytes, Any] = BoundedCache(_MAX_PARTS)
"""The text of managedFields, or of all after metadata → its tree, which is shared by the trees that `_unpack` makes; None for one
that was seen once, such as a status, whose tree the collector would have to look at for nothing."""


def _end_of_metadata(tree: StoredObject, text: bytes) -> int:
    """Returns the position in the text of an object after its metadata, if that comes first; else 0."""
    names = iter(tree)
    if next(names, "") != "metadata":
        return 0
    following = next(names, "")
    if not following:
        return max(len(text) - 1, 0)
    return 0 if following in _FIELDS_OF_METADATA else text.find(b'},"%b":' % following.encode()) + 1


def _unpack(packed: bytes, end: int, *, managed_fields: bool = True) -> StoredObject:
    """Makes the tree of a packed object, whose parts must not be changed.

    Objects of one workload differ in their metadata; the other parts are parsed once for all of them.

    Args:
        packed: its text.
        end: where its metadata ends, if that is known.
        managed_fields: whether managedFields are needed.
    """
    if not end:
        return orjson.loads(packed)  # type: ignore[no-any-return]
    metadata, begin = _read_metadata(packed, end)
    if begin >= 0 and managed_fields:
        metadata["managedFields"] = read_part(packed[begin + len(_BEFORE_MANAGED_FIELDS) - 1 : end - 1])
    return {"metadata": metadata, **read_rest(packed[end:])}


def _read_metadata(packed: bytes, end: int) -> tuple[Object, int]:
    """Makes the tree of the metadata of a packed object, without managedFields; returns where these begin, or -1."""
    begin = packed.find(_BEFORE_MANAGED_FIELDS, 0, end)
    return orjson.loads(packed[len(_BEGINNING) : end] if begin < 0 else packed[len(_BEGINNING) : begin] + b"}"), begin


def read_description(text: bytes) -> Object:
    """Returns the tree of what `find_description` has found."""
    return orjson.loads(b"{%b}" % text[1:])  # type: ignore[no-any-return]


def read_rest(rest: bytes) -> StoredObject:
    """Returns the tree of what follows the metadata of an object, as `Head` has it; what comes before its status is shared."""
    text = b"{" + rest.removeprefix(b",")
    begin = text.rfind(_BEFORE_STATUS)
    if begin > 0:
        with suppress(orjson.JSONDecodeError):  # it is the status of a part
            return {**read_part(text[: begin + 1] + b"}"), "status": orjson.loads(text[begin + len(_BEFORE_STATUS) - 1 : -1])}
    return read_part(text)  # type: ignore[no-any-return]


def read_part(text: bytes) -> Any:
    """Returns the tree of a text, which is shared."""
    found = _parts.get(text)
    if found is None:
        found = orjson.loads(text)
        if len(text) <= _MAX_PART_BYTES:
            _parts.add(text, found if text in _parts else None)
    return found


def keep_recent(document: Document) -> None:
    """Counts a document of the store among the recent ones, and packs the oldest of them if they are too many."""
    _recent.append(weakref.ref(document))
    if len(_recent) > _MAX_RECENT:
        try:
            oldest = _recent.popleft()()
        except IndexError:  # `pack_recent` has packed them
            return
        if oldest is not None:
            oldest.pack()


def pack_recent() -> None:
    """Packs the recent documents as well: a process that has nothing to do needs no trees."""
    for _ in range(len(_recent)):
        try:
            document = _recent.popleft()()
        except IndexError:  # another thread packs some of them
            return
        if document is not None:
            document.pack()


def compress(documents: Iterable[Document]) -> None:
    """Holds packed documents of one kind as compressed texts, without their encodings, until their objects are used."""
    found = list(documents)
    packed = [(one, text) for one in found if isinstance(text := one._packed, bytes) and text]
    texts = compress_texts([text for _, text in packed])
    for (document, _), text in zip(packed, texts, strict=True):
        document._packed = text
    for document in found:
        if document.is_compressed:  # readers may have made encodings since it was compressed
            document._json, document._made = b"", {}


def json_of(documents: Iterable[Document]) -> list[bytes]:
    """Returns the `json` of each document; the inner loop of large lists."""
    return [document._json or document.json for document in documents]


def encodings_of(
    documents: Iterable[Document],
    key: Hashable,
    make: Callable[[StoredObject], V],
    make_by_text: Callable[[Document], V | None] | None = None,
) -> list[V]:
    """Returns the `encoding` of each document, for encodings that are never empty.

    Args:
        documents: the documents.
        key, make: as for `encoding`.
        make_by_text: makes the same of a document's text if that is possible, else returns None.
    """
    if make_by_text is None:
        return [document._made.get(key) or document.encoding(key, make) for document in documents]
    found = []
    for document in documents:
        made = document._made.get(key) or make_by_text(document)
        found.append(document.encoding(key, make) if made is None else document._made.setdefault(key, made))
    return found


def encode_all(documents: Iterable[Document], makers: Mapping[Hashable, Callable[[StoredObject], bytes]]) -> None:
    """Makes the encodings that documents lack, by key; of a packed document all from one tree."""
    for document in documents:
        made = document._made
        missing = [key for key in makers if key not in made]
        if missing:
            tree = document.tree
            for key in missing:
                made.setdefault(key, makers[key](tree))


# --- The encodings of parts that are equal in many objects -----------------------------------------------------------
# Replicas have the same containers, ports, tolerations and managed fields. The cache key is the part's JSON, which is
# much cheaper to encode than any other format. The caches are bounded in number and size.


#: The maximum JSON length of cached parts in bytes, and the maximum number of parts.
_MAXIMUM_BYTES: Final = 2048
_MAXIMUM_ITEMS: Final = 256
#: After so many values in a row that were not in the cache, as statuses of running containers, one in `SAMPLE` is looked up.
MAX_MISSES: Final = 64
SAMPLE: Final = 16


def cached_encoder(encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Wraps an encoder of plain JSON data with a bounded cache, which is used as long as values are found in it."""
    cache: BoundedCache[bytes, bytes] = BoundedCache(_MAXIMUM_ITEMS)
    misses = 0
    last = (b"", b"")  # neighbours are often equal, and texts are compared faster than they are hashed

    def encoded(value: Any) -> bytes:
        nonlocal misses, last
        if misses > MAX_MISSES and misses % SAMPLE:
            misses += 1
            return encode(value)
        try:
            key = orjson.dumps(value)
        except orjson.JSONEncodeError:  # integers beyond 64 bits, bytes, invalid UTF-8
            return encode(value)
        known, made = last
        if known == key:
            misses = 0
            return made
        found = cache.get(key)
        if found is not None:
            misses = 0
            last = key, found
            return found
        misses += 1
        made = encode(value)
        if len(key) <= _MAXIMUM_BYTES:
            cache.add(trim(key), made)
        return made

    return encoded


# --- Parts of large response bodies, which are joined while they are sent -----------------------------------------------
#
# A large body is never in memory as a whole, and the client receives the first piece while the next one is joined.
# `Items` cache their pieces when they are sent for the second time, since they are then likely to be sent again.


CHUNK_BYTES = 64 * 1024
"""The approximate length of a piece in bytes; shorter bodies are not split."""


class Items:
    """Parts with a separator. Iteration yields pieces of about CHUNK_BYTES bytes."""

    __slots__ = ("_between", "_pieces", "_was_sent", "count", "length")

    def __init__(self, parts: Sequence[bytes], between: bytes = b"") -> None:
        self.count = len(parts)
        """The number of parts."""
        self.length = sum(map(len, parts)) + len(between) * max(0, self.count - 1)
        """The total number of bytes."""
        self._between = between
        step = max(1, self.count * CHUNK_BYTES // max(1, self.length))
        self._pieces: list[bytes | Sequence[bytes]] = [parts[start : start + step] for start in range(0, self.count, step)]
        """The pieces, each joined or still a sequence of parts."""
        self._was_sent = False

    def __iter__(self) -> Iterator[bytes]:
        keeps, self._was_sent = self._was_sent, True
        pieces, last = self._pieces, len(self._pieces) - 1
        for place, piece in enumerate(pieces):
            if isinstance(piece, bytes):
                yield piece
                continue
            joined = self._between.join(piece if place == last else [*piece, b""])
            if keeps:
                pieces[place] = joined
            yield joined


class Chunks:
    """Items between an opening and a closing. Iteration yields pieces, `len` is the total number of bytes."""

    __slots__ = ("_closing", "_items", "_length", "_opening")

    def __init__(self, opening: bytes, items: Items, closing: bytes) -> None:
        self._opening = opening
        self._items = items
        self._closing = closing
        self._length = len(opening) + items.length + len(closing)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        piece = self._opening
        for following in self._items:
            yield piece
            piece = following
        yield piece + self._closing


def enclose(opening: bytes, items: Items, closing: bytes) -> bytes | Chunks:
    """Returns items between an opening and a closing: joined bytes, or Chunks for large bodies."""
    pieces = Chunks(opening, items, closing)
    return pieces if len(pieces) > CHUNK_BYTES else b"".join(pieces)
