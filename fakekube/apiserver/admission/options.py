"""The flags of kube-apiserver about admission.

Specified by: k8s.io/apiserver/pkg/server/options/admission.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class AdmissionOptions:
    """The flags that select and configure admission plugins."""

    enable_admission_plugins: Sequence[str] = ()
    """Plugins that run although they are off by default."""
    disable_admission_plugins: Sequence[str] = ()
    """Plugins that do not run although they are on by default."""
    admission_control_config_file: str = ""
    """The path of an AdmissionConfiguration, which has the configurations of plugins."""
