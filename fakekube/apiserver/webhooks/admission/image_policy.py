"""ImagePolicyWebhook: a backend allows or denies the images of a pod. Disabled by default.

Specified by: plugin/pkg/admission/imagepolicy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from fakekube.apimachinery.errors.status import uninterpretable
from fakekube.apis.rest.cluster_access import CallError
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin, forbidden
from fakekube.apiserver.options import ConfigurationError
from fakekube.base.caches import BoundedCache
from fakekube.base.golang.timestamps import print_duration
from fakekube.base.objects import Object

if TYPE_CHECKING:
    from fakekube.apiserver.webhooks.transport import Endpoint, Transport


_API_VERSION, _KIND = "imagepolicy.k8s.io/v1alpha1", "ImageReview"
_AUDIT_PREFIX = "imagepolicywebhook.image-policy.k8s.io/"
_ANNOTATIONS = ".image-policy.k8s.io/"
_EPHEMERAL = "ephemeralcontainers"
_TIMEOUT = 30.0
_MAXIMUM_CACHED = 1024
#: The TTL of a cached response in seconds: the defaults, and its minimum and maximum.
_ALLOW_TTL, _DENY_TTL, _TTLS = 300, 30, (1, 1800)


@dataclass(slots=True, frozen=True)
class _Configuration:
    endpoint: Endpoint
    allow_ttl: float
    deny_ttl: float
    default_allow: bool


class ImagePolicyWebhook(Plugin):
    """The admission plugin; it caches the responses of the backend by the spec of the ImageReview."""

    name = "ImagePolicyWebhook"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({("", "pods")})
    subresources = frozenset({"", _EPHEMERAL})
    repeatable = False

    def __init__(self, configuration: _Configuration) -> None:
        self._configuration = configuration
        self._transport: Transport | None = None
        self._lock = threading.Lock()
        self._cache: BoundedCache[bytes, tuple[float, Object]] = BoundedCache(_MAXIMUM_CACHED)

    @classmethod
    def from_configuration(cls, configuration: Any) -> ImagePolicyWebhook:
        """Creates the plugin from its configuration. Raises ConfigurationError."""
        from fakekube.apiserver.webhooks.transport import KubeconfigError, endpoint_of

        given: Mapping[str, Any] = (configuration or {}).get("imagePolicy") or {}
        if configuration is None:
            raise ConfigurationError("no config specified")
        allow_ttl, deny_ttl = _ttl(given, "allowTTL", _ALLOW_TTL), _ttl(given, "denyTTL", _DENY_TTL)
        try:
            endpoint = endpoint_of(given.get("kubeConfigFile", ""))
        except KubeconfigError as error:
            raise ConfigurationError(str(error)) from None
        return cls(_Configuration(endpoint, allow_ttl, deny_ttl, bool(given.get("defaultAllow"))))

    def validate(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        meta, spec = attributes.object["metadata"], attributes.object["spec"]
        fields = ("ephemeralContainers",) if attributes.subresource == _EPHEMERAL else ("containers", "initContainers")
        images = [{"image": container.get("image", "")} for name in fields for container in spec.get(name) or ()]
        annotations = {key: text for key, text in (meta.get("annotations") or {}).items() if _ANNOTATIONS in key}
        review_spec: Object = {"containers": images} if images else {}
        review_spec |= {"annotations": annotations} if annotations else {}
        review_spec["namespace"] = attributes.namespace
        try:
            answer = self._answer(review_spec, attributes.context.clock.monotonic)
        except CallError as error:
            if not self._configuration.default_allow:
                raise forbidden(attributes, str(error)) from None
            attributes.add_annotation(f"{_AUDIT_PREFIX}failed-open", "true")
            return
        for key, text in (answer.get("auditAnnotations") or {}).items():
            attributes.add_annotation(f"{_AUDIT_PREFIX}{key}", text)
        if not answer.get("allowed"):
            reason = answer.get("reason")
            denied = f"image policy webhook backend denied one or more images: {reason}"
            raise forbidden(attributes, denied if reason else "one or more images rejected by webhook backend")

    def _answer(self, spec: Object, now: Callable[[], float]) -> Object:
        """Returns the status of the ImageReview, cached for its TTL. Raises CallError."""
        key = orjson.dumps(spec)
        cached = self._cache.get(key)
        if cached is not None and cached[0] > now():
            return cached[1]
        answer = self._call_backend(spec)
        ttl = self._configuration.allow_ttl if answer.get("allowed") else self._configuration.deny_ttl
        with self._lock:
            self._cache.add(key, (now() + ttl, answer))
        return answer

    def _call_backend(self, spec: Object) -> Object:
        from fakekube.apiserver.webhooks.caller import body_of
        from fakekube.apiserver.webhooks.transport import Transport

        if self._transport is None:
            self._transport = Transport()
        review = {"kind": _KIND, "apiVersion": _API_VERSION, "metadata": {}, "spec": spec, "status": {"allowed": False}}
        answer = self._transport.post(self._configuration.endpoint, orjson.dumps(review) + b"\n", _TIMEOUT)
        try:
            found = orjson.loads(body_of(answer))
        except orjson.JSONDecodeError as error:
            raise CallError(uninterpretable(error)) from None
        status = found.get("status") if isinstance(found, dict) else None
        return status if isinstance(status, dict) else {}


def _ttl(given: Mapping[str, Any], name: str, default: int) -> float:
    """Returns a TTL in seconds; a configured -1 disables the cache, 0 is the default. Raises ConfigurationError."""
    value = given.get(name) or 0
    if value == -1:
        return 0
    if not value:
        return default
    least, most = _TTLS
    if not least <= value <= most:
        raise ConfigurationError(f"valid value is between {least}s and 30m0s, got {print_duration(value * 1_000_000_000)}")
    return float(value)
