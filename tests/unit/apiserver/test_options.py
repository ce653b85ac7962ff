"""Flags that exclude or require each other, and those that would be ignored, are errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster
from fakekube.apiserver.auth.options import OptionError


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"authorization_webhook_config_file": "x"}, "cannot specify --authorization-webhook-config-file without mode Webhook"),
        (
            {"authorization_config": "x", "authorization_mode": ["RBAC"]},
            "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-\\* flags are defined",
        ),
        ({"tls_cert_file": "x"}, "missing filename for serving cert"),
        ({"tls_private_key_file": "x"}, "missing filename for serving cert"),
        (
            {"requestheader_allowed_names": ["a"]},
            "--requestheader-allowed-names has no effect without --requestheader-client-ca-file",
        ),
        ({"audit_webhook_mode": "blocking"}, "--audit-webhook-mode has no effect without --audit-webhook-config-file"),
        ({"audit_log_format": "legacy"}, "--audit-log-format has no effect without --audit-log-path"),
        ({"goaway_chance": 0.01}, "--goaway-chance has no effect without TLS"),
        (
            {"insecure_anonymous_admin": True},
            "--insecure-anonymous-admin has no effect for a server that only this machine can reach",
        ),
        ({"insecure_anonymous_admin": True, "host": "0.0.0.0", "tls": True}, "--insecure-anonymous-admin has no effect with TLS"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_flags_that_would_be_ignored_are_errors(flags: dict[str, Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=problem):
        Cluster(profile="apiserver", **flags)
