"""/healthz, /livez, /readyz in all their forms."""

from __future__ import annotations

import pytest

from fakekube.apimachinery import features
from fakekube.apiserver.http.healthz import CHECKS, checks_of


@pytest.mark.parametrize("name", CHECKS)
def test_health_endpoint_formats(call, name: str) -> None:
    assert call("GET", f"/{name}").body == b"ok"
    assert call("POST", f"/{name}").body == b"ok"
    lines = call("GET", f"/{name}", "verbose").body.decode().splitlines()
    assert lines == [*(f"[+]{check} ok" for check in checks_of(name, features.DEFAULT)), f"{name} check passed"]


def test_excluded_health_checks(call) -> None:
    body = call("GET", "/livez", "verbose&exclude=etcd&exclude=no&exclude=nope").body.decode()
    assert "[+]etcd excluded: ok\n" in body
    assert 'warn: some health checks cannot be excluded: no matches for "no","nope"\n' in body


def test_each_health_check_has_a_path(call) -> None:
    for name in CHECKS:
        checks = checks_of(name, features.DEFAULT)
        for check in checks:
            answer = call("GET", f"/{name}/{check}")
            assert (answer.status, answer.body) == (200, b"ok")
    assert call("GET", "/livez/shutdown").status == 404
    assert call("GET", "/livez/ping/").status == 404
