"""Reads files of the group apiserver.config.k8s.io: AuthenticationConfiguration, for JWTs and anonymous requests.

Files are decoded strictly, as kube-apiserver does: unknown fields and fields of the wrong type are errors; both are detected
from the fields that the reader of a kind requests. An invalid file raises an `OptionError` that names the flag.

Specified by: k8s.io/apiserver/pkg/apis/apiserver (load, v1, v1beta1, AuthenticationConfiguration, validation/validation.go)
and pkg/authentication/cel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from fakekube.apimachinery.cel.compilation import Environment, ExpressionError, token_claims, token_user
from fakekube.apimachinery.cel.parser import parse
from fakekube.apimachinery.cel.syntax import Identifier, Select, descendants
from fakekube.apimachinery.codecs import DecodeError, yaml
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import aggregate, duplicate, forbidden, invalid, required, too_many
from fakekube.apimachinery.schema.strict import strict_decoding_error
from fakekube.apis.validation.checks import domain_prefixed_path, repeated_indices
from fakekube.apiserver.auth.authentication import Anonymous
from fakekube.apiserver.auth.jwt import ClaimMapping, Expression, JWTConfiguration
from fakekube.apiserver.auth.options import OptionError, read_text
from fakekube.base.golang.timestamps import parse_duration

GROUP = "apiserver.config.k8s.io"


class Section:
    """A mapping in a configuration file, with its path.

    Fields are taken out by name and type; `done` reports the remaining ones as unknown.
    """

    def __init__(self, value: Any, path: str, flag: str) -> None:
        if not isinstance(value, dict):
            raise OptionError(f"--{flag}: {path or 'the file'} is not a mapping")
        self._left = dict(value)
        self.path = path
        self._flag = flag

    def _take(self, name: str, kind: type[Any], default: Any) -> Any:
        value = self._left.pop(name, None)
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise OptionError(f"--{self._flag}: {self.path_of(name)} is not a {_NAMES[kind]}")
        return value

    def path_of(self, name: str) -> str:
        """Returns the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        """Reports whether the field is set and not null."""
        return self._left.get(name) is not None

    def text(self, name: str) -> str:
        """Takes a string; "" if it is not set."""
        return str(self._take(name, str, ""))

    def flag(self, name: str) -> bool:
        """Takes a boolean; False if it is not set."""
        return bool(self._take(name, bool, False))

    def texts(self, name: str) -> Sequence[str]:
        """Takes a list of strings."""
        values = self._take(name, list, [])
        if not all(isinstance(value, str) for value in values):
            raise OptionError(f"--{self._flag}: {self.path_of(name)} is not a list of strings")
        return tuple(values)

    def seconds(self, name: str) -> float:
        """Takes a Go duration and returns seconds; 0 if it is not set."""
        text = self.text(name)
        try:
            return parse_duration(text) / 1e9 if text else 0.0
        except ValueError as error:
            raise OptionError(f"--{self._flag}: {self.path_of(name)}: {error}") from None

    def section(self, name: str) -> Section:
        """Takes a mapping; an empty one if it is not set."""
        return Section(self._left.pop(name, None) or {}, self.path_of(name), self._flag)

    def sections(self, name: str) -> Sequence[Section]:
        """Takes a list of mappings."""
        values = self._take(name, list, [])
        return [Section(value, f"{self.path_of(name)}[{index}]", self._flag) for index, value in enumerate(values)]

    def ignore(self, name: str) -> None:
        """Takes a field that has no effect here."""
        self._left.pop(name, None)

    def require_no_other_fields(self) -> None:
        """Raises OptionError if there are unknown fields."""
        if self._left:
            unknown = (f'unknown field "{self.path_of(name)}"' for name in self._left)
            raise OptionError(f"--{self._flag}: {strict_decoding_error(unknown)}")


_NAMES: Mapping[type[Any], str] = {str: "string", bool: "boolean", list: "list", int: "number"}


def load_configuration(path: str, flag: str, kind: str, versions: Sequence[str], group: str = GROUP) -> Section:
    """Returns the configuration in a file, of this kind and one of these versions. Raises OptionError."""
    try:
        value, _ = yaml.loads(read_text(path, flag).encode())
    except (DecodeError, UnicodeEncodeError) as error:
        raise OptionError(f"--{flag}: {path}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise OptionError(f"--{flag}: {path}: nested too deeply") from None
    section = Section(value or {}, "", flag)
    api_version, found = section.text("apiVersion"), section.text("kind")
    if found != kind or api_version not in [f"{group}/{version}" for version in versions]:
        raise OptionError(f'--{flag}: {path}: no kind "{found}" is registered for version "{api_version}"')
    return section


def refuse(flag: str, errors: Sequence[FieldError]) -> None:
    """Raises OptionError if there are errors."""
    if errors:
        raise OptionError(f"--{flag}: {aggregate(errors)}")


_FLAG: Final = "authentication-config"
_MAXIMUM: Final = 64
#: The real server writes the name of the gate so.
_NO_ANONYMOUS: Final = "anonymous is not supported when AnonymousAuthConfigurableEnpoints feature gate is disabled"
_RESERVED: Final = ("kubernetes.io", "k8s.io")
_EMAIL: Final = (
    "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or "
    "claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"
)


def read_authentication_configuration(
    path: str, own_issuers: Sequence[str], *, allows_anonymous: bool
) -> tuple[list[JWTConfiguration], Anonymous | None]:
    """Returns the authenticators of a file, and its settings for anonymous requests, if any. Raises OptionError.

    Args:
        path: the path of the file.
        own_issuers: the issuers of service account tokens, which no authenticator may use.
        allows_anonymous: whether the file may have settings for anonymous requests (AnonymousAuthConfigurableEndpoints).
    """
    section = load_configuration(path, _FLAG, "AuthenticationConfiguration", ("v1", "v1beta1", "v1alpha1"))
    errors: list[FieldError] = []
    entries = section.sections("jwt")
    if len(entries) > _MAXIMUM:
        errors.append(too_many("jwt", len(entries), _MAXIMUM))
        entries = ()
    found: list[JWTConfiguration] = []
    for entry in entries:
        made = _Reader(entry, errors, own_issuers).read()
        for name, value in (("url", made.issuer), ("discoveryURL", made.discovery_url)):
            if value and any(value == (one.issuer if name == "url" else one.discovery_url) for one in found):
                errors.append(duplicate(f"{entry.path_of('issuer')}.{name}", value))
        found.append(made)
    anonymous = None
    if section.has("anonymous"):
        if not allows_anonymous:
            errors.append(forbidden("anonymous", _NO_ANONYMOUS))
        anonymous = _anonymous(section.section("anonymous"), errors)
    section.require_no_other_fields()
    refuse(_FLAG, errors)
    return found, anonymous


def _anonymous(section: Section, errors: list[FieldError]) -> Anonymous:
    enabled = section.flag("enabled")
    conditions = section.sections("conditions")
    paths = [condition.text("path") for condition in conditions]
    for condition in conditions:
        condition.require_no_other_fields()
    section.require_no_other_fields()
    if conditions and not enabled:
        text = "enabled should be set to true when conditions are defined"
        errors.append(invalid("anonymous.conditions", [{"Path": path} for path in paths], text))
    return Anonymous(enabled, paths or None)


class _Reader:
    """Reads one authenticator and collects its errors."""

    def __init__(self, section: Section, errors: list[FieldError], own_issuers: Sequence[str]) -> None:
        self._section = section
        self._errors = errors
        self._own_issuers = own_issuers
        self._names_verified_email = False

    def read(self) -> JWTConfiguration:
        """Returns the authenticator."""
        issuer = self._section.section("issuer")
        url, discovery, audiences, authorities = self._issuer(issuer)
        required_claims, claim_rules = self._claim_rules()
        mappings = self._section.section("claimMappings")
        username = self._mapping(mappings.section("username"), needed=True)
        groups = self._mapping(mappings.section("groups"), needed=False)
        uid = self._uid(mappings.section("uid"))
        extra = self._read_extra(mappings)
        if username.expression is not None and _names(username.expression.source, "email"):
            named = self._names_verified_email or _names(username.expression.source, "email_verified")
            if not named:
                self._errors.append(invalid(mappings.path_of("username.expression"), username.expression.source, _EMAIL))
        mappings.require_no_other_fields()
        user_rules = self._rules(self._section.sections("userValidationRules"), token_user())
        self._section.require_no_other_fields()
        return JWTConfiguration(
            url, audiences, username, discovery, authorities, groups, uid, extra, required_claims, claim_rules, user_rules
        )

    # --- Issuer -------------------------------------------------------------------------------------------------------

    def _issuer(self, issuer: Section) -> tuple[str, str, tuple[str, ...], str]:
        url, discovery = issuer.text("url"), issuer.text("discoveryURL")
        if not url:
            self._errors.append(required(issuer.path_of("url")))
        else:
            self._url(url, issuer.path_of("url"), self._own_issuers)
        if discovery:
            if url and url.rstrip("/") == discovery.rstrip("/"):
                self._errors.append(invalid(issuer.path_of("discoveryURL"), discovery, "discoveryURL must be different from URL"))
            self._url(discovery, issuer.path_of("discoveryURL"), ())
        audiences = tuple(issuer.texts("audiences"))
        self._audiences(issuer, audiences)
        authorities = issuer.text("certificateAuthority")
        if authorities and "-----BEGIN CERTIFICATE-----" not in authorities:
            text = "data does not contain any valid RSA or ECDSA certificates"
            self._errors.append(invalid(issuer.path_of("certificateAuthority"), "<omitted>", text))
        selector = issuer.text("egressSelectorType")
        if selector:
            choices = ("controlplane", "cluster")
            text = "egress selector must be either controlplane or cluster"
            if selector not in choices:
                self._errors.append(invalid(issuer.path_of("egressSelectorType"), selector, text))
        issuer.require_no_other_fields()
        return url, discovery, audiences, authorities

    def _url(self, url: str, path: str, disallowed: Sequence[str]) -> None:
        if url in disallowed:
            text = f"URL must not overlap with disallowed issuers: [{' '.join(sorted(disallowed))}]"
            self._errors.append(invalid(path, url, text))
        parts = urlsplit(url)
        for wrong, text in (
            (parts.scheme != "https", "URL scheme must be https"),
            ("@" in parts.netloc, "URL must not contain a username or password"),
            (parts.query, "URL must not contain a query"),
            (parts.fragment, "URL must not contain a fragment"),
        ):
            if wrong:
                self._errors.append(invalid(path, url, text))

    def _audiences(self, issuer: Section, audiences: Sequence[str]) -> None:
        path, policy = issuer.path_of("audiences"), issuer.text("audienceMatchPolicy")
        if not audiences:
            self._errors.append(required(path, f"at least one {path} is required"))
            return
        repeated = set(repeated_indices(audiences))
        for index, audience in enumerate(audiences):
            if not audience:
                self._errors.append(required(f"{path}[{index}]"))
            if index in repeated:
                self._errors.append(duplicate(f"{path}[{index}]", audience))
        where = issuer.path_of("audienceMatchPolicy")
        if len(audiences) > 1 and policy != "MatchAny":
            self._errors.append(invalid(where, policy, "audienceMatchPolicy must be MatchAny for multiple audiences"))
        if len(audiences) == 1 and policy not in ("", "MatchAny"):
            self._errors.append(invalid(where, policy, "audienceMatchPolicy must be empty or MatchAny for single audience"))

    # --- Claims -------------------------------------------------------------------------------------------------------

    def _claim_rules(self) -> tuple[dict[str, str], list[Expression]]:
        wanted: dict[str, str] = {}
        by_expression = []
        for rule in self._section.sections("claimValidationRules"):
            claim, has_expression = rule.text("claim"), rule.has("expression")
            value, has_message = rule.text("requiredValue"), rule.has("message")
            if claim and has_expression:
                self._errors.append(invalid(rule.path, claim, "claim and expression can't both be set"))
            elif not claim and not has_expression:
                self._errors.append(required(rule.path, "claim or expression is required"))
            elif claim:
                if has_message:
                    text = "may not be specified when claim is set"
                    self._errors.append(invalid(rule.path_of("message"), rule.text("message"), text))
                if claim in wanted:
                    self._errors.append(duplicate(rule.path_of("claim"), claim))
                wanted[claim] = value
            else:
                if value:
                    text = "may not be specified when expression is set"
                    self._errors.append(invalid(rule.path_of("requiredValue"), value, text))
                by_expression.append(rule)
                continue
            rule.ignore("expression")
            rule.ignore("message")
            rule.require_no_other_fields()
        rules = self._rules(by_expression, token_claims())
        self._note_verified_email(rules)
        return wanted, rules

    def _rules(self, sections: Iterable[Section], environment: Environment) -> list[Expression]:
        """Reads the validation rules with expressions and rejects duplicates."""
        found: list[Expression] = []
        seen: list[str] = []
        for rule in sections:
            source, message = rule.text("expression"), rule.text("message")
            rule.require_no_other_fields()
            path = rule.path_of("expression")
            if not source:
                self._errors.append(required(path))
            elif source in seen:
                self._errors.append(duplicate(path, source))
            else:
                seen.append(source)
                made = self._compile(environment, source, path, message, boolean=True)
                found += [made] if made is not None else []
        return found

    def _compile(
        self, environment: Environment, source: str, path: str, message: str = "", *, boolean: bool = False
    ) -> Expression | None:
        try:
            made = environment.compile(source)
        except ExpressionError as error:
            self._errors.append(invalid(path, source, str(error)))
            return None
        if boolean and made.type.name != "bool":
            self._errors.append(invalid(path, source, "must evaluate to bool"))
            return None
        return Expression(source, made.program, message)

    def _mapping(self, section: Section, *, needed: bool) -> ClaimMapping:
        claim, source, has_prefix = section.text("claim"), section.text("expression"), section.has("prefix")
        prefix = section.text("prefix")
        section.require_no_other_fields()
        if claim and source:
            self._errors.append(invalid(section.path, "", "claim and expression can't both be set"))
        elif source:
            if has_prefix:
                text = "may not be specified when expression is set"
                self._errors.append(invalid(section.path_of("prefix"), prefix, text))
            return ClaimMapping(expression=self._compile(token_claims(), source, section.path_of("expression")))
        elif claim:
            if not has_prefix:
                text = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
                self._errors.append(required(section.path_of("prefix"), text))
        elif needed:
            self._errors.append(required(section.path, "claim or expression is required"))
        return ClaimMapping(claim, prefix)

    def _uid(self, section: Section) -> ClaimMapping:
        claim, source = section.text("claim"), section.text("expression")
        section.require_no_other_fields()
        if claim and source:
            self._errors.append(invalid(section.path, "", "claim and expression can't both be set"))
        if source and not claim:
            return ClaimMapping(expression=self._compile(token_claims(), source, section.path_of("expression")))
        return ClaimMapping(claim)

    def _read_extra(self, mappings: Section) -> list[tuple[str, Expression]]:
        found: list[tuple[str, Expression]] = []
        keys: list[str] = []
        for mapping in mappings.sections("extra"):
            key, source = mapping.text("key"), mapping.text("valueExpression")
            mapping.require_no_other_fields()
            path = mapping.path_of("key")
            self._errors += domain_prefixed_path(key, path)
            if key != key.lower():
                self._errors.append(invalid(path, key, "must be lowercase"))
            domain = key.partition("/")[0] if "/" in key else ""
            if any(domain == own or domain.endswith(f".{own}") for own in _RESERVED):
                text = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
                self._errors.append(invalid(path, key, text))
            if key in keys:
                self._errors.append(duplicate(path, key))
                continue
            keys.append(key)
            if not source:
                self._errors.append(required(mapping.path_of("valueExpression")))
                continue
            made = self._compile(token_claims(), source, mapping.path_of("valueExpression"))
            if made is not None:
                found.append((key, made))
        self._note_verified_email([expression for _, expression in found])
        return found

    def _note_verified_email(self, expressions: Iterable[Expression]) -> None:
        self._names_verified_email |= any(_names(one.source, "email_verified") for one in expressions)


def _names(source: str, claim: str) -> bool:
    """Reports whether an expression uses this claim."""
    selected = (node for node in descendants(parse(source)) if isinstance(node, Select) and node.field == claim)
    return any(isinstance(node.operand, Identifier) and node.operand.name in ("claims", ".claims") for node in selected)
