"""CustomResourceDefinitions and custom resources of scenarios, and notes in a transcript."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.pacing import until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DRY = {"dryRun": "All"}
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def obj(properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A schema of an object."""
    return {"type": "object", **({"properties": properties} if properties else {}), **more}


def definition(
    client: Client,
    schema: Any = None,
    version: dict[str, Any] | None = None,
    *,
    plural: str = "widgets",
    kind: str = "Widget",
    names: dict[str, Any] | None = None,
    prefix: str = "g",
    **spec: Any,
) -> dict[str, Any]:
    """A definition in a group of the scenario's own, whose name begins with `prefix`; `version`, `names` and `spec` add to its parts."""
    group = f"{prefix}{client.id}.example.com"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **(names or {})},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or ANY}, **(version or {})}
            ],
            **spec,
        },
    }


def condition(client: Client, name: str, kind: str) -> str:
    conditions = client.get(f"{CRDS}/{name}", silent=True).get("status", "conditions", default=None) or []
    return next((c["status"] for c in conditions if c["type"] == kind), "")


def where(client: Client, body: dict[str, Any], version: str = "", ns: bool = True) -> str:
    """The path of a definition's collection."""
    spec = body["spec"]
    version = version or next(v["name"] for v in spec["versions"] if v["served"])
    space = f"/namespaces/{client.ns}" if ns and spec["scope"] == "Namespaced" else ""
    return f"/apis/{spec['group']}/{version}{space}/{spec['names']['plural']}"


def wait_until_served(client: Client, body: dict[str, Any]) -> None:
    """Wait until the definition is established and each of its served versions answers a list, if only by a failed conversion."""
    until(lambda: condition(client, body["metadata"]["name"], "Established") == "True")
    for v in body["spec"]["versions"]:
        if v["served"]:
            until(lambda: client.get(where(client, body, v["name"]), silent=True).status in (200, 500), 5)


@contextlib.contextmanager
def served(client: Client, body: dict[str, Any], silent: bool = True) -> Iterator[str]:
    """Create the definition, wait until its resource answers, yield the collection's path; delete it in the end."""
    reply = client.post(CRDS, body, silent=silent)
    name = body["metadata"]["name"]
    try:
        if reply.status == 201:
            wait_until_served(client, body)
        yield where(client, body)
    finally:
        everywhere = where(client, body, ns=False)
        for item in (
            client.get(everywhere, silent=True).get("items", default=None) or []
        ):  # a finalizer would hold up the server's cleaning for minutes
            meta = item.get("metadata", {})
            if meta.get("finalizers"):
                home = where(client, body) if meta.get("namespace", client.ns) == client.ns else everywhere
                client.patch(f"{home}/{meta.get('name')}", {"metadata": {"finalizers": None}}, MERGE, silent=True)
        client.delete(f"{CRDS}/{name}", silent=True)
        if reply.status == 201:
            until(lambda: client.get(f"{CRDS}/{name}", silent=True).status == 404)


def make(body: dict[str, Any], name: str = "one", version: str = "v1", **fields: Any) -> dict[str, Any]:
    """A custom resource of the definition."""
    spec = body["spec"]
    return {"apiVersion": f"{spec['group']}/{version}", "kind": spec["names"]["kind"], "metadata": {"name": name}, **fields}


def note(client: Client, what: str, value: Any) -> None:
    """Put something that was seen outside a recorded request into the transcript."""
    client.transcript.append(
        {
            "request": {"method": "NOTE", "path": what, "query": None, "accept": "", "type": "", "body": None},
            "status": 0,
            "headers": {},
            "body": value,
        }
    )


STRING: dict[str, Any] = {"type": "string"}
