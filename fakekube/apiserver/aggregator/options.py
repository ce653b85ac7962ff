"""Flags of kube-apiserver about aggregated APIs.

Specified by: k8s.io/kubernetes/pkg/controlplane/apiserver/options (ProxyClientCertFile).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class AggregatorOptions:
    """The flags of the proxy client certificate: paths, or "". Both must be set, or none."""

    proxy_client_cert_file: str = ""
    """The client certificate with which this server authenticates as a front proxy."""
    proxy_client_key_file: str = ""
