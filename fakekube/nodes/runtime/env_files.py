"""Files with variables, to which `fileKeyRef` refers: lines `NAME='value'`, in which a value may have several lines.

Invariant: a file is invalid as a whole only up to the variable that is looked for.

Specified by: pkg/kubelet/util/env/env_util.go (ParseEnv).
"""

from __future__ import annotations


def read_variable(text: str, name: str) -> str:
    """Returns the value of a variable in a file; "" if it has none. Raises ValueError."""
    lines = iter(text.splitlines())
    for whole in lines:
        line = whole.lstrip(" \t")
        if not line or line.startswith("#"):
            continue
        variable, equals, value = line.partition("=")
        if not equals or not variable or variable != variable.rstrip(" \t"):
            raise ValueError(f"invalid environment variable format: {line}")
        if value.startswith((" ", "\t")):
            if variable == name:
                return ""
            continue
        if not value.startswith("'"):
            raise ValueError("value must be enclosed in single quotes")
        quoted = value[1:]
        while "'" not in quoted:
            following = next(lines, None)
            if following is None:
                raise ValueError("unclosed single quote")
            quoted += f"\n{following}"
        quoted, _, rest = quoted.partition("'")
        if rest.strip(" \t") and not rest.lstrip(" \t").startswith("#"):
            raise ValueError("unexpected content after closing quote")
        if variable == name:
            return quoted
    return ""
