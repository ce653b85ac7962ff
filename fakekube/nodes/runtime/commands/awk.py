"""`awk`: patterns and actions over the fields of lines.

The language of POSIX, except user-defined functions, `getline`, pipes and redirections. A program is translated into functions of
a `Run`.

Specified by: POSIX.1-2017, Shell & Utilities (awk).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from fakekube.nodes.runtime.commands.awk_values import (
    FUNCTIONS,
    Evaluate,
    Execute,
    Field,
    Leave,
    Run,
    Target,
    Value,
    assign,
    compile_expression,
    constant,
    element_target,
    field_target,
    format_values,
    goes_on,
    is_true,
    member,
    number_of,
    operation,
    step,
    text_of,
    variable_target,
)
from fakekube.nodes.runtime.program import Command, Program, Usage
from fakekube.nodes.runtime.scheduling import breathe

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r]+|\\\n|\#[^\n]*)|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<text>"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<name>[A-Za-z_]\w*)|(?P<sign>\+\+|--|\+=|-=|\*=|/=|%=|\^=|==|<=|>=|!=|!~|&&|\|\||[-+*/%^!<>|?:~$=,;(){}\[\]\n])"""
)


_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "/": "/", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


#: After these tokens a slash divides; after all others it begins an expression.
_OPERANDS: Final = frozenset({"number", "text", ")", "]", "$", "incr"})


_KEYWORDS: Final = frozenset(
    {"BEGIN", "END", "if", "else", "while", "for", "do", "in", "print", "printf", "next", "exit", "break", "continue", "delete"}
)


#: The maximum depth of nested expressions and statements.
_MAX_DEPTH: Final = 100


Token = tuple[str, str]


def _tokens(source: str) -> list[Token]:
    """Splits a program. Raises Usage."""
    found, at = list[Token](), 0
    while at < len(source):
        if source[at] == "/" and (not found or (found[-1][0] not in _OPERANDS and found[-1][0] != "name")):
            end = at + 1
            while end < len(source) and source[end] != "/":
                end += 2 if source[end] == "\\" else 1
            found.append(("regex", source[at + 1 : end].replace("\\/", "/")))
            at = end + 1
            continue
        match = _TOKEN.match(source, at)
        if match is None:
            raise Usage(f"cmd. line:1: Unexpected token near {source[at : at + 10]!r}")
        at, kind = match.end(), match.lastgroup or ""
        if kind == "sign":
            found.append((match[0], match[0]))
        elif kind == "text":
            found.append(("text", re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[0]), match[0][1:-1])))
        elif kind == "name" and match[0] in _KEYWORDS:
            found.append((match[0], match[0]))
        elif kind == "name" and at < len(source) and source[at] == "(":
            found.append(("call", match[0]))
        elif kind != "space":
            found.append((kind, match[0]))
    return [*found, ("end", "")]


class _Parser:
    """Translates a program into functions. Raises Usage."""

    def __init__(self, source: str) -> None:
        self._tokens, self._at, self._depth = _tokens(source), 0, 0

    @property
    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _take(self, *kinds: str) -> Token:
        token = self._tokens[self._at]
        if kinds and token[0] not in kinds:
            raise Usage(f"cmd. line:1: Unexpected token {token[1] or 'end of program'!r}")
        self._at += 1
        return token

    def _is(self, *kinds: str) -> bool:
        if self._kind in kinds:
            self._at += 1
            return True
        return False

    def _skip(self, *kinds: str) -> None:
        while self._is(*kinds):
            pass

    # --- Statements ---------------------------------------------------------------------------------------------------

    def rules(self) -> list[tuple[str, Evaluate | None, Execute | None]]:
        """Returns the rules: BEGIN, END or "", the pattern and the action."""
        found = list[tuple[str, Evaluate | None, Execute | None]]()
        self._skip("\n", ";")
        while self._kind != "end":
            kind, pattern = "", None
            if self._kind in ("BEGIN", "END"):
                kind = self._take()[0]
            elif self._kind != "{":
                pattern = self._expression()
                if self._is(","):
                    pattern = self._range(pattern, self._expression())
            found.append((kind, pattern, self._parse_block() if self._kind == "{" else None))
            self._skip("\n", ";")
        return found

    @staticmethod
    def _range(first: Evaluate, last: Evaluate) -> Evaluate:
        state = [False]

        async def evaluate(run: Run) -> Value:
            if not state[0] and not is_true(await first(run)):
                return 0.0
            state[0] = not is_true(await last(run))
            return 1.0

        return evaluate

    def _parse_block(self) -> Execute:
        self._take("{")
        statements = list[Execute]()
        self._skip("\n", ";")
        while not self._is("}"):
            statements.append(self._statement())
            self._skip("\n", ";")

        async def execute(run: Run) -> None:
            for one in statements:
                await one(run)

        return execute

    def _body(self) -> Execute:
        self._skip("\n")
        return self._statement()

    def _statement(self) -> Execute:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Usage("cmd. line:1: the program is nested too deeply")
        try:
            parse = {
                "{": self._parse_block, "if": self._parse_if, "while": self._parse_while, "do": self._parse_do,
                "for": self._parse_for, "print": self._parse_print, "printf": self._parse_print, "next": self._parse_leave,
                "exit": self._parse_exit, "break": self._parse_leave, "continue": self._parse_leave,
                "delete": self._parse_delete,
            }.get(self._kind, self._parse_simple)  # fmt: skip
            return parse()
        finally:
            self._depth -= 1

    def _parse_simple(self) -> Execute:
        value = self._expression()

        async def execute(run: Run) -> None:
            await value(run)

        return execute

    def _condition(self) -> Evaluate:
        self._take("(")
        value = self._expression()
        self._take(")")
        return value

    def _parse_if(self) -> Execute:
        self._take()
        condition, then = self._condition(), self._body()
        place = self._at
        self._skip("\n", ";")
        otherwise = self._body() if self._is("else") else None
        if otherwise is None:
            self._at = place

        async def execute(run: Run) -> None:
            if is_true(await condition(run)):
                await then(run)
            elif otherwise is not None:
                await otherwise(run)

        return execute

    def _parse_while(self) -> Execute:
        self._take()
        return self._loop(self._condition(), self._body(), None)

    def _parse_do(self) -> Execute:
        self._take()
        body = self._body()
        self._skip("\n", ";")
        self._take("while")
        again = self._loop(self._condition(), body, None)

        async def execute(run: Run) -> None:
            if await goes_on(body, run):
                await again(run)

        return execute

    @staticmethod
    def _loop(condition: Evaluate | None, body: Execute, step: Execute | None) -> Execute:
        async def execute(run: Run) -> None:
            while condition is None or is_true(await condition(run)):
                await breathe()
                if not await goes_on(body, run):
                    return
                if step is not None:
                    await step(run)

        return execute

    def _parse_for(self) -> Execute:
        self._take()
        self._take("(")
        name = self._tokens[self._at]
        if name[0] == "name" and self._tokens[self._at + 1][0] == "in" and self._tokens[self._at + 3][0] == ")":
            self._at += 2
            array = self._take("name")[1]
            self._take(")")
            return self._parse_each(name[1], array, self._body())
        first = None if self._kind == ";" else self._parse_simple()
        self._take(";")
        condition = None if self._kind == ";" else self._expression()
        self._take(";")
        step = None if self._kind == ")" else self._parse_simple()
        self._take(")")
        loop = self._loop(condition, self._body(), step)

        async def execute(run: Run) -> None:
            if first is not None:
                await first(run)
            await loop(run)

        return execute

    @staticmethod
    def _parse_each(name: str, array: str, body: Execute) -> Execute:
        async def execute(run: Run) -> None:
            for key in list(run.array(array)):
                run.variables[name] = Field(key)
                await breathe()
                if not await goes_on(body, run):
                    return

        return execute

    def _parse_leave(self) -> Execute:
        kind = self._take()[0]

        async def execute(run: Run) -> None:
            raise Leave(kind)

        return execute

    def _parse_exit(self) -> Execute:
        self._take()
        code = None if self._kind in ("\n", ";", "}", "end") else self._expression()

        async def execute(run: Run) -> None:
            if code is not None:
                run.code = int(number_of(await code(run))) & 0xFF
            raise Leave("exit")

        return execute

    def _parse_delete(self) -> Execute:
        self._take()
        name = self._take("name")[1]
        key = self._subscript() if self._is("[") else None

        async def execute(run: Run) -> None:
            if key is None:
                run.delete_elements(name)
            else:
                run.delete_element(name, text_of(await key(run)))

        return execute

    def _parse_print(self) -> Execute:
        formatted = self._take()[0] == "printf"
        closing = self._kind == "("
        values = list[Evaluate]()
        if self._kind not in ("\n", ";", "}", "end"):
            place = self._at
            if closing and self._ends_statement_after_group():
                self._take("(")
                values = self._list(")")
                self._take(")")
            else:
                self._at = place
                values = self._list("\n")

        async def execute(run: Run) -> None:
            made = [await one(run) for one in values]
            if formatted:
                await run.print(format_values(made))
            else:
                shown = [text_of(one) for one in made] or [run.fields[0]]
                await run.print(text_of(run.get("OFS")).join(shown) + text_of(run.get("ORS")))

        return execute

    def _ends_statement_after_group(self) -> bool:
        """Reports whether the group of parentheses that begins here is the whole rest of the statement."""
        depth = 0
        for place in range(self._at, len(self._tokens)):
            kind = self._tokens[place][0]
            depth += (kind == "(") - (kind == ")")
            if depth == 0:
                return self._tokens[place + 1][0] in ("\n", ";", "}", "end")
        return False

    def _list(self, end: str) -> list[Evaluate]:
        found = [] if self._kind == end else [self._expression()]
        while found and self._is(","):
            self._skip("\n")
            found.append(self._expression())
        return found

    # --- Expressions --------------------------------------------------------------------------------------------------

    def _expression(self) -> Evaluate:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Usage("cmd. line:1: the program is nested too deeply")
        try:
            return self._ternary()
        finally:
            self._depth -= 1

    def _ternary(self) -> Evaluate:
        place = self._at
        target = self._target()
        if target is not None and self._kind in _ASSIGNMENTS:
            operator = self._take()[0]
            return assign(target, operator, self._expression())
        self._at = place
        condition = self._binary(0)
        if not self._is("?"):
            return condition
        then = self._expression()
        self._take(":")
        otherwise = self._expression()

        async def evaluate(run: Run) -> Value:
            return await (then if is_true(await condition(run)) else otherwise)(run)

        return evaluate

    def _binary(self, level: int) -> Evaluate:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while True:
            if _LEVELS[level] == ("",):  # two operands beside each other
                if self._kind not in ("number", "text", "name", "call", "$", "(", "-", "!") or self._kind in ("-", "!"):
                    return left
                left = operation("", left, self._binary(level + 1))
            elif _LEVELS[level] == ("in",) and self._is("in"):
                left = member(left, self._take("name")[1])
            elif self._kind in _LEVELS[level] and self._kind != "in":
                operator = self._take()[0]
                self._skip("\n") if operator in ("&&", "||") else None
                left = operation(operator, left, self._binary(level + 1))
            else:
                return left

    def _unary(self) -> Evaluate:
        if self._kind in ("!", "-", "+"):
            operator, value = self._take()[0], self._unary()

            async def evaluate(run: Run) -> Value:
                found = await value(run)
                if operator == "!":
                    return float(not is_true(found))
                return -number_of(found) if operator == "-" else number_of(found)

            return evaluate
        base = self._postfix()
        return operation("^", base, self._unary()) if self._is("^") else base

    def _postfix(self) -> Evaluate:
        if self._kind in ("++", "--"):
            operator = self._take()[0]
            target = self._target()
            if target is None:
                raise Usage("cmd. line:1: Unexpected token")
            return step(target, 1.0 if operator == "++" else -1.0, before=True)
        place = self._at
        target = self._target()
        if target is not None and self._kind in ("++", "--"):
            return step(target, 1.0 if self._take()[0] == "++" else -1.0, before=False)
        if target is not None:
            return target.get
        self._at = place
        return self._primary()

    def _target(self) -> Target | None:
        """Parses what can be assigned to; None if there is nothing of the kind here."""
        if self._is("$"):
            if self._kind in ("++", "--"):
                number: Evaluate = self._postfix()
            else:
                inner = self._target() if self._kind in ("name", "$") else None
                number = self._primary() if inner is None else inner.get
            return field_target(number)
        if self._kind != "name":
            return None
        name = self._take()[1]
        return element_target(name, self._subscript()) if self._is("[") else variable_target(name)

    def _subscript(self) -> Evaluate:
        parts = self._list("]")
        self._take("]")

        async def evaluate(run: Run) -> Value:
            return "\x1c".join([text_of(await one(run)) for one in parts])

        return evaluate

    def _primary(self) -> Evaluate:
        kind, text = self._take("number", "text", "regex", "call", "(", "-")
        if kind == "(":
            value = self._expression()
            self._take(")")
            return value
        if kind == "-":
            return operation("-", constant(0.0), self._unary())
        if kind == "call":
            return self._call(text)
        if kind == "regex":
            expression = compile_expression(text)

            async def matches(run: Run) -> Value:
                return float(expression.search(run.fields[0]) is not None)

            return matches
        return constant(float(text) if kind == "number" else text)

    def _call(self, name: str) -> Evaluate:
        self._take("(")
        if name == "split":
            return self._split()
        if name in ("sub", "gsub", "match"):
            return self._substitution(name)
        arguments = self._list(")")
        self._take(")")
        function = FUNCTIONS.get(name)
        if function is None:
            raise Usage(f"cmd. line:1: Call to undefined function {name}")

        async def evaluate(run: Run) -> Value:
            given = [await one(run) for one in arguments]
            if name == "length" and not given:
                given = [run.fields[0]]
            try:
                return function(given)
            except (IndexError, ValueError, OverflowError):
                raise Usage(f"cmd. line:1: {name}: invalid arguments") from None

        return evaluate

    def _pattern(self) -> Evaluate:
        if self._kind == "regex":
            return constant(self._take()[1])
        return self._expression()

    def _split(self) -> Evaluate:
        text = self._expression()
        self._take(",")
        name = self._take("name")[1]
        separator = self._pattern() if self._is(",") else None
        self._take(")")

        async def evaluate(run: Run) -> Value:
            by = text_of(run.get("FS") if separator is None else await separator(run))
            parts = await run.split(text_of(await text(run)), by)
            run.delete_elements(name)
            for number, one in enumerate(parts, 1):
                run.set_element(name, str(number), Field(one))
            return float(len(parts))

        return evaluate

    def _substitution(self, name: str) -> Evaluate:
        first = self._expression() if name == "match" else self._pattern()
        self._take(",")
        second = self._pattern() if name == "match" else self._expression()
        target = self._target() if self._is(",") else field_target(constant(0.0))
        self._take(")")
        if target is None:
            raise Usage(f"cmd. line:1: {name}: invalid arguments")

        async def evaluate(run: Run) -> Value:
            if name == "match":
                text = text_of(await first(run))
                found = compile_expression(text_of(await second(run))).search(text)
                start = text.find(found[0]) + 1 if found is not None else 0
                run.variables |= {"RSTART": float(start), "RLENGTH": float(len(found[0]) if found is not None else -1)}
                return float(start)
            replacement = text_of(await second(run))

            def replace(match: Any) -> str:
                return re.sub(r"\\&|&", lambda one: "&" if one[0] == "\\&" else match[0], replacement)

            pattern = compile_expression(text_of(await first(run)))
            text, count = await pattern.replace(text_of(await target.get(run)), replace, count=1 if name == "sub" else None)
            if count:
                await target.set(run, Field(text))
            return float(count)

        return evaluate


_ASSIGNMENTS: Final = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "^="})


#: Operators from the weakest to the strongest; ("",) is concatenation.
_LEVELS: Final[tuple[tuple[str, ...], ...]] = (
    ("||",), ("&&",), ("in",), ("~", "!~"), ("<", "<=", "==", "!=", ">", ">="), ("",), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip


async def _awk(program: Program) -> int:
    args, source = list(program.args), None
    run = Run(program, {"FS": " ", "OFS": " ", "ORS": "\n", "NR": 0.0, "FNR": 0.0, "SUBSEP": "\x1c"})
    run.variables["ENVIRON"] = {name: Field(value) for name, value in program.env.items()}
    while args and args[0].startswith("-") and args[0] != "-":
        flag = args.pop(0)
        if flag == "--":
            break
        value = flag[2:] or (args.pop(0) if args else "")
        if flag[1] == "F":
            run.variables["FS"] = "\t" if value == "t" else re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[0]), value)
        elif flag[1] == "v":
            name, _, text = value.partition("=")
            run.variables[name] = Field(text)
        elif flag[1] == "f":
            source = program.read_file(value).decode("utf-8", "surrogateescape")
        else:
            raise Usage(f"unrecognized option: {flag.lstrip('-')[:1]}")
    if source is None:
        if not args:
            raise Usage("usage: awk [OPTIONS] [AWK_PROGRAM] [FILE]...")
        source = args.pop(0)
    rules = _Parser(source).rules()
    try:
        await _run(run, rules, args)
    except Leave as leave:
        if leave.kind != "exit":
            raise Usage(f"cmd. line:1: {leave.kind} outside of a rule") from None
    try:
        for kind, _, action in rules:
            if kind == "END" and action is not None:
                await action(run)
    except Leave:
        pass
    await run.flush()
    return run.code or int(program.failed) * 2


async def _run(run: Run, rules: Sequence[tuple[str, Evaluate | None, Execute | None]], paths: Sequence[str]) -> None:
    for kind, _, action in rules:
        if kind == "BEGIN" and action is not None:
            await action(run)
    if all(kind == "BEGIN" for kind, _, _ in rules):
        return
    async for name, opened in run.program.inputs(paths):
        run.variables |= {"FILENAME": "" if name == "-" else name, "FNR": 0.0}
        async for raw in opened.lines():
            for counter in ("NR", "FNR"):
                run.variables[counter] = number_of(run.get(counter)) + 1
            await run.set_line(raw.decode("utf-8", "surrogateescape").removesuffix("\n"))
            try:
                for kind, pattern, action in rules:
                    if not kind and (pattern is None or is_true(await pattern(run))):
                        if action is None:
                            await run.print(run.fields[0] + text_of(run.get("ORS")))
                        else:
                            await action(run)
            except Leave as leave:
                if leave.kind != "next":
                    raise
            await run.flush()


COMMANDS: Final[dict[str, Command]] = {"awk": _awk}
