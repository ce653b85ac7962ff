"""Names of signers and of their bundles of trust anchors, and who may use a signer.

The modules of the two kinds of requests import cryptography, which takes long; this one does not.

Specified by: pkg/apis/certificates/validation (ValidateSignerName, ValidateClusterTrustBundleName),
plugin/pkg/admission/certificates (util.go).
"""

from __future__ import annotations

from collections.abc import Callable

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import invalid, required, too_long
from fakekube.apis.rest.strategy import WriteContext
from fakekube.apis.validation import names
from fakekube.base.golang.strconv import go_quote


def validate_signer_name(name: str, path: str) -> list[FieldError]:
    """Validates a signer name: a domain, a slash, and a path."""
    if not name:
        return [required(path)]
    if name.count("/") != 1:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, text)]
    domain, _, rest = name.partition("/")
    errors = [] if names.fits(domain, names.SUBDOMAIN_LENGTH) else [too_long(path, names.SUBDOMAIN_LENGTH)]
    errors += _validate_labels(domain, path, names.dns_label)
    if "." not in domain:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    errors += _validate_labels(rest, path, names.dns_subdomain)
    longest = 2 * names.SUBDOMAIN_LENGTH + names.LABEL_LENGTH + 2
    return errors if names.fits(name, longest) else [*errors, too_long(path, longest)]


def is_authorized_for_signer_name(context: WriteContext, verb: str, signer: str) -> bool:
    """Reports whether the user may do this with requests for a signer, or for all signers of its domain
    (IsAuthorizedForSignerName)."""
    asked = {"group": "certificates.k8s.io", "version": "*", "resource": "signers", "verb": verb}
    return any(context.authorize({**asked, "name": name})[0] for name in (signer, f"{signer.partition('/')[0]}/*"))


def _validate_labels(text: str, path: str, check: Callable[[str], list[str]]) -> list[FieldError]:
    """Returns the errors of the first invalid label of a domain."""
    for label in text.split("."):
        details = check(label)
        if details:
            return [invalid(path, text, f"validating label {go_quote(label)}: {detail}") for detail in details]
    return []


def bundle_name_errors(signer: str, name: str, prefix: bool = False) -> list[str]:
    """Validates the name of a bundle of a signer, "" for none (ValidateClusterTrustBundleName)."""
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return names.dns_subdomain(name, prefix)
    required = f"{signer.replace('/', ':')}:"
    if not name.startswith(required):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {required}"]
    return names.dns_subdomain(name.removeprefix(required), prefix)
