"""The pages for operators, and the issuer's documents."""

from __future__ import annotations

import json

import pytest

STRUCTURED = "application/json;g=config.k8s.io;v=v1beta1;as={}"


@pytest.mark.parametrize("page", ["statusz", "flagz"])
def test_debug_pages_as_text_or_structured(call, page: str) -> None:
    text = call("GET", f"/{page}", accept="text/plain")
    assert text.header("Content-Type") == "text/plain; charset=utf-8"
    assert text.body.startswith(f"\napiserver {page}\n".encode())
    structured = call("GET", f"/{page}", accept=STRUCTURED.format(page.title()))
    assert structured.json["kind"] == page.title()
    assert structured.json["apiVersion"] == "config.k8s.io/v1beta1"
    assert call("GET", f"/{page}", accept="application/json").status == 406


def test_log_verbosity_endpoint(call) -> None:
    put = call("PUT", "/debug/flags/v", body=b"4")
    assert (put.status, put.body) == (200, b"successfully set klog.logging.verbosity to 4\n")
    assert call("PUT", "/debug/flags/v", body=b"x").status == 400
    assert call("GET", "/debug/flags/v").status == 406


def test_pprof_endpoints(call) -> None:
    assert call("GET", "/debug/pprof").header("Location") == "/debug/pprof/"
    assert call("GET", "/debug/pprof/").status == 200
    assert call("GET", "/debug/pprof/heap").status == 404


def test_openid_configuration_and_jwks(call) -> None:
    document = call("GET", "/.well-known/openid-configuration").json
    assert document["jwks_uri"] == "https://127.0.0.1:6443/openid/v1/jwks"
    keys = call("GET", "/openid/v1/jwks", accept="application/jwk-set+json")
    assert keys.header("Cache-Control") == "public, max-age=3600"
    (key,) = json.loads(keys.body)["keys"]
    assert key["alg"] in document["id_token_signing_alg_values_supported"]


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "text/plain; charset=utf-8"),
        ("*/*", "text/plain; charset=utf-8"),
        ("application/json,*/*", "text/plain; charset=utf-8"),
        (f"{STRUCTURED.format('Statusz')},*/*", STRUCTURED.format("Statusz")),
        (f"*/*,{STRUCTURED.format('Statusz')}", STRUCTURED.format("Statusz")),
        (f"{STRUCTURED.format('Statusz')};q=0.1,text/plain", "text/plain; charset=utf-8"),
        ("*/*;g=config.k8s.io;v=v1beta1;as=Statusz", STRUCTURED.format("Statusz")),
        ("*/*;as=Table;g=meta.k8s.io;v=v1", None),
        ("text/plain;stream=watch", None),
        ("text/html", None),
    ],
)
def test_content_negotiation_of_statusz(call, accept: str, chosen: str | None) -> None:
    answer = call("GET", "/statusz", accept=accept)
    assert (answer.status, answer.header("Content-Type")) == ((200, chosen) if chosen else (406, "application/json"))
