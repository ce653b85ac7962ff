"""What a control plane does on its own: controllers that use the API as any client does, in process.

They are driven by watches and by the clock, never by polling, and `Manager.settle` runs them until nothing is left to do.
Which of them run is a matter of the profile.
"""

from __future__ import annotations

from fakekube.controllers.manager import Manager
from fakekube.controllers.namespaces import NamespaceController
from fakekube.controllers.reconciler import Reconciler
from fakekube.controllers.root_certificate import RootCertificatePublisher
from fakekube.controllers.service_accounts import ServiceAccountController
from fakekube.controllers.storage_protection import ClaimProtection, VolumeProtection

__all__ = ["Manager", "Reconciler", "of_profile"]

_PROFILES: dict[str, tuple[type[Reconciler], ...]] = {
    "apiserver": (),
    "cluster": (
        NamespaceController, ServiceAccountController, RootCertificatePublisher, ClaimProtection, VolumeProtection,
    ),
}


def of_profile(profile: str) -> tuple[type[Reconciler], ...]:
    """The controllers of a profile. Raises KeyError for a profile that there is not."""
    return _PROFILES[profile]
