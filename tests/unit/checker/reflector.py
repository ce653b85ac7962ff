"""A client of a few lines for the tests of the checker: a function that watches ConfigMaps and annotates them with their keys.

`reflector("W1")` forgets what rule W1 asks for. `reflector("same")` writes the same text for all objects.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

PATH = "/api/v1/namespaces/default/configmaps"


def reflector(defect: str = "") -> Callable[[Path, threading.Event], None]:
    """Returns the function; each call of it is a client of its own."""
    return lambda kubeconfig, stopped: Reflector(kubeconfig, defect).run(stopped)


class Reflector:
    """One client."""

    def __init__(self, kubeconfig: Path, defect: str) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self._host = config["clusters"][0]["cluster"]["server"].partition("//")[2]
        self._defect = defect
        self._reached = ""
        """The revision of the last event, or of the list."""
        self._keys: dict[str, set[str]] = {}
        """The keys that each object has had."""

    def run(self, stopped: threading.Event) -> None:
        revision, delay = "", 0.1
        while not stopped.is_set():
            try:
                revision = revision or self._list()
                revision, told = self._watch(revision, stopped)
                delay = 0.1 if told else delay
            except TimeoutError:  # a watch without events for so long, on a busy machine
                revision = revision if self._defect == "W5" else self._reached
            except (OSError, http.client.HTTPException, ValueError):
                if self._defect == "W8":
                    raise
            stopped.wait(delay * random.uniform(1.0, 2.0))
            delay = min(2 * delay, 5.0)

    def _list(self) -> str:
        found = self._call("GET", PATH)
        for item in found["items"]:
            self._react(item)
        self._reached = str(found["metadata"]["resourceVersion"])
        return self._reached

    def _watch(self, revision: str, stopped: threading.Event) -> tuple[str, bool]:
        """Returns the revision to go on from ("": list again), and whether there was an event."""
        told, asked = False, revision
        connection = http.client.HTTPConnection(self._host, timeout=10)
        try:
            connection.request("GET", f"{PATH}?watch=1&resourceVersion={revision}", headers={"User-Agent": "reflector/1"})
            response = connection.getresponse()
            if response.status >= 400:
                return "", told
            while not stopped.is_set() and (line := response.readline()):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return (revision if self._defect == "W1" else ""), told
                revision = self._reached = event["object"]["metadata"]["resourceVersion"]
                told = True
                if event["type"] != "DELETED":
                    self._react(event["object"])
        finally:
            connection.close()
        return (asked if self._defect == "W5" else revision), told

    def _react(self, obj: dict[str, Any]) -> None:
        metadata = obj["metadata"]
        keys = set(obj.get("data", ()))
        if self._defect == "S3":
            keys |= self._keys.get(metadata["name"], set())
            self._keys[metadata["name"]] = keys
        seen = "yes" if self._defect == "same" else " ".join(sorted(keys))
        if seen != metadata.get("annotations", {}).get("seen"):
            self._call("PATCH", f"{PATH}/{metadata['name']}", {"metadata": {"annotations": {"seen": seen}}})

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection(self._host, timeout=10)
        try:
            headers = {"User-Agent": "reflector/1", "Content-Type": "application/merge-patch+json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise http.client.HTTPException(f"{response.status} {response.reason}")
            return json.loads(response.read())
        finally:
            connection.close()
