"""secrets: bytes by key; some types have required keys.

Specified by: pkg/registry/core/secret; ValidateSecret… of pkg/apis/core/validation; pkg/apis/core/v1/conversion.go
(stringData).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping

from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import Typed, invalid, required, too_long
from fakekube.apis.core.configmaps import MAX_SECRET_SIZE, size_of_base64, validate_data_keys, validate_immutable
from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.validation.checks import immutable_field
from fakekube.apis.well_known import SECRET_TYPE_SERVICE_ACCOUNT_TOKEN, SERVICE_ACCOUNT_NAME_KEY
from fakekube.base.golang.json_reader import object_error
from fakekube.base.golang.key_pairs import key_pair_problem
from fakekube.base.golang.strings import bytes_of
from fakekube.base.objects import Object

TLS = "kubernetes.io/tls"
CERTIFICATE, PRIVATE_KEY = "tls.crt", "tls.key"

#: Type → the key whose value is a JSON object.
CONFIGURATIONS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}
_BASIC_AUTHENTICATION = "kubernetes.io/basic-auth"
CREDENTIALS = ("username", "password")
SSH_AUTHENTICATION, SSH_KEY = "kubernetes.io/ssh-auth", "ssh-privatekey"


class SecretStrategy(Strategy):
    """The strategy of secrets."""

    def default(self, obj: Object) -> None:
        texts = obj.pop("stringData", None)
        if texts:
            written = {key: b64encode(bytes_of(text)).decode() for key, text in texts.items()}
            obj["data"] = {**(obj.get("data") or {}), **written}

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        if not obj.get("type"):
            obj["type"] = old.get("type", "")

    def validate(self, context: WriteContext, obj: Object) -> list[FieldError]:
        data: Mapping[str, str | None] = obj.get("data") or {}
        errors = validate_data_keys(data, "data")
        if sum(map(size_of_base64, data.values())) > MAX_SECRET_SIZE:
            errors.append(too_long("data", MAX_SECRET_SIZE))
        return errors + _validate_data_of_type(obj.get("type", ""), obj["metadata"].get("annotations") or {}, data)

    def validate_update(self, context: WriteContext, obj: Object, old: Object) -> list[FieldError]:
        errors = immutable_field(Typed(obj.get("type", "")), old.get("type", ""), "type")
        if old.get("immutable"):
            errors += validate_immutable(obj, old, {"data": None})
        errors += self.validate_metadata(context, obj["metadata"])
        return errors + self.validate(context, obj)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        if obj.get("type") != TLS:
            return []
        data = obj.get("data") or {}
        problem = key_pair_problem(*(b64decode(data.get(key) or "") for key in (CERTIFICATE, PRIVATE_KEY)))
        return [problem] if problem else []


def _validate_data_of_type(type_: str, annotations: Mapping[str, str], data: Mapping[str, str | None]) -> list[FieldError]:
    """Validates the data by the type of the secret."""
    if type_ == SECRET_TYPE_SERVICE_ACCOUNT_TOKEN:
        path = f"metadata.annotations[{SERVICE_ACCOUNT_NAME_KEY}]"
        return [] if annotations.get(SERVICE_ACCOUNT_NAME_KEY) else [required(path)]
    if type_ in CONFIGURATIONS:
        return _validate_docker_configuration(data, CONFIGURATIONS[type_])
    if type_ == _BASIC_AUTHENTICATION:
        return [] if any(key in data for key in CREDENTIALS) else _require_keys(data, CREDENTIALS)
    if type_ == SSH_AUTHENTICATION:
        return [] if data.get(SSH_KEY) else [required(f"data[{SSH_KEY}]")]
    if type_ == TLS:
        return _require_keys(data, (CERTIFICATE, PRIVATE_KEY))
    return []


def _require_keys(data: Mapping[str, str | None], keys: tuple[str, ...]) -> list[FieldError]:
    return [required(f"data[{key}]") for key in keys if key not in data]


def _validate_docker_configuration(data: Mapping[str, str | None], key: str) -> list[FieldError]:
    """Validates that the value of this key is a JSON object."""
    if key not in data:
        return [required(f"data[{key}]")]
    problem = object_error(b64decode(data[key] or ""))
    return [invalid(f"data[{key}]", "<secret contents redacted>", problem)] if problem else []
