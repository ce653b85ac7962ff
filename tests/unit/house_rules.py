"""The house lint: what ruff cannot say about modules, names, constants and docstrings, counted per room of the package.

`python tests/unit/house_rules.py` prints the counts of all rooms, `… ROOM [RULE]` the findings of a room, `… --tighten [ROOM]` writes the
counts that have shrunk to the budgets, `tests/unit/budgets/ROOM.json`. A budget may only shrink (test_house.py).
"""

from __future__ import annotations

import ast
import collections
import functools
import gc
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

PACKAGE = Path(__file__).parents[2] / "fakekube"
BUDGETS = Path(__file__).parent / "budgets"


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: A module is a chapter: shorter ones are part of another, longer ones are two.
SHORTEST, LONGEST = 60, 700

#: Modules that are shorter or longer for a reason.
SIZES: Mapping[str, str] = {
    "cluster/testing/snapshots.py": "imports syrupy, which is optional",
    "apiserver/endpoints/handlers/connect.py": "a verb of its own, whose subresources are imported when they are used",
    "cli/record.py": "a command of its own",
    "powers/columns.py": "the marks of every cluster import it, and not the rows",
    "nodes/images/names.py": "one home for what rules, statuses, files and look-ups read of a name",
    "nodes/metrics_api.py": "every cluster imports it, and few import its server",
    "apimachinery/cel/cost/limits.py": "one home for facts that four rooms need",
    "apiserver/controlplane/control_loop.py": "the base class of the modules beside it, and of the aggregator's controller",
    "apis/authentication.py": "an API group of its own",
    "apis/core/serviceaccounts/strategy.py": "the kind beside its token, as in Go",
    "apis/validation/expressions.py": "imports CEL, which most kinds do not need",
    "base/objects.py": "names that all rooms use",
    "base/private_files.py": "one job, which belongs to no other module",
    "controllers/cluster_role_aggregation.py": "a controller of its own, as in Go",
    "controllers/deployment/recreate.py": "a strategy of its own, as in Go",
    "controllers/pod_groups.py": "a controller of its own, as in Go",
    "controllers/ttl_after_finished.py": "a controller of its own, as in Go",
    "controllers/validating_admission_policy_status.py": "a controller of its own, as in Go",
}

#: Past participles that do not end in "ed".
IRREGULAR = words(
    "been begun bound broken brought built caught chosen done drawn driven fallen frozen given gone grown heard held hidden kept known "
    "left lent lost made meant met paid said seen sent shown spent sprung stood struck sworn taken taught thrown told "
    "undone won worn wound written"
)
NO_PARTICIPLES = words("embed exceed exec feed need proceed seed sed shed speed succeed")

#: Words that say nothing about a function when they stand alone.
VAGUE = words(
    "above after along also another anything around at before below between beyond both each either else end every everything extra "
    "few first for free fresh from front gone here in inside it its last late later least less lone many may more most much near no "
    "none nothing now of off on one only other others out over own past same self short single so some still such ten that then there thing "
    "things this those till together under unless until up uses was what when where whether which while who whole why with within without "
    "wrong yes yet"
)

#: Where `Object` and `StoredObject` are defined.
OBJECTS = "base/objects.py"

Finding = tuple[str, int, str]
"""A file below the package, a line, and what is wrong there."""


Node = TypeVar("Node", bound=ast.AST)


class Source:
    """A parsed module of the package."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(PACKAGE).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self._of_type: dict[type[ast.AST], list[Any]] = collections.defaultdict(list)
        for node in ast.walk(self.tree):
            self._of_type[type(node)].append(node)
        self.is_face = path.name in ("__init__.py", "__main__.py")

    @property
    def room(self) -> str:
        return self.name.partition("/")[0].removesuffix(".py")

    def all(self, kind: type[Node]) -> list[Node]:
        """Returns the nodes of a type."""
        return self._of_type[kind]

    def finding(self, node: ast.expr | ast.stmt, text: str) -> Finding:
        return self.name, node.lineno, text


@functools.cache
def sources() -> tuple[Source, ...]:
    paths = sorted(PACKAGE.rglob("*.py"))
    gc.disable()  # all trees stay: a collector that looks at them again and again takes four times as long as the parser
    try:
        return tuple(
            Source(path) for path in paths if not path.is_relative_to(PACKAGE / "pytest_plugin")
        )  # a link, or a copy of it
    finally:
        gc.enable()


Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def functions(source: Source) -> tuple[Function, ...]:
    return (*source.all(ast.FunctionDef), *source.all(ast.AsyncFunctionDef))


def is_attribute(function: Function) -> bool:
    """Reports whether a function is read like an attribute, or is declared for types only."""
    names = (getattr(node, "id", getattr(node, "attr", "")) for node in function.decorator_list)
    return any("property" in name or name in ("overload", "setter") for name in names)


def assigned_name(node: ast.stmt) -> str:
    """The name that a statement assigns, or ""."""
    if isinstance(node, ast.Assign):
        target: ast.expr = node.targets[0]
    elif isinstance(node, ast.AnnAssign):
        target = node.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def is_participle(word: str) -> bool:
    return word in IRREGULAR or (word.endswith("ed") and word not in NO_PARTICIPLES and len(word) > 3)


# --- Rules -------------------------------------------------------------------------------------------------------------


def sizes() -> Iterator[Finding]:
    """Modules of less than 60 or more than 700 lines."""
    for source in sources():
        lines = source.text.count("\n")
        if not source.is_face and not SHORTEST <= lines <= LONGEST and source.name not in SIZES:
            yield source.name, 1, f"{lines} lines"


def participles() -> Iterator[Finding]:
    """Functions whose name is a bare participle: it does not say whether it tests, makes or consumes."""
    for source in sources():
        for function in functions(source):
            first, *more = function.name.strip("_").split("_")
            if is_participle(first) and (not more or more[0] in PARTICLES) and not is_attribute(function):
                yield source.finding(function, function.name)


PARTICLES = words(
    "about and as at away before beyond by for from in into of off on onto or out over than through throughout to up with"
)


def vague_names() -> Iterator[Finding]:
    """Functions whose only word says nothing."""
    for source in sources():
        for function in functions(source):
            if function.name.strip("_") in VAGUE and not function.name.startswith("__") and not is_attribute(function):
                yield source.finding(function, function.name)


def exports() -> Iterator[Finding]:
    """`__all__` in a module that is not the face of a package."""
    for source in sources():
        if not source.is_face:
            for node in source.tree.body:
                if assigned_name(node) == "__all__":
                    yield source.finding(node, "__all__")


def loggers() -> Iterator[Finding]:
    """A logger of a module is `_log`."""
    for source in sources():
        for node in source.tree.body:
            name = assigned_name(node)
            if name not in ("", "_log") and "getLogger(" in ast.unparse(node):
                yield source.finding(node, name)


def docstrings() -> Iterator[Finding]:
    """A function that tells whether something is so "Reports whether …", and a property says what it is; parameters are described in
    lower case."""
    for source in sources():
        for node in (*functions(source), *source.all(ast.ClassDef)):
            text = ast.get_docstring(node) or ""
            openings = () if isinstance(node, ast.ClassDef) else OF_FUNCTIONS if is_attribute(node) else OF_ATTRIBUTES
            if text.startswith(openings):
                yield source.finding(node, f"{node.name}: {text.splitlines()[0]}")
            for line in text.partition("Args:\n")[2].partition("\n\n")[0].splitlines():
                name, colon, described = line.strip().partition(": ")
                if (
                    colon
                    and name.isidentifier()
                    and line.startswith("    ")
                    and not line.startswith("     ")
                    and is_capitalised(described)
                ):
                    yield source.finding(node, line.strip())


OF_FUNCTIONS = ("Returns ", "Reports ")
OF_ATTRIBUTES = ("Whether ", "Returns whether ", "Tells whether ", "True if ", "Returns True ")


def is_capitalised(text: str) -> bool:
    """Reports whether a description begins with a capital that is no name (GVK, JSON, Kubernetes)."""
    word = text.partition(" ")[0].rstrip(".,;:")
    return word in CAPITALISED


CAPITALISED = words(
    "A All An Any Called Each For From How If Is Its List Name No None Number One Only Same That The This To What When Where Whether Which With"
)


def constants() -> Iterator[Finding]:
    """Constants that are defined with the same value in two modules: a fact has one home."""
    homes: dict[object, list[tuple[Source, ast.stmt]]] = collections.defaultdict(list)
    for source in sources():
        for node in source.tree.body:
            if assigned_name(node).strip("_").isupper():
                fact = fact_of(node.value) if isinstance(node, ast.Assign | ast.AnnAssign) and node.value else None
                if fact is not None:
                    homes[fact].append((source, node))
    for found in homes.values():
        if len({source.name for source, _ in found}) > 1:
            yield from (source.finding(node, ast.unparse(node)[:100]) for source, node in found[1:])


def fact_of(value: ast.expr) -> object:
    """The value of a literal that says something by itself, or None."""
    try:
        fact = ast.literal_eval(value)
    except ValueError:
        if is_round(limit_of(value)):
            return None
        if isinstance(value, ast.BinOp | ast.Call) and not any(
            isinstance(node, ast.Name | ast.Lambda) and not is_type(node) for node in ast.walk(value)
        ):
            text = ast.unparse(value)
            return text if len(text) > 8 else None
        return None
    if isinstance(fact, str | bytes):
        return fact if len(fact) > 3 else None
    if isinstance(fact, int | float):
        return (type(fact).__name__, fact) if fact > 2000 and fact % 1000 and not is_round(fact) else None
    return repr(fact) if isinstance(fact, tuple | dict | set | list) and len(repr(fact)) > 12 else None


def limit_of(value: ast.expr) -> int:
    """The number that a product or a shift of literals says (`64 * 1024`, `256 << 10`), or 0."""
    literals = all(isinstance(node, ast.BinOp | ast.operator | ast.Constant) for node in ast.walk(value))
    number = eval(ast.unparse(value)) if literals and isinstance(value, ast.BinOp) else 0  # noqa: S307  (constants alone)
    return number if isinstance(number, int) else 0


def is_round(number: float) -> bool:
    """Reports whether a number is a power of two, or one less: sizes of caches, pieces and windows that nothing connects are equal
    by chance. What Kubernetes limits to such a number is to be shared by hand."""
    whole = int(number)
    return whole == number and whole > 0 and (whole & (whole - 1) == 0 or whole & (whole + 1) == 0)


def is_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("frozenset", "re", "tuple", "MappingProxyType")


def sentences() -> Iterator[Finding]:
    """Literal texts of four words or more that stand in two modules."""
    homes: dict[str, list[tuple[Source, ast.expr]]] = collections.defaultdict(list)
    for source in sources():
        skipped = {id(node.value) for node in source.all(ast.Expr)}
        for node in source.all(ast.Constant):
            if isinstance(node.value, str) and id(node) not in skipped:
                text = node.value.strip()
                if text.count(" ") >= 3 and len(text) > 20 and not text.startswith("Specified"):
                    homes[text].append((source, node))
    for text, found in homes.items():
        if len({source.name for source, _ in found}) > 1:
            yield from (source.finding(node, text[:100]) for source, node in found[1:])


def single_uses() -> Iterator[Finding]:
    """Private functions of one short statement that are called once, in their own module: the statement says as much.

    Entries of tables and arguments of functions, which are not called by name, have to have one.
    """
    for source in sources():
        used = collections.Counter(node.id for node in source.all(ast.Name))
        used.update(node.attr for node in source.all(ast.Attribute))
        called = {node.func.id for node in source.all(ast.Call) if isinstance(node.func, ast.Name)}
        for function in source.tree.body:
            if (
                isinstance(function, ast.FunctionDef)
                and function.name.startswith("_")
                and not function.decorator_list
                and used[function.name] == 1
                and function.name in called
            ):
                body = [
                    node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
                ]
                if (
                    len(body) == 1
                    and len(function.body) == 1
                    and isinstance(body[0], ast.Return)
                    and body[0].end_lineno == body[0].lineno
                ):
                    yield source.finding(function, function.name)


def object_types() -> Iterator[Finding]:
    """`Object` and `StoredObject` are defined once, in OBJECTS."""
    for source in sources():
        for node in source.tree.body:
            if assigned_name(node) in ("Object", "StoredObject") and source.name != OBJECTS:
                yield source.finding(node, ast.unparse(node))


RULES: Mapping[str, Callable[[], Iterator[Finding]]] = {
    "sizes": sizes,
    "participles": participles,
    "vague_names": vague_names,
    "exports": exports,
    "loggers": loggers,
    "docstrings": docstrings,
    "constants": constants,
    "sentences": sentences,
    "single_uses": single_uses,
    "object_types": object_types,
}


@functools.cache
def findings(rule: str) -> Mapping[str, tuple[Finding, ...]]:
    """What a rule finds, by room."""
    found: dict[str, list[Finding]] = {}
    for finding in RULES[rule]():
        found.setdefault(finding[0].partition("/")[0].removesuffix(".py"), []).append(finding)
    return {room: tuple(sorted(listed)) for room, listed in found.items()}


def rooms() -> list[str]:
    return sorted({source.room for source in sources()} - {"__init__", "__main__"})


def counts(room: str) -> dict[str, int]:
    return {rule: len(findings(rule).get(room, ())) for rule in RULES}


def budget(room: str) -> dict[str, int]:
    """The counts that a room may have; a new room has none of all."""
    path = BUDGETS / f"{room}.json"
    return {**dict.fromkeys(RULES, 0), **(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})}


def tighten(room: str, *, initial: bool = False) -> None:
    allowed, present = budget(room), counts(room)
    shrunk = present if initial else {rule: min(count, allowed[rule]) for rule, count in present.items()}
    BUDGETS.mkdir(exist_ok=True)
    text = json.dumps({rule: count for rule, count in shrunk.items() if count}, indent=2)
    (BUDGETS / f"{room}.json").write_text(f"{text}\n", encoding="utf-8")


def main(arguments: list[str]) -> None:
    if arguments and arguments[0] in ("--tighten", "--initial"):
        for room in arguments[1:] or rooms():
            tighten(room, initial=arguments[0] == "--initial")
    elif arguments:
        for rule in arguments[1:] or RULES:
            for name, line, text in findings(rule).get(arguments[0], ()):
                print(f"fakekube/{name}:{line}: {rule}: {text}")
    else:
        print(f"{'':14}" + "".join(f"{rule:>13}" for rule in RULES))
        for room in rooms():
            print(f"{room:14}" + "".join(f"{count:13}" for count in counts(room).values()))
        print(f"{'':14}" + "".join(f"{sum(map(len, findings(rule).values())):13}" for rule in RULES))


if __name__ == "__main__":
    main(sys.argv[1:])
