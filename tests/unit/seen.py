"""Objects, and rows as dictionaries, for tests of what the page shows."""

from __future__ import annotations

from typing import Any

from fakekube.powers.rows import CHANGES, OBJECTS, REQUESTS

__all__ = ["columns", "config_map", "deployment"]


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def deployment(name: str, replicas: int = 2) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}},
        },
    }


def columns(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns rows as dictionaries; columns of strings are those whose name is marked in the tables."""
    texts = {name[:-1] for name in (*CHANGES, *OBJECTS, *REQUESTS, "state*", "text*", "owner*") if name.endswith("*")}
    found = data["columns"]
    count = len(next(iter(found.values())))
    strings = data["strings"]
    return [
        {name: strings[values[place]] if name in texts else values[place] for name, values in found.items()}
        for place in range(count)
    ]
