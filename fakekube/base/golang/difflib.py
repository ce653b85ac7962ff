"""Unified differences of lines, as go-difflib (a port of Python's) makes them, in a time that grows with the number of lines.

Python's matcher takes the square of the number of lines that both sides have. Up to a size it is used as it is; beyond it, lines
that occur once on both sides, in the same order, are the anchors, and what is equal before and after an anchor belongs to it
(patience diff): the difference is valid, and may be longer than the one of the real server.

Specified by: github.com/pmezard/go-difflib/difflib (GetUnifiedDiffString).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

_EXACT: Final = 2_000
"""The lines of both sides together up to which the difference is that of go-difflib."""
_CONTEXT: Final = 3
_MAXIMUM_TEXT: Final = 2 << 20
"""The characters after which a difference ends; the real server has no such bound."""

Block = tuple[int, int, int]
"""Equal lines: their place in the one, in the other, and their number."""
Opcode = tuple[str, int, int, int, int]


def unified_diff(before: Sequence[str], after: Sequence[str]) -> str:
    """Returns the hunks of the difference, without names of files; the lines have their ends."""
    parts, size = list[str](), 0
    for line in _hunks(before, after):
        parts.append(line)
        size += len(line)
        if size > _MAXIMUM_TEXT:
            break
    return "".join(parts)


def _hunks(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    import difflib  # only refused updates need it

    if len(before) + len(after) <= _EXACT:
        yield from list(difflib.unified_diff(before, after))[2:]
        return
    for group in _group(_opcodes(before, after)):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for tag, start, end, other_start, other_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[start:end])
            else:
                yield from (f"-{line}" for line in before[start:end])
                yield from (f"+{line}" for line in after[other_start:other_end])


def _range(start: int, end: int) -> str:
    length = end - start
    return str(start + 1) if length == 1 else f"{start + bool(length)},{length}"


def _group(opcodes: Sequence[Opcode]) -> Iterator[list[Opcode]]:
    """Yields the opcodes of each hunk, with their context."""
    group: list[Opcode] = []
    for number, (tag, start, end, other_start, other_end) in enumerate(opcodes):
        length = end - start
        if tag != "equal":
            group.append((tag, start, end, other_start, other_end))
            continue
        is_last = number == len(opcodes) - 1
        if group and (is_last or length > 2 * _CONTEXT):
            kept = min(length, _CONTEXT)
            yield [*group, (tag, start, start + kept, other_start, other_start + kept)]
            group = []
        if not is_last:
            kept = min(length, _CONTEXT) if not group else length
            group.append((tag, end - kept, end, other_end - kept, other_end))
    if group:
        yield group


def _opcodes(before: Sequence[str], after: Sequence[str]) -> list[Opcode]:
    opcodes: list[Opcode] = []
    start = other_start = 0
    for place, other, length in (*_blocks(before, after), (len(before), len(after), 0)):
        if start < place or other_start < other:
            opcodes.append(("replace", start, place, other_start, other))
        start, other_start = place + length, other + length
        if length:
            opcodes.append(("equal", place, start, other, other_start))
    return opcodes


def _blocks(before: Sequence[str], after: Sequence[str]) -> list[Block]:
    """Returns the equal lines of both, in order."""
    blocks: list[Block] = []
    start = other_start = 0
    for place, other in (*_anchors(before, after), (len(before), len(after))):
        head = 0
        while start + head < place and other_start + head < other and before[start + head] == after[other_start + head]:
            head += 1
        tail = 0
        while (
            place - tail > start + head
            and other - tail > other_start + head
            and before[place - tail - 1] == after[other - tail - 1]
        ):
            tail += 1
        is_anchor = place < len(before) and other < len(after)
        blocks += [(start, other_start, head), (place - tail, other - tail, tail + is_anchor)]
        start, other_start = place + is_anchor, other + is_anchor
    return _merge(blocks)


def _merge(blocks: Sequence[Block]) -> list[Block]:
    """Returns the blocks with lines, those that follow one another as one."""
    merged: list[Block] = []
    for block in blocks:
        place, other, length = merged[-1] if merged else (0, 0, 0)
        if (place + length, other + length) == block[:2] and merged:
            merged[-1] = (place, other, length + block[2])
        elif block[2]:
            merged.append(block)
    return merged


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Returns the places of lines that occur once on both sides: of the longest sequence that rises on both."""
    counts, other_counts = Counter(before), Counter(after)
    places = {line: number for number, line in enumerate(after) if other_counts[line] == 1}
    pairs = [(number, places[line]) for number, line in enumerate(before) if counts[line] == 1 and line in places]
    ends: list[int] = []  # of rising sequences of each length, the smallest last place
    last: list[int] = []  # the pairs that they end with
    previous: list[int] = []
    for number, (_, other) in enumerate(pairs):
        length = bisect_left(ends, other)
        previous.append(last[length - 1] if length else -1)
        ends[length : length + 1], last[length : length + 1] = [other], [number]
    chain, at = list[tuple[int, int]](), last[-1] if last else -1
    while at >= 0:
        chain.append(pairs[at])
        at = previous[at]
    return chain[::-1]
