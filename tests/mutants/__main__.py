"""Do the tests notice a small error in a rule? Mutants of the rooms of rules, drawn by chance, and which of them are killed.

    python -m tests.mutants [--seed 1] [--count 300]      # by hand: about a second a mutant
    python -m tests.mutants --seed 1 --only 17 40                    # some of them, with what killed each
    python -m tests.mutants --seed 1 --count 300 --list              # which mutants they are
    python -m tests.mutants --all apis/batch                         # every mutant of a folder or module

First each probe (a recorded scenario, a story, a file of tests) is played once, and the lines that it executes are noted; `--notes FILE`
keeps them for the next run. Then each mutant is played to the probes that execute its statement, the cheapest first, until one fails.
One that is in no function, or is executed while modules are imported, is loaded anew in a process where nothing has been imported; its
probes are those that execute anything of its module.

A mutant that nothing notices survives: add the story that shows the rule, or delete the code if no request can reach it.
"""

from __future__ import annotations

import argparse
import functools
import gc
import hashlib
import importlib
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType

from tests.mutants.changes import PROJECT, ROOMS, Finder, Mutant, drawn, mutants
from tests.mutants.probes import Known, Lines, Probe, examine, import_everything, in_fork, probes

#: Seconds of the processor that a probe may take, beside some multiples of what it takes without an error.
SECONDS, TIMES = 10, 5
#: What all probes of a mutant may take together, in the same seconds.
LONGEST = 30.0
#: The number of probes that are played in one fork, and in one that has to import everything anew.
GROUP, GROUP_ANEW = 10, 100
_OWN = ("fakekube", "tests")


Notes = dict[Probe, Known]
Functions = dict[tuple[str, str, int], list[FunctionType]]
"""By file, qualified name and line."""


def noted(path: Path | None) -> Notes:
    """What is known of all probes; from a file, if it has been written for this state of the rooms."""
    state = _state()
    notes: Notes = {}
    if path and path.exists():
        kept, notes = pickle.loads(path.read_bytes())
        notes = notes if kept == state else {}
    missing = [probe for probe in probes() if probe not in notes]
    for group in _groups(missing):
        found = in_fork(functools.partial(_examine, group), 600) or [Known(fails="does not end")] * len(group)
        notes.update(zip(group, found, strict=True))
        for probe, known in zip(group, found, strict=True):
            if known.fails:
                print(f"{probe} fails without any error: {known.fails[:300]}", flush=True)
        if path:
            path.write_bytes(pickle.dumps((state, notes)))
    return notes


def _groups(probes: Sequence[Probe], most: int = GROUP) -> Iterator[Sequence[Probe]]:
    """Yields the probes that share a fork, in their order; a run of pytest shares its own with none."""
    group: list[Probe] = []
    for probe in probes:
        if group and (len(group) == most or "tests" in (probe.kind, group[-1].kind)):
            yield group
            group = []
        group.append(probe)
    if group:
        yield group


def _examine(group: Sequence[Probe]) -> list[Known]:
    """Examines probes one after the other; a cache may hide from the later ones what an earlier one executes."""
    return [examine(probe) for probe in group]


def _state() -> str:
    """Changes with each line of the rooms."""
    files = sorted(path for room in ROOMS for path in (PROJECT / "fakekube" / room).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def chosen(mutant: Mutant, notes: Notes, by_line: bool) -> list[Probe]:
    """The probes that concern a mutant, the cheapest first."""
    lines = mutant.place().lines

    def concerns(known: Known) -> bool:
        executed = known.lines.get(mutant.path)
        return executed is not None and (not by_line or any(line in executed for line in lines))

    found = [probe for probe, known in notes.items() if not known.fails and concerns(known)]
    if not found and not by_line:  # a table that others read
        found = [probe for probe, known in notes.items() if not known.fails]
        return sorted(found, key=lambda probe: ("discovery" not in probe.name, notes[probe].seconds))
    return sorted(found, key=lambda probe: notes[probe].seconds)


def functions() -> Functions:
    """All functions of the project that exist now."""
    found: Functions = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(str(PROJECT)):
            code = one.__code__
            found.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(one)
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _replace(mutant: Mutant, known: Functions) -> None:
    """Puts the changed code into the functions that exist."""
    for code in _codes(mutant.code()):
        for function in known.get((code.co_filename, code.co_qualname, code.co_firstlineno), ()):
            function.__code__ = code


def _load_anew(mutant: Mutant) -> None:
    """Forgets what has been imported, and imports the mutant in place of its module."""
    for name in [name for name in sys.modules if name.partition(".")[0] in _OWN and not name.startswith("tests.mutants")]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder(mutant))
    importlib.import_module(mutant.module)


def judged(mutant: Mutant, notes: Notes, at_import: Lines, known: Functions) -> str:
    """The verdict on a mutant."""
    place = mutant.place()
    executed = at_import.get(mutant.path, frozenset())
    quick = place.in_function and not any(line in executed for line in place.lines)
    probes = chosen(mutant, notes, by_line=quick)
    prepare: Callable[[], None] = functools.partial(_replace, mutant, known) if quick else functools.partial(_load_anew, mutant)
    total = 0.0
    for group in _groups(probes, GROUP if quick else GROUP_ANEW):
        cost = sum(notes[probe].seconds for probe in group)
        verdict = in_fork(functools.partial(_play, prepare, group), SECONDS + TIMES * cost)
        if verdict is None:
            return f"killed: does not end, or ends at once: {group[0]} …"
        if verdict:
            return f"killed: {verdict}"
        total += cost
        if total > LONGEST:
            break
    return f"survived {len(probes)} probes"


def _play(prepare: Callable[[], None], group: Iterable[Probe]) -> str:
    """Plays probes to a mutant, in this process; returns the one that fails, or ""."""
    try:
        prepare()
    except Exception as error:
        return f"{type(error).__name__} when it is imported"
    for probe in group:
        try:
            fails = probe.play()
        except Exception as error:
            fails = repr(error)
        if fails:
            return str(probe)
    return ""


def lines_at_import() -> Lines:
    """The lines of functions that are executed while all modules are imported."""
    return examine(Probe("import", "")).lines


def judge_all(numbered: Sequence[tuple[int, Mutant]], notes: Path | None) -> None:
    """Prints the verdict on each mutant."""
    at_import = in_fork(lines_at_import, 120) or {}
    import_everything()
    known_probes = noted(notes)
    known_functions = functions()
    gc.freeze()  # a fork writes to no page of what exists
    survived = 0
    for total, (number, mutant) in enumerate(numbered, 1):
        verdict = judged(mutant, known_probes, at_import, known_functions)
        survived += verdict.startswith("survived")
        print(f"{number} {mutant}: {verdict} ({total - survived} of {total} killed)", flush=True)


def main() -> int:
    """The command; see the module."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="leaves so many out, to go on where a run was ended")
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of mutants")
    parser.add_argument("--all", metavar="PLACE", help="all mutants of a folder or module below fakekube, in place of a sample")
    parser.add_argument("--notes", type=Path, help="keeps which lines each probe executes")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.all:
        found = [mutant for mutant in mutants() if mutant.path.startswith(f"fakekube/{options.all}")]
    else:
        found = drawn(options.seed, options.count)
    numbered = [(n, one) for n, one in enumerate(found) if n >= options.first and (options.only is None or n in options.only)]
    if options.list:
        print("\n".join(f"{number} {mutant}" for number, mutant in numbered))
    else:
        judge_all(numbered, options.notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
