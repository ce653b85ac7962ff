"""What differs between any two runs of a scenario, replaced by labels in order of appearance.

Replaced are uids, times, revisions (by their rank within the scenario), continue tokens, generated suffixes, allocated
addresses and ports, ages in tables and the prose of table columns; what a server tells in no certain order is sorted. All
else is compared as it is.
"""

from __future__ import annotations

import bisect
import json
import re
from typing import Any

from tests.differential.client import Exchange

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_CURRENT = re.compile(
    r"(resource version: \d+, current: |too old resource version: \d+ \(|in record \(|in the precondition \(|ResourceVersion in object meta: )\d+"
)
_AGES = {"Age", "Last Seen", "First Seen", "Duration", "Last Schedule", "Last Transition"}
_AGE = re.compile(r"(\d+[smhdy])+")
_RV_IN_TEXT = re.compile(r"""(resourceVersion\\*["']?: ?\\*["']?)\d+""")
_SELF_TYPE = re.compile(r"\bselfType\d+\b")
"""The type of a value with a rule, in the messages of CEL: named by the nanosecond."""
_ADDRESS = re.compile(r"\(0x[0-9a-f]{8,}\)")
"""A pointer of Go, in the messages of servers before 1.34."""
_CLUSTER_IP = re.compile(r"\b10\.0\.\d+\.\d+\b")
_SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_ALLOCATED = {"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"}


#: What every pattern above but for that of suffixes needs.
_DIGIT = re.compile(r"\d")

BOOKMARK = "BOOKMARK"


class Normaliser:
    """Replaces what differs between any two runs by labels given in order of appearance."""

    def __init__(self, transcript: list[Exchange]) -> None:
        self.uids: dict[str, str] = {}
        self.random: dict[str, str] = {}
        self.generated: re.Pattern[str] | None = None
        self.allocated: set[str] = set()
        self.age_columns: list[int] = []
        self._request_body: Any = None
        self._sent_text = ""
        versions: set[int] = set()
        for exchange in transcript:
            self._begin(exchange)
            self._collect(exchange.get("body"), versions)
            self._collect_allocated(exchange.get("body"))
            for event in exchange.get("events", ()):
                if isinstance(event, dict) and event.get("type") != BOOKMARK:
                    self._collect(event.get("object"), versions)
        self.versions = sorted(versions)
        self.rank = {str(v): f"<rv {i}>" for i, v in enumerate(self.versions, 1)}

    def _begin(self, exchange: Exchange) -> None:
        self._request_body, self._sent_text = exchange["request"].get("body"), ""

    def _sent(self) -> str:
        """The body of the request as JSON, which few exchanges ask for."""
        if not self._sent_text:
            self._sent_text = json.dumps(self._request_body)
        return self._sent_text

    def _collect(self, value: Any, versions: set[int]) -> None:
        """Gather object revisions and generated names (list revisions move with a server's own writes: left out)."""
        if isinstance(value, dict):
            meta = value.get("metadata")
            if isinstance(meta, dict):
                rv = meta.get("resourceVersion", "")
                if isinstance(rv, str) and rv.isdigit() and not is_list(value):
                    versions.add(int(rv))
                prefix, name = meta.get("generateName"), meta.get("name")
                if isinstance(prefix, str) and isinstance(name, str) and re.fullmatch(re.escape(prefix[:58]) + _SUFFIX, name):
                    self.random[name] = (
                        f"{prefix}<random {len(self.random) + 1}>" if name not in self.random else self.random[name]
                    )
            for item in value.values():
                self._collect(item, versions)
        elif isinstance(value, list):
            for item in value:
                self._collect(item, versions)

    def _collect_allocated(self, value: Any, key: str = "") -> None:
        if isinstance(value, dict):
            for k, item in value.items():
                self._collect_allocated(item, k)
        elif isinstance(value, list):
            for item in value:
                self._collect_allocated(item, key)
        elif key in _ALLOCATED and value not in ("", "None", None) and json.dumps(value) not in self._sent():
            self.allocated.add(json.dumps(value))

    def exchange(self, exchange: dict[str, Any]) -> dict[str, Any]:
        self._begin(exchange)
        body = exchange["request"].get("body")
        prefix = (
            body["metadata"].get("generateName") if isinstance(body, dict) and isinstance(body.get("metadata"), dict) else None
        )
        self.generated = re.compile(re.escape(prefix[:58]) + _SUFFIX) if isinstance(prefix, str) and prefix else None
        out: dict[str, Any] = {"status": exchange["status"], "headers": self.headers(exchange["headers"])}
        if "events" in exchange:
            out["events"] = [self.event(e) for e in exchange["events"]]
        if "body" in exchange:
            out["body"] = self.value(exchange["body"])
        return out

    def event(self, event: Any) -> Any:
        """An event of a watch. The revision of a bookmark moves with a server's own writes: what counts is which objects it is not before."""
        shown = self.value(event)
        if isinstance(event, dict) and event.get("type") == BOOKMARK:
            version = event["object"]["metadata"].get("resourceVersion", "")
            if version.isdigit():
                after = bisect.bisect(self.versions, int(version))
                shown["object"]["metadata"]["resourceVersion"] = f"<rv {after} or later>"
        return shown

    def headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {k: self.text(v, is_header=True) for k, v in headers.items()}

    def value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            listing = is_list(value)
            out = {}
            if value.get("kind") == "Status" and isinstance(value.get("details"), dict):
                value = in_order(value)
            for k, v in value.items():
                if k == "metadata" and isinstance(v, dict):
                    v = dict(v)
                    if listing and str(v.get("resourceVersion", "")).isdigit():
                        v["resourceVersion"] = "<list rv>"
                    if v.get("continue"):
                        v["continue"] = "<continue>"
                if k == "managedFields" and isinstance(v, list):  # ordered by the second of the write
                    v = sorted(
                        v,
                        key=lambda m: (
                            [str(m.get(f, "")) for f in ("operation", "manager", "apiVersion", "subresource")]
                            if isinstance(m, dict)
                            else [""]
                        ),
                    )
                if k == "rows" and isinstance(v, list):
                    v = self.without_ages(value.get("columnDefinitions"), v)
                if k == "columnDefinitions" and isinstance(v, list):  # prose is the server's own
                    v = [{**c, "description": "<prose>"} if isinstance(c, dict) and "description" in c else c for c in v]
                out[_UID.sub(self.label_of_uid, k) if len(k) >= 36 else k] = self.value(v, k)
            return out
        if isinstance(value, list):
            return [self.value(v, key) for v in value]
        if key in _ALLOCATED and json.dumps(value) in self.allocated:
            return "<allocated>"
        if isinstance(value, str):
            if key == "resourceVersion":
                return self.rank.get(value, value)
            return self.text(value)
        return value

    def label_of_uid(self, found: re.Match[str]) -> str:
        return self.uids.setdefault(found[0], f"<uid {len(self.uids) + 1}>")

    def without_ages(self, columns: Any, rows: list[Any]) -> list[Any]:
        """The rows with the cells that tell how old something is replaced (later events of a watch repeat no columns)."""
        if isinstance(columns, list) and columns:
            self.age_columns = [i for i, c in enumerate(columns) if isinstance(c, dict) and c.get("name") in _AGES]
        return [
            {
                **r,
                "cells": [
                    "<age>" if i in self.age_columns and isinstance(c, str) and _AGE.fullmatch(c) else c
                    for i, c in enumerate(r["cells"])
                ],
            }
            if isinstance(r, dict) and isinstance(r.get("cells"), list)
            else r
            for r in rows
        ]

    def text(self, text: str, *, is_header: bool = False) -> str:
        if len(text) >= 8 and _DIGIT.search(text):
            if "-" in text:
                text = _UID.sub(self.label_of_uid, text)
                text = _TIME.sub(lambda m: "<time>" if not m[1] else "<microtime>", text)
            if "ersion" in text or "in record (" in text or "in the precondition (" in text:
                text = _CURRENT.sub(r"\g<1><rv>", text)
                text = _RV_IN_TEXT.sub(r"\g<1><rv>", text)
            if "selfType" in text:
                text = _SELF_TYPE.sub("selfType<n>", text)
            if "\u00a0" in text:  # go-cmp indents with these in every other process
                text = text.replace("\u00a0", " ")
            if "(0x" in text:
                text = _ADDRESS.sub("(<address>)", text)
            if "10.0." in text:
                sent = "" if is_header else self._sent()
                text = _CLUSTER_IP.sub(
                    lambda m: "<cluster ip>" if m[0] not in sent or f'"{m[0]}"' in self.allocated else m[0], text
                )
        for name, label in self.random.items():
            if name in text:
                text = text.replace(name, label)
        if self.generated:
            text = self.generated.sub("<generated name>", text)
        return text


def in_order(status: dict[str, Any]) -> dict[str, Any]:
    """A Status whose causes, and the parts of the message made of them, are sorted: some come in the order of a Go map."""
    causes = status["details"].get("causes")
    if not isinstance(causes, list) or len(causes) < 2:
        return status
    ordered = sorted(causes, key=lambda c: json.dumps(c, sort_keys=True))
    head, bracket, rest = str(status.get("message", "")).partition("[")
    message = head + bracket + ", ".join(sorted(rest.removesuffix("]").split(", "))) if bracket else head
    return {**status, "message": message, "details": {**status["details"], "causes": ordered}}


def is_list(value: dict[str, Any]) -> bool:
    return str(value.get("kind", "")).endswith("List") or value.get("kind") == "Table" or isinstance(value.get("items"), list)


def normalise(transcript: list[dict[str, Any]]) -> list[dict[str, Any]]:
    normaliser = Normaliser(transcript)
    return [normaliser.exchange(e) for e in transcript]
