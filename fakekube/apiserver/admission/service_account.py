"""The admission plugin ServiceAccount: sets the service account of pods, mounts its token, and adds its image pull secrets.

If an account has the annotation for enforcing mountable secrets, its pods may use only the secrets in its list.

Specified by: plugin/pkg/admission/serviceaccount.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fakekube.apimachinery.errors import status
from fakekube.apis.core.pods.defaults import sync_service_account
from fakekube.apis.core.pods.visitor import secret_names
from fakekube.apis.rest.strategy import unusable_name
from fakekube.apis.well_known import (
    DEFAULT_SERVICE_ACCOUNT_NAME,
    ENFORCE_MOUNTABLE_SECRETS_ANNOTATION,
    MIRROR_POD_ANNOTATION_KEY,
    ROOT_CA_CERT_CONFIG_MAP_NAME,
)
from fakekube.apiserver.admission.chain import Attributes, Operation, Plugin, forbidden
from fakekube.base.chance import random_string
from fakekube.base.golang.strconv import TRUE_TEXTS
from fakekube.base.objects import Object

#: Real seconds to wait for the default service account.
PATIENCE = 1.0
_VOLUME_PREFIX = "kube-api-access-"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 3607
"""One hour and 7 seconds (WarnOnlyBoundTokenExpirationPeriod), which identifies injected tokens."""


class ServiceAccount(Plugin):
    """Gives pods their service account, its token and its image pull secrets."""

    name = "ServiceAccount"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({("", "pods")})
    subresources = frozenset({"", "ephemeralcontainers"})

    def admit(self, attributes: Attributes) -> None:
        pod = attributes.object
        if pod is None or attributes.operation is not Operation.CREATE or attributes.subresource:
            return
        if not _is_mirror(pod):
            spec = pod["spec"]
            spec["serviceAccountName"] = spec.get("serviceAccountName") or DEFAULT_SERVICE_ACCOUNT_NAME
            sync_service_account(spec)
            account = _account(attributes, spec["serviceAccountName"])
            if _automounts(account, spec):
                _mount_token(spec)
            if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
                spec["imagePullSecrets"] = [dict(item) for item in account["imagePullSecrets"]]
        self.validate(attributes)

    def validate(self, attributes: Attributes) -> None:
        pod = attributes.object
        if pod is None:
            return
        if attributes.operation is Operation.CREATE and _is_mirror(pod):
            _check_mirror(attributes, pod["spec"])
        elif attributes.operation is Operation.CREATE or attributes.subresource:
            _check_secrets(attributes, pod)


def _is_mirror(pod: Object) -> bool:
    return MIRROR_POD_ANNOTATION_KEY in (pod["metadata"].get("annotations") or {})


def _account(attributes: Attributes, name: str) -> Object:
    namespace = attributes.namespace
    services = attributes.context.services
    if name == DEFAULT_SERVICE_ACCOUNT_NAME:  # a new namespace gets it in a moment
        found = services.expect("", "serviceaccounts", namespace, name, PATIENCE)
    else:
        found = services.get("", "serviceaccounts", namespace, name)
    if found is None:
        problem = unusable_name(name) or f'serviceaccount "{name}" not found'
        raise forbidden(attributes, f"error looking up service account {namespace}/{name}: {problem}")
    return found


def _automounts(account: Object, spec: Object) -> bool:
    for holder in (spec, account):
        if holder.get("automountServiceAccountToken") is not None:
            return bool(holder["automountServiceAccountToken"])
    return True


def _mount_token(spec: Object) -> None:
    volumes: list[Object] = spec.get("volumes") or []
    held = next((item["name"] for item in volumes if item.get("name", "").startswith(_VOLUME_PREFIX)), None)
    name = held or _VOLUME_PREFIX + random_string(5)
    mounted = False
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            mounts = container.get("volumeMounts") or []
            if all(mount.get("mountPath") != _MOUNT_PATH for mount in mounts):
                container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": _MOUNT_PATH}]
                mounted = True
    if mounted and held is None:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_volume()}]


def _token_volume() -> Object:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": ROOT_CA_CERT_CONFIG_MAP_NAME, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
        ],
    }


def _check_mirror(attributes: Attributes, spec: Object) -> None:
    if spec.get("serviceAccountName"):
        raise forbidden(attributes, "a mirror pod may not reference service accounts")
    if next(secret_names(spec), None) is not None:
        raise forbidden(attributes, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise forbidden(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


def _check_secrets(attributes: Attributes, pod: Object) -> None:
    spec, meta = pod["spec"], pod["metadata"]
    name = spec.get("serviceAccountName", "")
    if not name:
        text = f"no service account specified for pod {attributes.namespace}/{meta.get('name', '')}"
        raise forbidden(attributes, text)
    account = _account(attributes, name)
    if (account["metadata"].get("annotations") or {}).get(ENFORCE_MOUNTABLE_SECRETS_ANNOTATION) not in TRUE_TEXTS:
        return
    of_ephemeral_containers = bool(attributes.subresource)
    problem = next(_unmountable(account, spec, of_ephemeral_containers), None)
    if problem is not None and of_ephemeral_containers:
        raise status.generic(500, "", problem)  # a mere error in the real server, too
    if problem is not None:
        raise forbidden(attributes, problem)


def _unmountable(account: Object, spec: Object, of_ephemeral_containers: bool) -> Iterator[str]:
    """Yields an error for each secret that the account does not list."""
    account_name = account["metadata"]["name"]
    refused = f"is not allowed because service account {account_name} does not reference that"
    secrets = {item.get("name", "") for item in account.get("secrets") or ()}
    if of_ephemeral_containers:
        yield from _of_containers(spec, (("ephemeralContainers", "ephemeral container"),), secrets, refused)
        return
    for volume in spec.get("volumes") or ():
        source = volume.get("secret")
        if source is not None and source.get("secretName", "") not in secrets:
            yield f'volume with secret.secretName="{source.get("secretName", "")}" {refused} secret'
    fields = (("initContainers", "init container"), ("containers", "container"))
    yield from _of_containers(spec, fields, secrets, refused)
    pull_secrets = {item.get("name", "") for item in account.get("imagePullSecrets") or ()}
    for index, item in enumerate(spec.get("imagePullSecrets") or ()):
        if item.get("name", "") not in pull_secrets:
            yield f'imagePullSecrets[{index}].name="{item.get("name", "")}" {refused} imagePullSecret'


def _of_containers(spec: Object, fields: Sequence[tuple[str, str]], secrets: set[str], refused: str) -> Iterator[str]:
    for field, what in fields:
        for container in spec.get(field) or ():
            for use, secret in _list_secrets(container):
                if secret not in secrets:
                    named = f"{what} {container.get('name', '')} with {use} referencing"
                    yield f'{named} secret.secretName="{secret}" {refused} secret'


def _list_secrets(container: Object) -> Iterator[tuple[str, str]]:
    """Yields the secrets that a container uses, and how."""
    for item in container.get("env") or ():
        reference = (item.get("valueFrom") or {}).get("secretKeyRef")
        if reference is not None:
            yield f"envVar {item.get('name', '')}", reference.get("name", "")
    for item in container.get("envFrom") or ():
        if item.get("secretRef") is not None:
            yield "envFrom", item["secretRef"].get("name", "")
