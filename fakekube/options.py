"""The flags of kube-apiserver that a cluster takes: one value with a part for each concern.

A flag is named as kube-apiserver names it, with underscores in Python (`token_auth_file=…`) and dashes on the command line
(`--token-auth-file=…`). Each concern's dataclass has a field for each of its flags; the command line, `Cluster` and the
pytest plugin read them from there.

Specified by: k8s.io/kubernetes/cmd/kube-apiserver/app/options and k8s.io/apiserver/pkg/server/options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from fakekube.admission.options import AdmissionOptions
from fakekube.aggregator.options import AggregatorOptions
from fakekube.audit.options import AuditOptions
from fakekube.auth.options import AuthenticationOptions, AuthorizationOptions, OptionError

__all__ = ["OptionError", "ServerOptions", "ServingOptions", "flags"]


@dataclass(slots=True, frozen=True)
class ServingOptions:
    """Flags about the secure port. Files are paths; "" stands for a flag that is not given."""

    tls_cert_file: str = ""
    """The server's certificate, with those between it and its authority; by default one of the cluster's own CA."""
    tls_private_key_file: str = ""


@dataclass(slots=True, frozen=True)
class ServerOptions:
    """All flags of one cluster's API server."""

    serving: ServingOptions = field(default_factory=ServingOptions)
    authentication: AuthenticationOptions = field(default_factory=AuthenticationOptions)
    authorization: AuthorizationOptions = field(default_factory=AuthorizationOptions)
    admission: AdmissionOptions = field(default_factory=AdmissionOptions)
    aggregation: AggregatorOptions = field(default_factory=AggregatorOptions)
    audit: AuditOptions = field(default_factory=AuditOptions)

    @property
    def needs_tls(self) -> bool:
        """Does a flag make sense with TLS only?"""
        authentication = self.authentication
        return bool(
            self.serving.tls_cert_file or authentication.client_ca_file or authentication.requestheader_client_ca_file
        )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ServerOptions:
        """Options from flags by their names with underscores. A text may stand for a list, its parts separated by commas.

        Raises TypeError for a name that is no flag.
        """
        left = dict(given)
        parts = {part.name: _taken(_PARTS[part.name], left) for part in fields(cls)}
        if left:
            raise TypeError(f"fakekube knows no flag {', '.join(sorted(left))}")
        return cls(**parts)


_PARTS: Mapping[str, type[Any]] = {
    "serving": ServingOptions, "authentication": AuthenticationOptions, "authorization": AuthorizationOptions,
    "admission": AdmissionOptions, "aggregation": AggregatorOptions, "audit": AuditOptions,
}


def flags() -> Iterator[Field[Any]]:
    """The field of every flag."""
    for part in _PARTS.values():
        yield from fields(part)


def _taken(options: type[Any], given: dict[str, Any]) -> Any:
    """The options of one concern, whose flags are taken out."""
    found = {}
    for flag in fields(options):
        if flag.name in given:
            value = given.pop(flag.name)
            if "Sequence" in str(flag.type):
                value = tuple(value.split(",") if isinstance(value, str) and value else value)
            found[flag.name] = str(value) if isinstance(value, Path) else value
    return options(**found)
