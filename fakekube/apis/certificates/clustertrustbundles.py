"""clustertrustbundles.certificates.k8s.io: trust anchors of a signer, or of none.

Specified by: pkg/apis/certificates/validation (ValidateClusterTrustBundle), pkg/registry/certificates/clustertrustbundle;
plugin/pkg/admission/certificates/ctbattest (who may write bundles).
"""

from __future__ import annotations

from typing import Final

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import IMMUTABLE, invalid, too_long
from fakekube.apis.certificates.signers import bundle_name_errors, validate_signer_name
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation import objectmeta
from fakekube.base.golang import pem
from fakekube.base.objects import Object

_MAX_TRUST_BUNDLE_SIZE: Final = 1 << 20
_OMITTED: Final = "<value omitted>"
_PATH: Final = "spec.trustBundle"


class ClusterTrustBundleStrategy(Strategy):
    """The strategy of clustertrustbundles."""

    unconditional_update = False
    checks_metadata = False  # the name depends on the signer
    checks_metadata_update = False

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        return self._validate(context, obj, None)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = self._validate(context, obj, old) + self.validate_metadata_update(context, obj["metadata"], old["metadata"])
        signer = (obj.get("spec") or {}).get("signerName", "")
        if signer != (old.get("spec") or {}).get("signerName", ""):
            errors.append(invalid("spec.signerName", signer, IMMUTABLE))
        return errors

    def _validate(self, context: WriteContext, obj: Object, old: Object | None) -> list[FieldError]:
        spec = obj.get("spec") or {}
        signer, bundle = spec.get("signerName", ""), spec.get("trustBundle", "")

        def name_errors(name: str, prefix: bool) -> list[str]:
            return bundle_name_errors(signer, name, prefix)

        errors = objectmeta.validate_object_meta(
            obj["metadata"], False, name_errors, standard_finalizers=self.standard_finalizers
        )
        if signer:
            errors += validate_signer_name(signer, "spec.signerName")
        is_new = old is None or (old.get("spec") or {}).get("trustBundle", "") != bundle
        # The server's own, which an in-process cluster does not have, is valid: cryptography need not be imported for it.
        if is_new and (not bundle or bundle != context.services.certificate_authority):
            errors += _validate_trust_bundle(bundle)
        return errors


def _validate_trust_bundle(bundle: str) -> list[FieldError]:
    if len(bundle.encode()) > _MAX_TRUST_BUNDLE_SIZE:
        return [too_long(_PATH, _MAX_TRUST_BUNDLE_SIZE)]
    errors: list[FieldError] = []
    anchors: dict[bytes, list[int]] = {}
    for index, block in enumerate(pem.blocks(bundle.encode())):
        problem = _problem_with_block(block)
        if problem:
            errors.append(invalid(_PATH, _OMITTED, f"entry {index} {problem}"))
        else:
            anchors.setdefault(block.content, []).append(index)
    if errors:
        return errors
    if not anchors:
        return [invalid(_PATH, _OMITTED, "at least one trust anchor must be provided")]
    repeated = [indices for indices in anchors.values() if len(indices) > 1]
    return [invalid(_PATH, _OMITTED, f"duplicate trust anchor (indices [{' '.join(map(str, indices))}])") for indices in repeated]


def _problem_with_block(block: pem.Block) -> str:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    if block.type != "CERTIFICATE":
        return f"has bad block type: {block.type}"
    if block.has_headers:
        return "has PEM block headers"
    try:
        certificate = x509.load_der_x509_certificate(block.content)
        certificate.public_key()
    except (ValueError, x509.InvalidVersion, UnsupportedAlgorithm):
        return "does not parse as X.509"
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except (x509.ExtensionNotFound, ValueError):
        return "does not have the CA bit set"
    return "" if constraints.ca else "does not have the CA bit set"
