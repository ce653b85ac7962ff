"""Builds the API server of a group of another server, as extension API servers are built from k8s.io/apiserver.

Its kinds are custom resources in a store of its own. The API server of the cluster decides who may do what: tokens by
TokenReviews, requests by SubjectAccessReviews. Namespaces are those of the cluster.

Specified by: k8s.io/apiserver/pkg/server (options/recommended.go, config.go), pkg/authentication and pkg/authorization
(delegating.go), plugin/pkg/authenticator/token/webhook, plugin/pkg/authorizer/webhook.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

from fakekube.apiextensions.resource import resources_of
from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.data import API_EXTENSIONS
from fakekube.apis.rest.cluster_access import Decision
from fakekube.apis.rest.resource import Registry
from fakekube.apiserver.admission import Chain, Plugin
from fakekube.apiserver.admission.namespaces import NamespaceLifecycle
from fakekube.apiserver.aggregator.aggregator import Aggregator
from fakekube.apiserver.auth.access import Access
from fakekube.apiserver.auth.authorization import Attributes, ResolvedRules, UnionAuthorizer
from fakekube.apiserver.auth.identities import AuthenticatedToken, BadCredentialsError
from fakekube.apiserver.endpoints.request import User
from fakekube.apiserver.http import Application
from fakekube.apiserver.registry.generic.writes import document_at
from fakekube.apiserver.registry.scope import Backend, Settings
from fakekube.apiserver.registry.served_apis import RuntimeConfig
from fakekube.apiserver.registry.store_access import StoreAccess
from fakekube.apiserver.webhooks.services import ServiceResolver
from fakekube.base.clock import Clock
from fakekube.base.objects import Object
from fakekube.store import Store

#: The paths that need no authorization (RecommendedOptions).
_ALWAYS_ALLOWED: Final = frozenset({"/healthz", "/readyz", "/livez"})
_NO_BUILTINS: Final = RuntimeConfig((("api/all", False),))


@dataclass(slots=True, frozen=True)
class Group:
    """What an extension API server serves."""

    definitions: Sequence[Object]
    """A CustomResourceDefinition for each kind; versions are listed in this order. Those with a conversion webhook use
    `convert`."""
    convert: Callable[[Object, str], Object]
    """Converts an object to another apiVersion."""
    admission: Sequence[Plugin] = ()
    """Admission plugins beside NamespaceLifecycle."""


class ClusterClient(Protocol):
    """Asks the API server of the cluster."""

    def get(self, path: str) -> Object | None:
        """Returns an object; None if there is none. Raises OSError if it cannot be read."""

    def review(self, path: str, kind: str, spec: Object) -> Object:
        """Returns the status of a review. Raises OSError if the client may not create it."""


class _DelegatedTokens:
    """Authenticates tokens by TokenReviews; see `identities.TokenAuthenticator`."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def authenticate(self, token: str, audiences: Sequence[str]) -> AuthenticatedToken | None:
        try:
            found = self._client.review("/apis/authentication.k8s.io/v1/tokenreviews", "TokenReview", {"token": token})
        except OSError as error:
            raise BadCredentialsError(str(error.strerror)) from None
        if not found.get("authenticated"):
            return None
        user = found["user"]
        return AuthenticatedToken(
            User(user["username"], user.get("uid", ""), tuple(user.get("groups") or ()), user.get("extra") or {}),
            tuple(audiences),
        )


class _DelegatedAuthorizer:
    """Authorizes requests by SubjectAccessReviews; see `authorization.RuleResolver`."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def authorize(self, attributes: Attributes) -> Decision:
        """Returns the decision for the attributes of a request."""
        if attributes.path in _ALWAYS_ALLOWED and not attributes.is_resource_request:
            return Decision(allowed=True)
        user = attributes.user
        spec: Object = {"user": user.name, "groups": list(user.groups), "uid": user.uid}
        spec["extra"] = {name: list(values) for name, values in user.extra.items()}
        if attributes.is_resource_request:
            names = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
            spec["resourceAttributes"] = {name: getattr(attributes, name) for name in names}
        else:
            spec["nonResourceAttributes"] = {"path": attributes.path, "verb": attributes.verb}
        try:
            status = self._client.review("/apis/authorization.k8s.io/v1/subjectaccessreviews", "SubjectAccessReview", spec)
        except OSError as error:
            return Decision(allowed=False, error=str(error.strerror))
        allowed, denied = bool(status.get("allowed")), bool(status.get("denied"))
        return Decision(allowed, status.get("reason", ""), denied)

    def rules_for(self, user: User, namespace: str) -> ResolvedRules:
        """Returns no rules: there is no review that lists them."""
        return ResolvedRules()


class _Access(StoreAccess):
    """The access of strategies and admission, with the definitions of the group and the namespaces of the cluster."""

    def __init__(
        self, store: Store[Document], registry: Registry, settings: Settings, access: Access, client: ClusterClient
    ) -> None:
        super().__init__(store, registry, settings, access)
        self._client = client
        self.definitions: Mapping[str, Object] = {}

    def get(self, group: str, plural: str, namespace: str, name: str) -> Object | None:
        if (group, plural) == (API_EXTENSIONS, "customresourcedefinitions"):
            return self.definitions.get(name)
        if (group, plural) == ("", "namespaces"):
            try:
                return self._client.get(f"/api/v1/namespaces/{name}")
            except OSError:
                return None
        return super().get(group, plural, namespace, name)


class _ConversionCall:
    """Converts objects in place of a webhook; see `cluster_access.Call`."""

    def __init__(self, convert: Callable[[Object, str], Object]) -> None:
        self._convert = convert

    def __call__(self, client_config: Mapping[str, Any], review: Object, *, timeout: float = 30.0) -> Object:
        asked = review["request"]
        objects = [self._convert(one, asked["desiredAPIVersion"]) for one in asked["objects"]]
        response = {"uid": asked["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
        return {**review, "response": response}

    def begin(self, client_config: Mapping[str, Any], review: Object, *, timeout: float = 30.0) -> Callable[[], Object]:
        return partial(self, client_config, review, timeout=timeout)


def build_extension_server(group: Group, client: ClusterClient, clock: Clock) -> Application:
    """Returns the server of a group.

    Args:
        group: what it serves.
        client: asks the API server of the cluster.
        clock: that of the cluster.
    """
    settings = Settings(runtime_config=_NO_BUILTINS)
    store: Store[Document] = Store(now=clock.monotonic)
    call = _ConversionCall(group.convert)
    resources = [one for each in group.definitions for one in resources_of(each, call, settings.emulation)]
    registry = Registry([replace(one, implies_kind=True) for one in resources])
    access = Access(store.bucket, clock)
    services = _Access(store, registry, settings, weakref.proxy(access), client)
    services.definitions = {one["metadata"]["name"]: one for one in group.definitions}
    access.connect(services)
    access.authenticator.tokens = [_DelegatedTokens(client)]
    access.authenticator.nobody = None
    access.isolate()
    access.authorizer = UnionAuthorizer({"Webhook": _DelegatedAuthorizer(client)})
    _register(store, group.definitions)
    resolver = ServiceResolver(services, str)
    admission = Chain([NamespaceLifecycle(), *group.admission])
    backend = Backend(store, registry, clock, services, admission, settings)
    return Application(backend, access, Aggregator(store, services, clock, resolver))


def _register(store: Store[Document], definitions: Sequence[Object]) -> None:
    """Adds the APIServices of the group, in whose order discovery lists its versions."""
    bucket = store.bucket("apiservices.apiregistration.k8s.io")
    versions = {(one["spec"]["group"], version["name"]): None for one in definitions for version in one["spec"]["versions"]}
    for group, version in versions:
        name = f"{version}.{group}"
        spec = {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 15}
        bucket.commit(name, 0, partial(document_at, {"metadata": {"name": name}, "spec": spec}))
