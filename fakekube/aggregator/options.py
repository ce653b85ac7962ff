"""Flags of kube-apiserver about aggregated APIs.

Specified by: k8s.io/kubernetes/pkg/controlplane/apiserver/options (ProxyClientCertFile).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AggregatorOptions"]


@dataclass(slots=True, frozen=True)
class AggregatorOptions:
    """Files are paths; "" stands for a flag that is not given. Both are given, or none."""

    proxy_client_cert_file: str = ""
    """The client certificate by which extension servers know this one as their front proxy."""
    proxy_client_key_file: str = ""
