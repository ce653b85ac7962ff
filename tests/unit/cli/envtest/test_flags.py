"""Parsing of flags as Go's pflag and flag packages do."""

from __future__ import annotations

import pytest

from fakekube.cli.envtest.command_line import FlagError, boolean, mapping, parse, read_value, seconds

SWITCHES = frozenset({"allow-privileged", "profiling"})
KNOWN = frozenset({"secure-port", "cert-dir", "v"})


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--secure-port=1"], {"secure-port": ["1"]}),
        (["--secure-port", "1"], {"secure-port": ["1"]}),
        (["-secure-port", "1"], {"secure-port": ["1"]}),
        (["-secure-port=1"], {"secure-port": ["1"]}),
        (["--secure_port=1"], {"secure-port": ["1"]}),
        (["--secure-port=1", "--secure-port", "2"], {"secure-port": ["1", "2"]}),
        (["--cert-dir="], {"cert-dir": [""]}),
        (["--cert-dir", ""], {"cert-dir": [""]}),
        (["--cert-dir", "--odd"], {"cert-dir": ["--odd"]}),
        (["--cert-dir=a=b"], {"cert-dir": ["a=b"]}),
        (["--allow-privileged"], {"allow-privileged": ["true"]}),
        (["--allow-privileged", "--secure-port", "1"], {"allow-privileged": ["true"], "secure-port": ["1"]}),
        (["--allow-privileged", "false"], {"allow-privileged": ["false"]}),
        (["--allow-privileged=false"], {"allow-privileged": ["false"]}),
        (["--allow-privileged", "word", "--profiling"], {"allow-privileged": ["true"], "profiling": ["true"]}),
        (["--new", "--profiling"], {"new": ["true"], "profiling": ["true"]}),
        (["--new", "value", "--profiling"], {"new": ["value"], "profiling": ["true"]}),
        (["--new=value"], {"new": ["value"]}),
        (["-v", "4"], {"v": ["4"]}),
        (["-v=4"], {"v": ["4"]}),
        (["-v4", "--profiling"], {"v": ["4"], "profiling": ["true"]}),
        (["--profiling", "--", "--cert-dir", "x"], {"profiling": ["true"]}),
        (["server", "-", ""], {}),
    ],
)
def test_flag_spellings_of_pflag(arguments: list[str], found: dict[str, list[str]]) -> None:
    assert parse(arguments, switches=SWITCHES, known=KNOWN) == found


def test_last_flag_without_value_is_rejected() -> None:
    with pytest.raises(FlagError, match="flag needs an argument: --secure-port"):
        parse(["--secure-port"], switches=SWITCHES, known=KNOWN)


def test_flag_values_are_parsed_by_field_type() -> None:
    assert read_value("a", "Sequence[str]", ["x,y", "z"]) == ("x", "y", "z")
    assert read_value("a", "bool | None", ["true", "0"]) is False
    assert read_value("a", "int", ["1", "2"]) == 2
    assert read_value("a", "float", ["1m30s"]) == 90.0
    assert read_value("a", "str", ["x,y"]) == "x,y"


def test_invalid_flag_values_have_the_messages_of_pflag() -> None:
    with pytest.raises(FlagError, match=r'invalid argument "x" for "--a" flag: strconv\.ParseBool: parsing "x": invalid syntax'):
        boolean("a", "x")
    with pytest.raises(FlagError, match='invalid argument "5" for "--a" flag: time: missing unit in duration "5"'):
        seconds("a", "5")
    with pytest.raises(FlagError, match='invalid argument "A" for "--a" flag: missing = in "A"'):
        mapping("a", ["A"])
