"""What the check says about clients whose requests do not have the token of their kubeconfig."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fakekube.checker.rules.credentials import RotatedToken


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([{"Authorization": "Bearer t1"}], "it ended"),
        ([{}, {"authorization": "Bearer other"}], "the client does not send the token of its tokenFile: it ended"),
        ([], "the client sends no request over TLS: it ended"),
    ],
)
def test_a_client_that_does_not_read_the_token_is_told_so(tmp_path: Path, headers: list[dict[str, str]], reason: str) -> None:
    (tmp_path / "token").write_text("t1\n")
    calls = [SimpleNamespace(headers=one) for one in headers]
    trial: Any = SimpleNamespace(folder=tmp_path, trace=SimpleNamespace(since=lambda: calls, count_since=lambda mark: len(calls)))
    assert RotatedToken().explain_before(trial, "it ended") == reason
