"""Command line flags and usage errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakekube.cli.arguments import Options, UsageError, parse


def test_default_options() -> None:
    assert parse(["serve"]) == Options(command="serve", host="127.0.0.1", port=0, profile="cluster")


def test_all_serve_flags_are_parsed() -> None:
    options = parse(
        [
            "serve",
            "--host",
            "::1",
            "--port",
            "8001",
            "--profile",
            "apiserver",
            "--tls",
            "--kubeconfig",
            "k",
            "--compaction-interval",
            "1m30s",
            "--feature-gates",
            "A=true,B=False",
            "--load",
            "a.yaml",
            "--load",
            "b",
        ]
    )
    assert options == Options(
        command="serve",
        host="::1",
        port=8001,
        profile="apiserver",
        tls=True,
        kubeconfig=Path("k"),
        compaction_interval=90.0,
        feature_gates={"A": True, "B": False},
        load=[Path("a.yaml"), Path("b")],
    )


def test_only_nodes_are_limited_to_the_size_of_a_cluster() -> None:
    assert parse(["serve", "--keep-requests", "20000"]).keep_requests == 20_000


def test_command_follows_double_dash() -> None:
    assert parse(["run", "--port", "0", "--", "go", "test", "--", "x"]).rest == ["go", "test", "--", "x"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("serve --port x", "argument --port: 'x' is not a port"),
        ("serve --speed 2", "--speed has no effect without --replay"),
        ("serve --port 70000", "'70000' is not a port"),
        ("serve --profile bare", "invalid choice: 'bare'"),
        ("serve --compaction-interval 5", "'5' is not a duration such as 5s or 1m30s"),
        ("serve --compaction-interval 0s", "'0s' is zero"),
        ("serve --feature-gates A", "'A' is not GATE=true or GATE=false"),
        ("serve --port ²", "'²' is not a port"),
        ("serve --nodes 5001", "'5001' is not a number of nodes from 0 to 5000"),
        ("serve --keep-requests -1", "argument --keep-requests: '-1' is not a number from 0 to 999999999"),
        ("serve --nope", "unrecognized arguments: --nope"),
        ("serve -- ls", "serve does not run a command; did you mean run?"),
        ("run", "run: a command is required after --"),
    ],
)
def test_usage_errors_are_one_line(line: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line.split())
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--disable", "traefik", "--help"]])
def test_the_help_of_server_starts_nothing(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["server", *words])
    assert ended.value.code == 0
    assert "/etc/rancher/k3s/k3s.yaml" in capsys.readouterr().out


def test_arguments_of_k3s_are_passed_on() -> None:
    assert parse(["server", "--disable", "traefik"]).rest == ["--disable", "traefik"]
