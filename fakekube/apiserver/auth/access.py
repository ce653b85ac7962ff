"""Authenticates and authorizes the requests of one cluster, for the application and for the review kinds.

Service accounts, roles and bindings are read through `ClusterAccess`, which in turn offers `Access` to strategies: `connect`
links the two. The resources on which cached decisions depend are observed, so that a change invalidates the caches.

The review kinds (decoding, validation, the requesting user) are resources like others; here their specs and statuses are
converted from and to users, attributes and rules, as plain JSON data in the schema of the kinds.

Specified by: k8s.io/kubernetes/pkg/registry/authentication/tokenreview, …/authorization/subjectaccessreview,
…/selfsubjectrulesreview and …/authorization/util.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, Protocol

from fakekube.apimachinery import features
from fakekube.apimachinery.data import RBAC
from fakekube.apimachinery.errors import status
from fakekube.apimachinery.features import Emulation
from fakekube.apimachinery.selectors import SelectorError, from_label_selector
from fakekube.apimachinery.selectors.fields import FieldRequirement
from fakekube.apimachinery.selectors.labels import LabelRequirement
from fakekube.apis.rest.cluster_access import ClusterAccess, Decision
from fakekube.apis.well_known import SYSTEM_PRIVILEGED_GROUP
from fakekube.apiserver.auth import node
from fakekube.apiserver.auth.authentication import DEFAULT_TOKENS, Anonymous, Authenticator, StaticTokens
from fakekube.apiserver.auth.authorization import (
    Attributes,
    Observed,
    Rule,
    RuleResolver,
    Selectors,
    UndecidedError,
    attributes_of,
    forbidden,
)
from fakekube.apiserver.auth.authorizers import Factories, authorizer_of
from fakekube.apiserver.auth.browsers import BrowserGuard
from fakekube.apiserver.auth.identities import ADMIN, BadCredentialsError, TokenAuthenticator
from fakekube.apiserver.auth.impersonation import HeadersOfRequest, Impersonated, Impersonation
from fakekube.apiserver.auth.node import NodeAuthorizer, NodeGraph
from fakekube.apiserver.auth.options import AuthenticationOptions, AuthorizationOptions, OptionError
from fakekube.apiserver.auth.rbac import BUCKETS, RBACAuthorizer
from fakekube.apiserver.auth.service_accounts import ServiceAccountTokens
from fakekube.apiserver.endpoints.request import Request, RequestInfo, User
from fakekube.base.clock import Clock
from fakekube.base.golang.net import is_loopback
from fakekube.net.streams import Source

_FILE_GATE: Final = "StructuredAuthenticationConfiguration"
_ANONYMOUS_GATE: Final = "AnonymousAuthConfigurableEndpoints"

_RESOURCE_RULE = ("verbs", "apiGroups", "resources", "resourceNames")
_PATH_RULE = ("verbs", "nonResourceURLs")


def user_info(user: User) -> dict[str, Any]:
    """Returns a user as an authentication.k8s.io UserInfo."""
    info = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in sorted(user.extra.items())},
    }
    return {key: value for key, value in info.items() if value}


def token_review_status(authenticator: Authenticator, token: str, audiences: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the status of a TokenReview: the token is authenticated as the Authorization header of a request."""
    try:
        found = authenticator.authenticate_bearer(token, audiences)
    except BadCredentialsError as problem:
        return {"user": {}, "error": str(problem)}
    if found is None:
        return {"user": {}}
    return {"authenticated": True, "user": user_info(found.user), "audiences": list(found.audiences)}


def attributes_of_spec(spec: Mapping[str, Any]) -> Attributes:
    """Returns the attributes of the spec of a SubjectAccessReview."""
    extra = spec.get("extra") or {}
    user = User(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)
    resource = spec.get("resourceAttributes")
    if resource is None:
        path = spec.get("nonResourceAttributes") or {}
        return Attributes(user, path.get("verb", ""), path=path.get("path", ""), is_resource_request=False)
    return Attributes(
        user,
        resource.get("verb", ""),
        resource.get("namespace", ""),
        resource.get("group", ""),
        resource.get("resource", ""),
        resource.get("subresource", ""),
        resource.get("name", ""),
        version=resource.get("version", ""),
        selectors=_selectors_of_spec(resource),
    )


def _selectors_of_spec(resource: Mapping[str, Any]) -> Selectors | None:
    """Returns the selectors of resourceAttributes, without invalid requirements."""
    fields, labels = resource.get("fieldSelector") or {}, resource.get("labelSelector") or {}
    if not fields and not labels:
        return None
    return Selectors(
        fields.get("rawSelector", ""),
        labels.get("rawSelector", ""),
        list(filter(None, map(_field_requirement, fields.get("requirements") or ()))),
        list(filter(None, map(_label_requirement, labels.get("requirements") or ()))),
    )


def _field_requirement(requirement: Mapping[str, Any]) -> FieldRequirement | None:
    operators: Mapping[str, Literal["=", "!="]] = {"In": "=", "NotIn": "!="}
    operator, values = operators.get(requirement.get("operator", "")), list(requirement.get("values") or ())
    if operator is None or len(values) != 1:
        return None
    return FieldRequirement(requirement.get("key", ""), operator, values[0])


def _label_requirement(requirement: Mapping[str, Any]) -> LabelRequirement | None:
    try:
        requirements = from_label_selector({"matchExpressions": [requirement]}).requirements
    except SelectorError:
        return None
    return next(iter(requirements), None)


def rules_review_status(authorizer: RuleResolver, user: User, namespace: str) -> dict[str, Any]:
    """Returns the status of a SelfSubjectRulesReview of a user."""
    found = authorizer.rules_for(user, namespace)
    status: dict[str, Any] = {
        "resourceRules": [_fields_of_rule(rule, _RESOURCE_RULE) for rule in found.rules if rule.get("resources")],
        "nonResourceRules": [_fields_of_rule(rule, _PATH_RULE) for rule in found.rules if rule.get("nonResourceURLs")],
        "incomplete": found.incomplete,
    }
    if found.problem:
        status["evaluationError"] = found.problem
    return status


def _fields_of_rule(rule: Rule, members: Sequence[str]) -> dict[str, Any]:
    """Returns these fields of a rule; verbs are included even if empty."""
    return {member: list(rule.get(member) or ()) for member in members if rule.get(member) or member == "verbs"}


_DEFAULT_AUTHENTICATION: Final = AuthenticationOptions()
_DEFAULT_AUTHORIZATION: Final = AuthorizationOptions()


_DECISION: Final = "authorization.k8s.io/decision"
_REASON: Final = "authorization.k8s.io/reason"


class Annotated(Protocol):
    """Accepts audit annotations."""

    def annotate(self, key: str, value: str) -> None:
        """Adds an annotation."""


def _creation_of(request: Request) -> Attributes:
    """Returns what is authorized when a request also creates."""
    return replace(attributes_of(request.info, request.user), verb="create")


class Access:
    """Access control of one cluster. `connect` must be called first.

    Args:
        bucket: returns a bucket of the store by name; its changes invalidate cached decisions.
        clock: the clock for the expiration of tokens.
        options: the authentication flags. Raises OptionError for invalid files.
        authorization: the authorization flags.
        authority: the cluster's own certificate authority for clients, PEM; "" if it has none.
        listens_on: the host on which the server listens.
        emulation: the minor and the gates of the server.
    """

    def __init__(
        self,
        bucket: Callable[[str], Source],
        clock: Clock,
        *,
        options: AuthenticationOptions = _DEFAULT_AUTHENTICATION,
        authorization: AuthorizationOptions = _DEFAULT_AUTHORIZATION,
        authority: str = "",
        listens_on: str = "127.0.0.1",
        emulation: Emulation = features.DEFAULT,
    ) -> None:
        self._bucket = bucket
        self._clock = clock
        self.options = options
        self._authorization = authorization
        self.authority = authority
        self.signer = options.signer()
        audiences = tuple(options.api_audiences or self.signer.issuers)
        is_local = is_loopback(listens_on)
        self.authenticator = Authenticator(
            clock,
            audiences,
            StaticTokens(options.tokens(well_known=is_local), audiences),
            certificates=options.certificates(authority),
            request_headers=options.request_headers(),
            nobody=ADMIN if is_local or options.insecure_anonymous_admin else None,
            guard=BrowserGuard(listens_on, options.allowed_hosts),
        )
        self._issuers, self.authenticator.anonymous = _authenticators_of(options, clock, audiences, emulation)

    def isolate(self) -> None:
        """Makes the tokens of other clusters of this process invalid here, the well-known ones included; before any use."""
        for token in DEFAULT_TOKENS:
            self.authenticator.static.remove(token)
        self.signer.isolate()

    def connect(self, services: ClusterAccess) -> None:
        """Sets the access to stored objects."""
        self.authenticator.tokens = [
            ServiceAccountTokens(services, self.signer, self._clock, self.authenticator.audiences),
            *self._issuers,
        ]
        self.roles = RBACAuthorizer(Observed(services, [self._bucket(name) for name in BUCKETS]))
        self._services = services
        factories: Factories = {"RBAC": lambda: self.roles, "Node": self._node_authorizer}
        self.authorizer = authorizer_of(self._authorization, factories, self._clock)
        self._impersonation = Impersonation(self.authorizer)

    def _node_authorizer(self) -> NodeAuthorizer:
        graph = NodeGraph(Observed(self._services, [self._bucket(name) for name in node.BUCKETS]))
        role = self._services.get(RBAC, "clusterroles", "", "system:node") or {}
        selective = self._services.emulation.enabled("AuthorizeNodeWithSelectors")
        return NodeAuthorizer(graph, role.get("rules") or (), selective=selective)

    # --- Requests -----------------------------------------------------------------------------------------------------

    def impersonate(self, headers: HeadersOfRequest, info: RequestInfo, user: User) -> Impersonated | None:
        """Returns the impersonated user, if any. Raises StatusError 400 or 403."""
        return self._impersonation.impersonate(headers, attributes_of(info, user))

    def require(self, info: RequestInfo, user: User, audit: Annotated | None = None) -> None:
        """Authorizes a request; adds the decision and its reason to `audit`.

        Raises StatusError 403 if it is forbidden, UndecidedError if an authorizer fails.
        """
        if SYSTEM_PRIVILEGED_GROUP in user.groups:
            if audit is not None:
                audit.annotate(_DECISION, "allow")
                audit.annotate(_REASON, "")
            return
        attributes = attributes_of(info, user)
        decision = self.authorizer.authorize(attributes)
        undecided = not decision.allowed and bool(decision.error)
        if audit is not None:
            if not undecided:
                audit.annotate(_DECISION, "allow" if decision.allowed else "forbid")
            audit.annotate(_REASON, "internal error" if undecided else decision.reason)
        if undecided:
            raise UndecidedError(decision.error)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)

    def require_creation(self, request: Request) -> None:
        """Raises StatusError 403 if an update or apply creates an object and its user may not create."""
        attributes = _creation_of(request)
        decision = self.authorizer.authorize(attributes)
        if decision.allowed:
            return
        if decision.error:
            raise status.internal(decision.error)
        raise forbidden(attributes, decision.reason)

    def may_create(self, request: Request) -> tuple[bool, str]:
        """Reports whether the user of a request may also create what it is about; and if not, the reason."""
        decision = self.authorizer.authorize(_creation_of(request))
        return decision.allowed, decision.reason

    # --- Reviews ------------------------------------------------------------------------------------------------------

    @property
    def issuer(self) -> str:
        """The issuer URL of service account tokens."""
        return self.signer.issuer

    def sign(self, claims: dict[str, Any]) -> str:
        """Signs a service account token with these claims."""
        return self.signer.sign(claims)

    def authorize(self, user: str, groups: Iterable[str], attributes: Mapping[str, Any]) -> tuple[bool, str]:
        """Decides whether the user may perform the request of an access review; returns the decision with the reason.

        `attributes` is the spec of an access review: its resourceAttributes or nonResourceAttributes count.
        """
        decision = self.decide({**attributes, "user": user, "groups": tuple(groups)})
        return decision.allowed, decision.reason

    def decide(self, spec: Mapping[str, Any]) -> Decision:
        """Returns the decision of the authorizers for the spec of a SubjectAccessReview."""
        return self.authorizer.authorize(attributes_of_spec(spec))

    def authenticate(self, token: str, audiences: Sequence[str]) -> dict[str, Any]:
        """Returns the status of a TokenReview: authenticated, user and audiences, or the error."""
        return token_review_status(self.authenticator, token, audiences)

    def rbac_rules(self, user: str, groups: Iterable[str], namespace: str) -> tuple[Sequence[Mapping[str, Any]], str]:
        """Returns the RBAC rules for a user in a namespace, and the resolution error."""
        found = self.roles.rules_for(User(user, groups=tuple(groups)), namespace)
        return found.rules, found.problem

    def rules(self, user: str, groups: Iterable[str], namespace: str) -> dict[str, Any]:
        """Returns the status of a SelfSubjectRulesReview."""
        return rules_review_status(self.authorizer, User(user, groups=tuple(groups)), namespace)


def _authenticators_of(
    options: AuthenticationOptions, clock: Clock, audiences: Sequence[str], emulation: Emulation
) -> tuple[list[TokenAuthenticator], Anonymous]:
    """Returns the authenticators of the AuthenticationConfiguration, and its anonymous settings. Raises OptionError."""
    allowed = Anonymous(options.anonymous_auth is not False)
    if not options.authentication_config:
        return [], allowed
    if not emulation.enabled(_FILE_GATE):
        raise OptionError(f"set --feature-gates={_FILE_GATE}=true to use authentication-config file")
    # Only clusters with such a file import these modules.
    from fakekube.apiserver.auth.authentication_configuration import read_authentication_configuration
    from fakekube.apiserver.auth.jwt import JWTAuthenticator

    issuers, anonymous = read_authentication_configuration(
        options.authentication_config, options.service_account_issuer, allows_anonymous=emulation.enabled(_ANONYMOUS_GATE)
    )
    if anonymous is not None and options.anonymous_auth is not None:
        raise OptionError(
            "--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file"
        )
    return [JWTAuthenticator(issuer, clock, audiences) for issuer in issuers], anonymous or allowed
