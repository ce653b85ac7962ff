"""Makes a state that a cluster of another minor saved one of this minor, as an upgrade or a downgrade of an API server does that
keeps its etcd: fields that the minor does not know are dropped, and kinds that it does not know are refused.

Invariant: keys, uids and revisions stay; a custom resource stays as it is.

Specified by: how kube-apiserver decodes what it reads from etcd (k8s.io/apiserver/pkg/storage/etcd3); a kind that is not
registered cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fakekube.apimachinery import data
from fakekube.apimachinery.schema.decode import decode
from fakekube.apimachinery.schema.model import Type
from fakekube.apis.rest.resource import Resource

Value = Mapping[str, Any]

_AUTO_MANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
_SHOWN: Final = 3
"""The largest number of objects of an unknown kind that an error names."""


class OtherMinorError(ValueError):
    """The state is one of an unknown minor, or has objects of kinds that the minor does not know, which the text names."""


def adapt_state(state: Value, version: str, resources: Iterable[Resource]) -> Value:
    """Returns the state as one of a minor.

    Args:
        state: the document of a state.
        version: the minor of the cluster that loads it.
        resources: the built-in resources that it serves.

    Raises OtherMinorError.
    """
    if state.get("version") == version:
        return state
    if state.get("version") not in data.RELEASES:
        raise OtherMinorError(f"the state is one of Kubernetes {state.get('version')}; known: {', '.join(data.RELEASES)}")
    known = list(resources)
    types = {resource.bucket: resource.storage_type for resource in known if not resource.custom}
    served = {(resource.group, resource.version) for resource in known}
    rows: Mapping[str, list[dict[str, Any]]] = state["resources"]
    buckets = {resource.plural: resource.bucket for resource in known if not resource.custom}
    custom = {row["key"] for row in rows.get(buckets["customresourcedefinitions"], ())}
    readable = types.keys() | custom
    _refuse_unknown({name: found for name, found in rows.items() if found and name not in readable}, version)
    made = {name: [_row(row, types.get(name)) for row in found] for name, found in rows.items() if name in readable}
    services_bucket = buckets["apiservices"]
    services = made.get(services_bucket, [])
    stale = {row["key"] for row in services if _is_stale(row["object"], served)}
    made[services_bucket] = [row for row in services if row["key"] not in stale]
    adapted_state = {**state, "version": version, "resources": made}
    if state.get("history") is not None:
        pasts = state["history"]["resources"]
        kept = {
            name: {**past, **{part: [_row(row, types.get(name)) for row in past[part]] for part in ("before", "events")}}
            for name, past in pasts.items()
            if name in readable and name != services_bucket
        }
        adapted_state["history"] = {**state["history"], "resources": kept}
    return adapted_state


def _refuse_unknown(unknown: Mapping[str, list[dict[str, Any]]], version: str) -> None:
    if unknown:
        texts = [f"{name} ({', '.join(row['key'] for row in rows[:_SHOWN])})" for name, rows in sorted(unknown.items())]
        raise OtherMinorError(f"Kubernetes {version} does not serve {', '.join(texts)}")


def _is_stale(service: Value, served: set[tuple[str, str]]) -> bool:
    """Reports whether an APIService is one that the server makes itself, of a group version that it does not serve."""
    is_own = _AUTO_MANAGED in (service["metadata"].get("labels") or {})
    return is_own and (service["spec"].get("group", ""), service["spec"]["version"]) not in served


def _row(row: Value, type_: Type | None) -> dict[str, Any]:
    if type_ is None or "object" not in row:
        return dict(row)
    return {**row, "object": decode(type_, row["object"])}
