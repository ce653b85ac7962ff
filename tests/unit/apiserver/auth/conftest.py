"""Objects to be looked up, without a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest


class Objects:
    """Reads like the cluster's services, is written to by tests, and tells of changes like a bucket."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str, str], dict[str, Any]] = {}
        self._wakes: list[Callable[[], None]] = []
        self.listed = 0

    def put(self, group: str, plural: str, obj: dict[str, Any]) -> None:
        metadata = obj["metadata"]
        self._objects[group, plural, metadata.get("namespace", ""), metadata["name"]] = obj
        for wake in self._wakes:
            wake()

    def drop(self, group: str, plural: str, namespace: str, name: str) -> None:
        del self._objects[group, plural, namespace, name]
        for wake in self._wakes:
            wake()

    def get(self, group: str, plural: str, namespace: str, name: str) -> dict[str, Any] | None:
        return self._objects.get((group, plural, namespace, name))

    def list(self, group: str, plural: str, namespace: str = "") -> Iterator[dict[str, Any]]:
        self.listed += 1
        for key in sorted(self._objects):
            if key[:2] == (group, plural) and namespace in ("", key[2]):
                yield self._objects[key]

    def subscribe(self, wake: Callable[[], None]) -> None:
        self._wakes.append(wake)

    # ------------------------------------------------------------ roles and bindings

    def role(self, name: str, *rules: dict[str, Any], namespace: str = "") -> None:
        self._put_rbac("roles" if namespace else "clusterroles", name, namespace, {"rules": list(rules)})

    def bind(self, name: str, role: str, *subjects: str, namespace: str = "", kind: str = "ClusterRole") -> None:
        """Subjects are like "User:alice" or "ServiceAccount:ns/name"."""
        content = {
            "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
            "subjects": [_subject(*subject.split(":", 1)) for subject in subjects],
        }
        self._put_rbac("rolebindings" if namespace else "clusterrolebindings", name, namespace, content)

    def _put_rbac(self, plural: str, name: str, namespace: str, content: dict[str, Any]) -> None:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        self.put(GROUP, plural, {"metadata": metadata, **content})


GROUP = "rbac.authorization.k8s.io"


def _subject(kind: str, name: str) -> dict[str, str]:
    if kind != "ServiceAccount":
        return {"kind": kind, "name": name, "apiGroup": GROUP}
    namespace, _, account = name.rpartition("/")
    return {"kind": kind, "name": account, **({"namespace": namespace} if namespace else {})}


@pytest.fixture
def objects() -> Objects:
    return Objects()
