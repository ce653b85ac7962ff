"""Continue tokens of lists.

A token is base64url of {"v":"meta.k8s.io/v1","rv":REVISION,"start":KEY}; KEY is relative to the collection (the
namespace, if the list has one) and is the last key of the page with a NUL after it. Revision -1 is the current one. As in the
real server, keys from the watch cache have a leading slash, those from storage have none.

Specified by: "Retrieving large results sets in chunks" in Kubernetes API Concepts; k8s.io/apiserver/pkg/storage/continue.go.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
from dataclasses import dataclass
from typing import Any

from fakekube.apimachinery.codecs import json
from fakekube.apimachinery.errors import StatusError, status
from fakekube.base.golang.base64 import corrupt_input_error
from fakekube.base.golang.strconv import INT64, json_kind, unmarshal_error

#: The revision of a token that continues at the current revision.
INCONSISTENT = -1
_VERSION = "meta.k8s.io/v1"


@dataclass(slots=True, frozen=True)
class Continuation:
    """A position in a collection: items from `start` on (relative to the collection), at `revision`."""

    start: str
    revision: int


def encode(start: str, revision: int, *, leading_slash: bool) -> str:
    """Returns the token for a page that starts at the key `start`."""
    content = json.dumps({"v": _VERSION, "rv": revision, "start": f"/{start}" if leading_slash else start})
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decode(token: str, newest: int) -> Continuation:
    """Decodes a token. Raises StatusError 400 with the message of the real server.

    Args:
        token: what the client sent.
        newest: the revision of the cluster; if that is beyond int64, which no real one is, those of tokens may be, too.
    """
    content = _content(token)
    version, revision, start = content.get("v", ""), content.get("rv", 0), content.get("start", "")
    if revision not in INT64 and newest in INT64:
        raise _make_invalid_token(unmarshal_error(f"number {revision}", "int64", "continueToken.rv"))
    if version != _VERSION:
        raise _make_invalid_token(f"server does not recognize this encoded version {version}")
    if revision == 0:
        raise _make_invalid_token(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not start:
        raise _make_invalid_token(f"encoded start key empty (version {_VERSION})")
    key = start if start.startswith("/") else f"/{start}"
    if key.startswith("//") or posixpath.normpath(key) != key:  # a key cannot leave the collection
        raise _make_invalid_token(start)
    return Continuation(key[1:], revision)


def _content(token: str) -> dict[str, Any]:
    try:
        data = _decode_base64(token)
        content, _ = json.loads(data)
    except ValueError as problem:
        raise _make_invalid_token(str(problem)) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise _make_invalid_token(unmarshal_error(json_kind(content), "storage.continueToken"))
    for name, kind, go_type in (("v", str, "string"), ("rv", int, "int64"), ("start", str, "string")):
        value = content.get(name)
        if value is None:
            content.pop(name, None)
        elif not isinstance(value, kind) or isinstance(value, bool):
            number = f" {value}" if isinstance(value, float) else ""
            raise _make_invalid_token(unmarshal_error(json_kind(value) + number, go_type, f"continueToken.{name}"))
    return content


def _decode_base64(token: str) -> bytes:
    """Decodes unpadded base64url, strictly; raises ValueError with Go's message."""
    alphabet = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    data = token.replace("\n", "").replace("\r", "")
    for offset, character in enumerate(data):
        if character not in alphabet:
            raise ValueError(corrupt_input_error(offset))
    if len(data) % 4 == 1:
        raise ValueError(corrupt_input_error(len(data) - 1))
    try:
        return base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))
    except binascii.Error:  # pragma: no cover - the checks above leave nothing to complain of
        raise ValueError(corrupt_input_error(len(data))) from None


def _make_invalid_token(problem: str) -> StatusError:
    return status.bad_request(f"invalid continue token: continue key is not valid: {problem}")
