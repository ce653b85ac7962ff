"""Validation of webhook URLs and service references."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakekube.apis.validation.webhooks import service_errors, url_errors


@pytest.mark.parametrize(
    "url", ["https://h", "HTTPS://h:8443/a%20b", "https://[::1]:443/x", "https://ü.example", "https://h:/", "https://a_b/c?"]
)
def test_valid_webhook_urls(url: str) -> None:
    assert url_errors(url, "url") == []


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://h%zz", 'parse "https://h%zz": invalid URL escape "%zz"'),
        ("https://h/%z", 'parse "https://h/%z": invalid URL escape "%z"'),
        ("https://h#%", 'parse "https://h#%": invalid URL escape "%"'),
        ("://h", 'parse "://h": missing protocol scheme'),
        ("a:b:c/d", None),
        ("1a:b", 'parse "1a:b": first path segment in URL cannot contain colon'),
        ("https://[::1", "parse \"https://[::1\": missing ']' in host"),
        ("https://a[::1]", 'parse "https://a[::1]": invalid IP-literal'),
        ("https://h:1:2", 'parse "https://h:1:2": invalid port ":1:2" after host'),
        ("https://h x", 'parse "https://h x": invalid character " " in host name'),
        ("https://u[@h", 'parse "https://u[@h": net/url: invalid userinfo'),
        ("https://h\n", 'parse "https://h\\n": net/url: invalid control character in URL'),
    ],
)
def test_invalid_webhook_urls_are_rejected(url: str, problem: str | None) -> None:
    errors = url_errors(url, "url")
    unparsable = [error.detail for error in errors if error.detail.startswith("url must be a valid URL: ")]
    wanted = [] if problem is None else [f"url must be a valid URL: {problem}; desired format: https://host[/path]"]
    assert unparsable == wanted
    assert errors


def test_forbidden_webhook_url_parts_are_rejected() -> None:
    texts = [error.body for error in url_errors("http://u:p@h/x?q=1#f", "url")]
    assert [text.partition(": ")[2] for text in texts] == [
        "\"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
        '"u:p": user information is not permitted in the URL',
        '"f": fragments are not permitted in the URL',
        '"q=1": query parameters are not permitted in the URL',
    ]


@given(st.text())
def test_arbitrary_url_text_does_not_raise(text: str) -> None:
    url_errors(text, "url")


@pytest.mark.parametrize(
    ("path", "details"),
    [
        ("", []),
        ("/", []),
        ("/a/b.c/", []),
        ("//", ["segment[0] may not be empty"]),
        ("/a//b", ["segment[1] may not be empty"]),
        ("a/b", ["must start with a '/'", "segment[0] may not be empty"]),
    ],
)
def test_service_reference_paths(path: str, details: list[str]) -> None:
    service = {"name": "s", "namespace": "n", "port": 443, "path": path}
    assert [error.detail for error in service_errors(service, "service")] == details


def test_service_reference_requires_name_and_namespace() -> None:
    assert [error.path for error in service_errors({"name": "s", "port": 443}, "x")] == ["x.namespace"]
    assert [error.path for error in service_errors({"name": "s", "port": 443}, "x", swapped=True)] == ["x.name"]
