"""Validation of the address of a webhook (a URL, or a Service) and of its CA bundle. All kinds that refer to webhooks share it.
What no webhook sees.

Specified by: k8s.io/apiserver/pkg/util/webhook/validation.go (ValidateWebhookURL, ValidateWebhookService, ValidateCABundle),
k8s.io/client-go/transport; pkg/kubeapiserver/admission/exclusion.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, required
from fakekube.apis.validation import names
from fakekube.apis.validation.checks import repeated_indices
from fakekube.apis.validation.rules import from_minor
from fakekube.base.golang import pem
from fakekube.base.golang.urls import parse_url

NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")

REVIEW_VERSIONS: Final = ("v1", "v1beta1")

#: The reviews, which are not stored (exclusion.Excluded).
REVIEWS: Final = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
)

SERVICE_PORT = 443
_FORM = "; desired format: https://host[/path]"


def is_excluded(group: str, plural: str) -> bool:
    """Reports whether no webhook sees a resource: a review, with a gate."""
    return (group, plural) in REVIEWS and features.current().enabled("ExcludeAdmissionWebhookVirtualResources")


def url_errors(value: str, path: str) -> list[FieldError]:
    """Validates the URL of a webhook."""
    try:
        url = parse_url(value)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}{_FORM}")]
    errors: list[FieldError] = []
    if url.scheme != "https":
        errors.append(invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not url.host:
        errors.append(invalid(path, url.host, f"host must be specified{_FORM}"))
    if url.user is not None:
        errors.append(invalid(path, url.user, "user information is not permitted in the URL"))
    if url.fragment:
        errors.append(invalid(path, url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        errors.append(invalid(path, url.query, "query parameters are not permitted in the URL"))
    return errors


def client_errors(client: Mapping[str, Any], path: str) -> list[FieldError]:
    """Validates that a client configuration has a URL or a service, and which."""
    if ("url" in client) == ("service" in client):
        return [required(path, "exactly one of url or service is required")]
    if "url" in client:
        return url_errors(client["url"], f"{path}.url")
    return service_errors(client["service"], f"{path}.service", swapped=True)


def review_version_errors(versions: Sequence[str], path: str, *, needs_known: bool = True) -> list[FieldError]:
    """Validates the versions of reviews that a webhook accepts; `needs_known`: one of them is a version of this server."""
    errors: list[FieldError] = []
    repeated = set(repeated_indices(versions))
    for index, version in enumerate(versions):
        if index in repeated:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
        else:
            errors += [invalid(f"{path}[{index}]", version, text) for text in names.dns_1035_label(version)]
    if needs_known and not set(versions) & set(REVIEW_VERSIONS):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))
    return errors


def service_errors(service: Mapping[str, Any], path: str, *, swapped: bool = False) -> list[FieldError]:
    """Validates a reference to a service.

    The admission kinds of the real server check the name by the rule of the namespace and the reverse (`swapped`).
    """
    errors: list[FieldError] = []
    name, namespace = service.get("name", ""), service.get("namespace", "")
    if swapped:
        name, namespace = namespace, name
    if not name:
        errors.append(required(f"{path}.name", "" if from_minor(34) else "service name is required"))
    if not namespace:
        errors.append(required(f"{path}.namespace", "" if from_minor(34) else "service namespace is required"))
    port = service.get("port", 0)
    refused = names.port_number(port)
    if refused:
        errors.append(invalid(f"{path}.port", port, "port is not valid: " + ", ".join(refused)))
    return errors + _path_errors(service.get("path", ""), f"{path}.path")


def _path_errors(value: str, path: str) -> list[FieldError]:
    if value in ("", "/"):
        return []
    if value == "//":
        return [invalid(path, value, "segment[0] may not be empty")]
    errors = [] if value.startswith("/") else [invalid(path, value, "must start with a '/'")]
    for index, step in enumerate(value[1:].removesuffix("/").split("/")):
        if step:
            errors += [invalid(path, value, f"segment[{index}]: {text}") for text in names.dns_subdomain(step)]
        else:
            errors.append(invalid(path, value, f"segment[{index}] may not be empty"))
    return errors


def ca_bundle_errors(bundle: str, path: str) -> Iterator[FieldError]:
    """Validates a caBundle, which is PEM in base64; an empty one is valid."""
    problem = _problem(b64decode(bundle)) if bundle else ""
    if problem:
        yield invalid(path, bundle, f"unable to load root certificates: {problem}")


def has_valid_ca_bundle(spec: Mapping[str, Any]) -> bool:
    """Reports whether the CA bundle of the conversion webhook of a definition is valid or absent."""
    return not list(ca_bundle_errors(_bundle(spec), ""))


def has_usable_ca_bundle(spec: Mapping[str, Any]) -> bool:
    """Reports whether a client of the conversion webhook can be made: the CA bundle is valid, or blank (which counts as none)."""
    return not b64decode(_bundle(spec)).strip() or has_valid_ca_bundle(spec)


def _bundle(spec: Mapping[str, Any]) -> str:
    client = ((spec.get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
    bundle: str = client.get("caBundle", "")
    return bundle


def _problem(bundle: bytes) -> str:
    """Returns why a bundle has no certificate that can be loaded (createErrorParsingCAData); "" if it has one."""
    from cryptography import x509

    is_malformed, block, at = False, *pem.decode(bundle)
    while block is not None:
        if block.type == "CERTIFICATE" and not block.has_headers:
            try:
                x509.load_der_x509_certificate(block.content)
            except (ValueError, x509.InvalidVersion):
                is_malformed = True
            else:
                return ""
        block, at = pem.decode(bundle, at)
    if is_malformed:
        return "failed to parse certificate: x509: malformed certificate"
    return "unable to parse bytes as PEM block" if at < len(bundle) else "no valid certificate authority data seen"
