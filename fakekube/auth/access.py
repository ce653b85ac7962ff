"""Access control of one cluster, put together: who may do what, for the application and for the review kinds.

Reads service accounts, roles and bindings through the cluster's services, which in turn offer it to
strategies: the two are introduced to each other by `connect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from fakekube.auth import reviews
from fakekube.auth.authentication import Authenticator, StaticTokens
from fakekube.auth.authorization import Attributes, Decision, UnionAuthorizer, attributes_of, forbidden
from fakekube.auth.identities import ADMIN, MASTERS
from fakekube.auth.impersonation import HeadersOfRequest, Impersonation
from fakekube.auth.observing import Observed
from fakekube.auth.options import AuthenticationOptions
from fakekube.auth.rbac import BUCKETS, RBACAuthorizer
from fakekube.auth.service_accounts import ServiceAccountTokens
from fakekube.clock import Clock
from fakekube.registry.cluster_access import ClusterAccess
from fakekube.registry.request import Request, RequestInfo, User
from fakekube.streams import Source

__all__ = ["Access"]

DEFAULT_AUTHENTICATION: Final = AuthenticationOptions()


class Access:
    """See the module. `connect` must be called before anything else.

    Args:
        bucket: the store's buckets by name; their changes end what was decided before.
        clock: for when tokens expire.
        options: the flags about who asks. Raises OptionError for files that are not usable.
        authority: the cluster's own certificate authority, PEM, whose clients are believed; "" if it has none.
        nobody: who asks over plain http without an Authorization header.
    """

    def __init__(
        self,
        bucket: Callable[[str], Source],
        clock: Clock,
        *,
        options: AuthenticationOptions = DEFAULT_AUTHENTICATION,
        authority: str = "",
        nobody: User = ADMIN,
    ) -> None:
        self._bucket = bucket
        self._clock = clock
        self.options = options
        self.authority = authority
        self.signer = options.signer()
        audiences = tuple(options.api_audiences or self.signer.issuers)
        self.authenticator = Authenticator(
            clock, audiences, StaticTokens(options.tokens(), audiences), certificates=options.certificates(authority),
            request_headers=options.request_headers(), anonymous=options.anonymous(), nobody=nobody,
        )

    def connect(self, services: ClusterAccess) -> None:
        """Take the services through which objects are read."""
        self.authenticator.tokens = [
            ServiceAccountTokens(services, self.signer, self._clock, self.authenticator.audiences)
        ]
        self.roles = RBACAuthorizer(Observed(services, [self._bucket(name) for name in BUCKETS]))
        self.authorizer = UnionAuthorizer(self.roles)
        self._impersonation = Impersonation(self.authorizer)

    # ------------------------------------------------------------ requests

    def impersonated(self, headers: HeadersOfRequest, info: RequestInfo, user: User) -> User:
        """The user as whom a request counts. Raises StatusError 400 or 403."""
        found = self._impersonation.impersonated(headers, attributes_of(info, user))
        return user if found is None else found.user

    def require(self, info: RequestInfo, user: User) -> None:
        """Raises StatusError 403 if the user may not make this request."""
        if MASTERS in user.groups:
            return
        attributes = attributes_of(info, user)
        decision = self.roles.authorize(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)

    def require_creation(self, request: Request) -> None:
        """Raises StatusError 403 if the user of an update or apply that creates may not create."""
        info, user = request.info, request.user
        attributes = Attributes(
            user, "create", info.namespace, info.group, info.resource, info.subresource, info.name
        )
        decision = self.authorizer.authorize(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)

    # ------------------------------------------------------------ reviews

    @property
    def issuer(self) -> str:
        """The issuer URL of service account tokens."""
        return self.signer.issuer

    def sign(self, claims: dict[str, Any]) -> str:
        """A service account token with these claims."""
        return self.signer.sign(claims)

    def authorize(self, user: str, groups: Iterable[str], attributes: Mapping[str, Any]) -> tuple[bool, str]:
        """May this user do that? With the reason in words.

        `attributes` is the spec of an access review: its resourceAttributes or nonResourceAttributes count.
        """
        decision = self._decide({**attributes, "user": user, "groups": tuple(groups)})
        return decision.allowed, decision.reason

    def _decide(self, spec: Mapping[str, Any]) -> Decision:
        return self.authorizer.authorize(reviews.attributes_of_spec(spec))

    def authenticate(self, token: str, audiences: Sequence[str]) -> dict[str, Any]:
        """The status of a TokenReview: authenticated, user and audiences, or the error."""
        return reviews.token_review_status(self.authenticator, token, audiences)

    def rbac_rules(self, user: str, groups: Iterable[str], namespace: str) -> tuple[Sequence[Mapping[str, Any]], str]:
        """The rules of roles that apply to a user in a namespace, and what could not be resolved."""
        return self.roles.rules_for(User(user, groups=tuple(groups)), namespace)

    def rules(self, user: str, groups: Iterable[str], namespace: str) -> dict[str, Any]:
        """The status of a SelfSubjectRulesReview."""
        return reviews.rules_review_status(self.roles, User(user, groups=tuple(groups)), namespace)
