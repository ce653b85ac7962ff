"""Implements user impersonation: the Impersonate-… headers and their authorization.

There are several modes. The constrained ones (for a node that a service account runs on, any node, a service account,
any other user) authorize twice: the request while impersonating (`impersonate-on:MODE:VERB`), and the impersonated
user (`impersonate:MODE`). The legacy mode authorizes only the verb `impersonate`. The first mode that allows wins; if
none does, the response is the error of the first. The mode by which a user succeeded last is tried first
(`Impersonation` caches it), so it also determines the text of a later error.

Specified by: k8s.io/apiserver/pkg/endpoints/filters/impersonation (mode.go, constrained_impersonation.go, cache.go).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError, StatusError, status
from fakekube.apimachinery.errors import field as fields
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import DOMAIN_PREFIXED_PATH
from fakekube.apis.well_known import NODE_NAME_KEY, NODES_GROUP, SYSTEM_PRIVILEGED_GROUP, service_account_groups
from fakekube.apiserver.auth import identities
from fakekube.apiserver.auth.authorization import Attributes, Authorizer, UndecidedError, forbidden
from fakekube.apiserver.auth.certificates import unescape_extra_key
from fakekube.apiserver.endpoints.request import User
from fakekube.base.caches import BoundedCache
from fakekube.base.golang.strconv import go_quote

_USER: Final = "impersonate-user"
_UID: Final = "impersonate-uid"
_GROUP: Final = "impersonate-group"
_EXTRA_PREFIX: Final = "impersonate-extra-"

_AUTHENTICATION: Final = "authentication.k8s.io"
_ASSOCIATED_KEYS: Final = "authentication.kubernetes.io/associated-node-keys"
_ALL: Final = "*"
#: From this number of values on, one check for all of them comes first.
_MANY: Final = 4
#: The maximal number of users whose latest mode is cached.
_REMEMBERED: Final = 10_000


#: Without this gate there is the legacy mode only, with texts of its own.
_CONSTRAINED: Final = "ConstrainedImpersonation"
#: The number of the first minor that refuses headers without a user with a Status.
_REFUSED_WITH_STATUS_SINCE: Final = 35


class HeadersOfRequest(Protocol):
    """The headers of a request; names are lower case."""

    def get(self, name: str, default: str = "") -> str:
        """Returns the first value of a header."""

    def all(self, name: str) -> Sequence[str]:
        """Returns all values of a header."""

    def __contains__(self, name: object) -> bool:
        """Reports whether there is a header of this name."""

    def __iter__(self) -> Iterator[str]:
        """Iterates over the header names."""


@dataclass(slots=True)
class _Wanted:
    """The requested user."""

    name: str
    uid: str = ""
    groups: list[str] = field(default_factory=list)
    extra: dict[str, list[str]] = field(default_factory=dict)

    @property
    def name_only(self) -> bool:
        return not (self.uid or self.groups or self.extra)


@dataclass(slots=True, frozen=True)
class Impersonated:
    """The impersonated user; `constraint` is the verb of the constrained mode that allowed it, or ""."""

    user: User
    constraint: str


class Impersonation:
    """Authorizes and performs the impersonation of users in one cluster.

    Args:
        authorizer: authorizes impersonation.
    """

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._latest: BoundedCache[str, _Mode] = BoundedCache(_REMEMBERED)
        """By which mode a user name succeeded last."""

    def impersonate(self, headers: HeadersOfRequest, attributes: Attributes) -> Impersonated | None:
        """Returns the impersonated user; None without impersonation headers. `attributes` are those of the request.

        Raises StatusError 400 for groups without a user, 403 if impersonation is forbidden.
        """
        wanted = _get_requested_user(headers)
        if wanted is None:
            return None
        caller = attributes.user
        if not features.current().enabled(_CONSTRAINED):
            return Impersonated(_UnconstrainedCheck(_LEGACY, self._authorizer, caller).run(wanted, attributes), "")
        latest = self._latest.get(caller.name)
        first: StatusError | None = None
        for mode in _MODES if latest is None else (latest, *(mode for mode in _MODES if mode is not latest)):
            if not mode.applies(wanted, caller):
                continue
            try:
                user = _Check(mode, self._authorizer, caller).run(wanted, attributes)
            except StatusError as problem:
                first = first or problem
                continue
            if mode is not latest:
                self._remember(caller.name, mode)
            return Impersonated(user, mode.verb if mode.name else "")
        assert first is not None  # the legacy mode always applies
        raise first

    def _remember(self, name: str, mode: _Mode) -> None:
        self._latest.add(name, mode)


# --- The headers ------------------------------------------------------------------------------------------------------


def _get_requested_user(headers: HeadersOfRequest) -> _Wanted | None:
    """Returns the requested user; None without impersonation headers."""
    wanted = _Wanted(headers.get(_USER, ""), headers.get(_UID, ""))
    if _GROUP in headers:
        wanted.groups += headers.all(_GROUP)
    for name in headers:
        if name.startswith(_EXTRA_PREFIX):
            key = unescape_extra_key(name[len(_EXTRA_PREFIX) :])
            wanted.extra.setdefault(key, []).extend(headers.all(name))
    if wanted.name:
        return wanted
    if wanted.name_only:
        return None
    emulation = features.current()
    if emulation.enabled(_CONSTRAINED):
        raise status.bad_request(f"requested {_go_syntax(wanted)} without impersonating a user name")
    text = f"requested {_as_references(wanted)} without impersonating a user"
    raise status.bad_request(text) if emulation.minor >= _REFUSED_WITH_STATUS_SINCE else UndecidedError(text)


def _as_references(wanted: _Wanted) -> str:
    """Returns what a user is asked for as Go prints a list of ObjectReferences."""
    extra = [(key, value) for key, values in wanted.extra.items() for value in values]
    references = [f"{{Group  {group}    }}" for group in wanted.groups]
    references += [f"{{UserExtra  {value}  {_AUTHENTICATION}/v1  {key}}}" for key, value in extra]
    references += [f"{{UID  {wanted.uid}  {_AUTHENTICATION}/v1  }}"] if wanted.uid else []
    return f"[{' '.join(references)}]"


def _go_syntax(wanted: _Wanted) -> str:
    groups = "[]string(nil)"
    if wanted.groups:
        groups = f"[]string{{{', '.join(map(go_quote, wanted.groups))}}}"
    extra = "map[string][]string(nil)"
    if wanted.extra:
        pairs = (
            f"{go_quote(key)}:[]string{{{', '.join(map(go_quote, values))}}}" for key, values in sorted(wanted.extra.items())
        )
        extra = f"map[string][]string{{{', '.join(pairs)}}}"
    who = f"Name:{go_quote(wanted.name)}, UID:{go_quote(wanted.uid)}, Groups:{groups}, Extra:{extra}"
    return f"&user.DefaultInfo{{{who}}}"


# --- The modes --------------------------------------------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class _Mode:
    """An impersonation mode; `name` is "" for the legacy one."""

    name: str
    applies: Callable[[_Wanted, User], bool]

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"

    @property
    def group(self) -> str:
        """The API group of the resources users and groups."""
        return _AUTHENTICATION if self.name else ""


def _associated_node(wanted: _Wanted, user: User) -> bool:
    node = identities.node_name(wanted.name) if wanted.name_only else None
    if node is None or identities.service_account(user.name) is None:
        return False
    return list(user.extra.get(NODE_NAME_KEY, ())) == [node]


def _arbitrary_node(wanted: _Wanted, _user: User) -> bool:
    return wanted.name_only and identities.node_name(wanted.name) is not None


def _service_account(wanted: _Wanted, _user: User) -> bool:
    return wanted.name_only and identities.service_account(wanted.name) is not None


def _other_user(wanted: _Wanted, _user: User) -> bool:
    return identities.node_name(wanted.name) is None and identities.service_account(wanted.name) is None


_ASSOCIATED: Final = "associated-node"
_MODES: Final = (
    _Mode(_ASSOCIATED, _associated_node),
    _Mode("arbitrary-node", _arbitrary_node),
    _Mode("serviceaccount", _service_account),
    _Mode("user-info", _other_user),
    _Mode("", lambda _wanted, _user: True),
)
_LEGACY: Final = _MODES[-1]


class _Check:
    """The check of one mode for one request."""

    def __init__(self, mode: _Mode, authorizer: Authorizer, caller: User) -> None:
        self._mode = mode
        self._authorizer = authorizer
        self._caller = caller
        if mode.name == _ASSOCIATED:
            self._caller = replace(caller, extra={_ASSOCIATED_KEYS: sorted(caller.extra)})

    def run(self, wanted: _Wanted, request: Attributes) -> User:
        """Returns the impersonated user. Raises StatusError 403."""
        if self._mode.name:
            verb = f"impersonate-on:{self._mode.name}:{request.verb}"
            self._require(replace(request, user=self._caller, verb=verb))
        groups = self._allow_name(wanted)
        if wanted.uid:
            self._require(self._question("uids", wanted.uid, _AUTHENTICATION))
        if wanted.groups:
            self._allow_groups(wanted.groups)
        if wanted.extra:
            self._allow_extra(wanted.extra)
        return User(wanted.name, wanted.uid, _complete(wanted.name, groups), wanted.extra)

    def _question(self, resource: str, name: str, group: str, *, namespace: str = "", subresource: str = "") -> Attributes:
        return Attributes(self._caller, self._mode.verb, namespace, group, resource, subresource, name)

    def _require(self, attributes: Attributes) -> None:
        decision = self._authorizer.authorize(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)

    def _allows(self, attributes: Attributes) -> bool:
        return self._authorizer.authorize(attributes).allowed

    def _allow_name(self, wanted: _Wanted) -> Sequence[str]:
        """Authorizes the user name; returns the groups of the impersonated user."""
        groups: Sequence[str] = wanted.groups
        question = self._question("users", wanted.name, self._mode.group)
        node = identities.node_name(wanted.name) if self._mode.name else None
        if node is not None:
            name = _ALL if self._mode.name == _ASSOCIATED else node
            question = self._question("nodes", name, self._mode.group)
            groups = (NODES_GROUP,)
        account = identities.service_account(wanted.name)
        if account is not None:
            question = self._question("serviceaccounts", account[1], self._mode.group, namespace=account[0])
            groups = groups or service_account_groups(account[0])
        self._require(question)
        return groups

    def _allow_groups(self, groups: Sequence[str]) -> None:
        if self._mode.name:
            if "" in groups:
                question = self._question("groups", "", self._mode.group)
                raise forbidden(question, "impersonating the empty string group is not allowed")
            if SYSTEM_PRIVILEGED_GROUP in groups:
                question = self._question("groups", SYSTEM_PRIVILEGED_GROUP, self._mode.group)
                raise forbidden(question, "impersonating the system:masters group is not allowed")
            if len(groups) >= _MANY and self._allows(self._question("groups", _ALL, self._mode.group)):
                return
        for group in groups:
            self._require(self._question("groups", group, self._mode.group))

    def _allow_extra(self, extra: Mapping[str, Sequence[str]]) -> None:
        if self._mode.name:
            problem = _extra_problem(extra)
            if problem:
                raise forbidden(self._question("userextras", "", _AUTHENTICATION), problem)
            many = len(extra) >= _MANY or sum(map(len, extra.values())) >= _MANY
            everything = self._question("userextras", _ALL, _AUTHENTICATION, subresource=_ALL)
            if many and self._allows(everything):
                return
        for key, values in extra.items():
            for value in values:
                self._require(self._question("userextras", value, _AUTHENTICATION, subresource=key))


class _UnconstrainedCheck(_Check):
    """The check of a server without constrained impersonation, which asks for the uid last."""

    def run(self, wanted: _Wanted, request: Attributes) -> User:
        groups = self._allow_name(wanted)
        self._allow_groups(wanted.groups)
        self._allow_extra(wanted.extra)
        if wanted.uid:
            self._require(self._question("uids", wanted.uid, _AUTHENTICATION))
        return User(wanted.name, wanted.uid, _complete(wanted.name, groups), wanted.extra)


def _extra_problem(extra: Mapping[str, Sequence[str]]) -> str:
    """Returns the error of the constrained modes for invalid extra keys and values."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        errors = _prefixed_path_errors("extra.key", key)
        if errors:
            return f"impersonating an invalid key in extra is not allowed: {fields.aggregate(errors)}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {go_quote(key)}"
        if not values:
            return "impersonating empty values in extra is not allowed"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def _prefixed_path_errors(path: str, key: str) -> list[FieldError]:
    """Validates a domain-prefixed key (IsDomainPrefixedPath)."""
    domain, _, rest = key.partition("/")
    if not domain or not rest:
        return [fields.invalid(path, key, DOMAIN_PREFIXED_PATH)]
    errors = [fields.invalid(path, domain, problem) for problem in names.dns_subdomain(domain, False)]
    if not re.fullmatch(_PATH, rest):
        errors.append(fields.invalid(path, rest, names.regex_text("Invalid path", _PATH)))
    return errors


def _complete(name: str, groups: Sequence[str]) -> tuple[str, ...]:
    """Returns the groups with system:authenticated or system:unauthenticated added."""
    if name == identities.ANONYMOUS.name:
        last = identities.UNAUTHENTICATED
    elif identities.UNAUTHENTICATED in groups:
        return tuple(groups)
    else:
        last = identities.AUTHENTICATED
    return tuple(groups) if last in groups else (*groups, last)
