"""The operations of a cluster by document: built-in group versions, custom ones, and paths without resources.

The names of documents are the paths below /openapi/v3. The documents of built-in resources are the same in every cluster
with the same emulation and --runtime-config.

Specified by: k8s.io/kube-aggregator/pkg/controllers/openapiv3 (which documents there are).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from fakekube.apimachinery import data
from fakekube.apimachinery.features import Emulation
from fakekube.apis.rest.resource import Resource
from fakekube.apiserver.endpoints import negotiation
from fakekube.apiserver.http import documents
from fakekube.apiserver.http.openapi.descriptions import operations_described
from fakekube.apiserver.http.openapi.operations import META, Operation, Paths, discovery_operation, operations_of
from fakekube.apiserver.registry import builtin
from fakekube.apiserver.registry.served_apis import RuntimeConfig

_JSON: Final = (negotiation.JSON,)


def document_name(group: str, version: str = "") -> str:
    """Returns the document name of a group or group version, such as `apis/apps/v1`."""
    root = f"apis/{group}" if group else "api"
    return f"{root}/{version}" if version else root


def beside_resources(groups: Iterable[str]) -> dict[str, Paths]:
    """Returns the documents of paths without resources: discovery, the OpenID issuer, the version."""
    configuration, keys, version = documents.CONFIGURATION_PATH, documents.KEYS_PATH, "/version"
    info = "k8s.io/apimachinery/pkg/version.Info"
    found: dict[str, Paths] = {
        configuration[1:]: {f"{configuration}/": [_get("getServiceAccountIssuerOpenIDConfiguration", "WellKnown", "", _JSON)]},
        keys[1:]: {f"{keys}/": [_get("getServiceAccountIssuerOpenIDKeyset", "openid", "", (documents.KEYS_TYPE,))]},
        version[1:]: {f"{version}/": [replace(_get("getCodeVersion", "version", info, _JSON), consumes=_JSON)]},
        "api": {"/api/": [discovery_operation("", "", META + "APIVersions", "APIVersions")]},
        "apis": {"/apis/": [_apis()]},
    }
    for group in groups:
        operation = discovery_operation(group, "", META + "APIGroup", "APIGroup")
        found[document_name(group)] = {f"/apis/{group}/": [operation]}
    return found


_TEXTS: Final = {
    "getServiceAccountIssuerOpenIDConfiguration":
        "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
    "getServiceAccountIssuerOpenIDKeyset":
        "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
    "getCodeVersion": "get the version information for this server",
}  # fmt: skip


def _get(identifier: str, tag: str, go_type: str, produces: tuple[str, ...]) -> Operation:
    return Operation("get", identifier, tag, ((200, go_type),), produces, consumes=(), description=_TEXTS[identifier])


def _apis() -> Operation:
    offer = negotiation.Offer().media_types
    answers = ((200, META + "APIGroupList"),)
    return Operation("get", "getAPIVersions", "apis", answers, offer, consumes=offer, description="get available API versions")


@cache
def builtin_paths(emulation: Emulation, config: RuntimeConfig) -> Mapping[str, Paths]:
    """Returns the documents of the built-in resources that a server serves, by name."""
    facts, resources = emulation.facts, builtin.resources(emulation, config)
    found = beside_resources(dict.fromkeys(resource.group for resource in resources if resource.group))
    for resource in resources:
        name = document_name(resource.group, resource.version)
        if name not in found:
            index = discovery_operation(resource.group, resource.version, META + "APIResourceList", "APIResources")
            found[name] = {f"/{name}/": [index]}
        found[name].update(_builtin(facts, resource))
    return {name: operations_described(emulation.version, paths) for name, paths in found.items()}


def _builtin(facts: data.Facts, resource: Resource) -> Paths:
    go_type = _go_type(facts, resource.group, resource.version, resource.kind)
    below = {
        name: _go_type(facts, subresource.gvk.group, subresource.gvk.version, subresource.gvk.kind)
        for name, subresource in resource.subresources.items()
    }
    listed = _list_type_of(go_type) if "list" in resource.verbs else ""
    deletes_object = "delete" in resource.verbs and resource.strategy.delete_returns_object
    return operations_of(resource, go_type, listed, go_type if deletes_object else META + "Status", below)


def _list_type_of(go_type: str) -> str:
    """Returns the list type of a type."""
    return f"{go_type}List"


def _go_type(facts: data.Facts, group: str, version: str, kind: str) -> str:
    row = facts.kind(group, version, kind)
    return row.type if row is not None else ""


def custom_paths(resource: Resource, type_name: str, list_type_name: str) -> Paths:
    """Returns the operations of a custom resource by path; the names are those of the schemas of its objects and lists."""
    scale = "k8s.io/api/autoscaling/v1.Scale"
    below = {name: scale if name == "scale" else type_name for name in resource.subresources}
    return operations_of(resource, type_name, list_type_name, META + "Status", below)
