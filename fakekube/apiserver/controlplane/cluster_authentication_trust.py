"""Publishes the ConfigMap kube-system/extension-apiserver-authentication for extension API servers.

It has the CA bundles of clients and of front proxies, and the names of the headers in which front proxies pass the user.
Existing content is kept and merged with that of this server; a deleted ConfigMap is created again.

Specified by: k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fakekube.apimachinery.codecs.document import Document
from fakekube.apimachinery.errors import StatusError
from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.apis.well_known import NAMESPACE_SYSTEM
from fakekube.apiserver.controlplane.control_loop import ControlLoop
from fakekube.base.chance import random_uuid
from fakekube.base.clock import Clock
from fakekube.base.golang.timestamps import print_time
from fakekube.base.objects import Object
from fakekube.store import Record, Store

NAME: Final = "extension-apiserver-authentication"
_KEY: Final = f"{NAMESPACE_SYSTEM}/{NAME}"
MANAGER: Final = "kube-apiserver"

_CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)


@dataclass(slots=True, frozen=True)
class ClusterAuthenticationInfo:
    """The authentication settings for extension API servers. Certificates are PEM, "" if there are none."""

    client_ca: str
    request_header_ca: str
    allowed_names: Sequence[str] = ()
    username_headers: Sequence[str] = ()
    uid_headers: Sequence[str] = ()
    group_headers: Sequence[str] = ()
    extra_prefixes: Sequence[str] = ()

    def data(self, existing: Mapping[str, str]) -> dict[str, str]:
        """Returns the data of the ConfigMap, merged with the existing data."""
        data = {"client-ca-file": _certificates(existing.get("client-ca-file", ""), self.client_ca)}
        authorities = _certificates(existing.get("requestheader-client-ca-file", ""), self.request_header_ca)
        if authorities:
            data["requestheader-client-ca-file"] = authorities
            for key, values in (
                ("allowed-names", self.allowed_names),
                ("username-headers", self.username_headers),
                ("uid-headers", self.uid_headers),
                ("group-headers", self.group_headers),
                ("extra-headers-prefix", self.extra_prefixes),
            ):
                name = f"requestheader-{key}"
                merged = list(dict.fromkeys((*_decode_list(existing.get(name, "")), *values)))
                if merged or key != "uid-headers":
                    data[name] = orjson.dumps(merged).decode()
        return {key: text for key, text in data.items() if text}


class ClusterAuthenticationTrustController(ControlLoop):
    """Creates and updates the ConfigMap."""

    def __init__(self, store: Store[Document], services: ClusterAccess, clock: Clock, info: ClusterAuthenticationInfo) -> None:
        self._services, self._clock, self._info = services, clock, info
        self._config_maps = store.bucket("configmaps")
        self._right: Record[Document] | None = None
        """The version of the ConfigMap that needs no change: most writes are of other ones."""
        super().__init__((self._config_maps,))
        self.refresh()

    def step(self) -> bool:
        record = self._config_maps.get(_KEY)
        if record is None:
            return self._create()
        if record is self._right:
            return False
        data = record.value.object.get("data")
        if self._info.data(data or {}) == data:
            self._right = record
            return False
        try:
            self._services.update("", "configmaps", NAMESPACE_SYSTEM, NAME, self._with_data)
        except StatusError:  # it has been deleted in the meantime
            return True
        return False

    def _create(self) -> bool:
        data, now = self._info.data({}), print_time(self._clock.now())
        metadata = {
            "name": NAME,
            "namespace": NAMESPACE_SYSTEM,
            "uid": random_uuid(),
            "creationTimestamp": now,
            "managedFields": [_managed_fields(data, now)],
        }
        try:
            self._services.create("", "configmaps", NAMESPACE_SYSTEM, {"metadata": metadata, "data": data})
        except StatusError:  # another client has created it
            return True
        return False

    def _with_data(self, old: Object) -> Object:
        return {**old, "data": self._info.data(old.get("data") or {})}


def _managed_fields(data: Mapping[str, str], now: str) -> dict[str, Any]:
    fields: dict[str, Any] = {".": {}, **{f"f:{key}": {} for key in sorted(data)}}
    return {
        "manager": MANAGER,
        "operation": "Update",
        "apiVersion": "v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": fields},
    }


def _certificates(present: str, own: str) -> str:
    """Returns all certificates of both texts, each once."""
    return "".join(dict.fromkeys(f"{text.strip()}\n" for text in _CERTIFICATE.findall(present + "\n" + own)))


def _decode_list(encoded: str) -> list[str]:
    try:
        value = orjson.loads(encoded)
    except ValueError:
        return []
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
