"""The flags of kube-apiserver about audit.

Specified by: k8s.io/apiserver/pkg/server/options/audit.go.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class AuditOptions:
    """Flags about audit. Files are paths; "" means that a flag is not set."""

    audit_policy_file: str = ""
    """A file with an audit Policy; required for audit."""
    audit_log_path: str = ""
    """The log file, with a line for each event; "-" is standard output."""
    audit_log_format: str = "json"
    """json or legacy."""
    audit_webhook_config_file: str = ""
    """A kubeconfig with the address and the credentials of the webhook."""
    audit_webhook_mode: str = "batch"
    """batch sends events in batches; blocking and blocking-strict send each event before the response."""
    audit_webhook_batch_max_size: int = 400
    """The maximum number of events in a batch."""
    audit_webhook_batch_max_wait: float = 30.0
    """Real seconds after which a batch is sent although it is not full."""
    audit_webhook_batch_buffer_size: int = 10_000
    """The maximum number of queued events; more are dropped."""
