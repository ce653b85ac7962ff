"""The typed options of clusters: they are those that `Cluster` takes, type checkers refuse others, and so does the call."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster, TestCase
from fakekube.apiserver.options import flags
from fakekube.cluster_options import ClusterOptions, ServerFlags, unknown_options

#: Arguments of `Cluster` that forks and tests of the package itself use.
INTERNAL = {"self", "flags", "store", "idle", "clock"}
#: The modules that declare what a user's file names. The others, which a check of the whole package looks at, cost a process ten
#: seconds.
SEEN = ",".join(
    ["fakekube", "fakekube.cluster_options", "fakekube.cluster"]
    + [f"fakekube.cluster.{name}" for name in ("cluster", "observed", "served", "test_case")]
)
#: Type of a flag's field → types of the option.
TYPES = {
    "Sequence[str]": {"str | Sequence[str]"},
    "str": {"str", "Path | str"},
    "bool": {"bool"},
    "bool | None": {"bool"},
    "int": {"int"},
    "float": {"float"},
    "Fraction": {"float"},
}


def _types(options: Any) -> dict[str, str]:
    return {name: str(getattr(type_, "__forward_arg__", type_)) for name, type_ in options.__annotations__.items()}


def test_options_are_the_flags_of_the_server_with_their_types() -> None:
    known = _types(ServerFlags)
    wanted = {flag.name: str(flag.type) for flag in flags()}
    assert known.keys() == wanted.keys()
    assert {name: type_ for name, type_ in known.items() if type_ not in TYPES[wanted[name]]} == {}


def test_options_are_the_arguments_of_cluster_with_their_types() -> None:
    wanted = {name: one for name, one in inspect.signature(Cluster.__init__).parameters.items() if name not in INTERNAL}
    own = {name: type_ for name, type_ in _types(ClusterOptions).items() if name not in _types(ServerFlags)}
    assert own == {name: str(one.annotation).removesuffix(" | None") for name, one in wanted.items()}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("token_auth_fle", "unknown option: 'token_auth_fle' (did you mean 'token_auth_file'?)"),
        ("token-auth-file", "unknown option: 'token-auth-file' (did you mean 'token_auth_file'?)"),
        ("profil", "unknown option: 'profil' (did you mean 'profile'?)"),
        ("zzz", "unknown option: 'zzz'"),
    ],
)
def test_an_unknown_option_is_an_error_that_names_the_nearest(name: str, text: str) -> None:
    assert unknown_options([name]) == text
    wrong: dict[str, Any] = {name: "x"}
    with pytest.raises(TypeError) as error:
        Cluster(**wrong)
    assert str(error.value) == text


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"version": 1.35}, TypeError, "option 'version' is 1.35, a float; it takes str"),
        ({"nodes": "3"}, TypeError, "option 'nodes' is '3', a str; it takes int"),
        ({"http2": "no"}, TypeError, "option 'http2' is 'no', a str; it takes bool"),
        ({"feature_gates": "A=true"}, TypeError, "option 'feature_gates' is 'A=true', a str; it takes Mapping[str, bool]"),
        ({"profile": "apiservr"}, LookupError, "the profile 'apiservr' is not known; known: apiserver, envtest, cluster"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_the_option(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as found:
        Cluster(**options)
    assert str(found.value) == text


def test_type_checkers_refuse_misspelt_options_and_wrong_values(tmp_path: Path) -> None:
    file = tmp_path / "user.py"
    file.write_text(
        "from pathlib import Path\n"
        "from fakekube import Cluster, ClusterOptions, TestCase\n"
        "Cluster(token_auth_file=Path('a'), authorization_mode='Node,RBAC', tls=True)\n"
        "options: ClusterOptions = {'profile': 'apiserver', 'anonymous_auth': False}\n"
        "Cluster(**options)\n"
        "class Test(TestCase):\n"
        "    cluster_options = {'profile': 'apiserver'}\n"
        "Cluster(token_auth_fle='a')  # line 8\n"
        "Cluster(anonymous_auth='no')  # line 9\n"
        "wrong: ClusterOptions = {'profil': 'apiserver'}  # line 10\n"
        "class Wrong(TestCase):\n"
        "    cluster_options = {'profil': 'apiserver'}  # line 12\n"
    )
    settings = tmp_path / "mypy.ini"
    settings.write_text(
        f"[mypy]\nstrict = true\n[mypy-fakekube.*]\nfollow_imports = skip\n[mypy-{SEEN}]\nfollow_imports = normal\n"
    )
    command = ["mypy", "--config-file", str(settings), "--cache-dir", str(tmp_path / "cache"), str(file)]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    errors = [line for line in done.stdout.splitlines() if "user.py" in line and "error:" in line]
    assert [line.split(":")[1] for line in errors] == ["8", "9", "10", "12"], done.stdout
    assert TestCase.cluster_options == {}
