"""Serves OpenID Connect discovery for service account tokens: the provider configuration and the keys.

Specified by: k8s.io/kubernetes/pkg/routes/openidmetadata.go and pkg/serviceaccount/openidmetadata.go.
"""

from __future__ import annotations

from typing import Final

import orjson

from fakekube.apiserver.auth.tokens import Signer
from fakekube.apiserver.endpoints.request import Request, Response

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
KEYS_PATH: Final = "/openid/v1/jwks"
KEYS_TYPE: Final = "application/jwk-set+json"

_CACHING: Final = ("Cache-Control", "public, max-age=3600")


def configuration(signer: Signer, request: Request) -> Response:
    """Returns the provider configuration; the URL of the keys is on the host of the request."""
    document = {
        "issuer": signer.issuer,
        "jwks_uri": f"https://{request.headers.get('host', '')}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": signer.algorithms,
    }
    return Response(200, [("Content-Type", "application/json"), _CACHING], orjson.dumps(document))


def keys(signer: Signer) -> Response:
    """Returns the public keys as a JSON Web Key Set."""
    return Response(200, [("Content-Type", KEYS_TYPE), _CACHING], orjson.dumps(signer.key_set()))
