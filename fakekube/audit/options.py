"""The flags of kube-apiserver about audit.

Specified by: k8s.io/apiserver/pkg/server/options/audit.go.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AuditOptions"]


@dataclass(slots=True, frozen=True)
class AuditOptions:
    """What is written down, and where. Files are paths; "" stands for a flag that is not given."""

    audit_policy_file: str = ""
    """An audit Policy; without one nothing is written down."""
    audit_log_path: str = ""
    """A file that gets a line for each event; "-" is standard output."""
    audit_log_format: str = "json"
    """json, or the legacy form of a text."""
    audit_webhook_config_file: str = ""
    """A kubeconfig that leads to the webhook."""
    audit_webhook_mode: str = "batch"
    """batch sends events together; blocking and blocking-strict send each before the request is answered."""
    audit_webhook_batch_max_size: int = 400
    """Events that are sent together."""
    audit_webhook_batch_max_wait: float = 30.0
    """Seconds of real time after which a batch is sent that is not full."""
    audit_webhook_batch_buffer_size: int = 10_000
    """Events that may wait; more are dropped."""
