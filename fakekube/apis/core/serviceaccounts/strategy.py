"""serviceaccounts, the identities of pods.

Specified by: pkg/registry/core/serviceaccount/strategy.go; ValidateServiceAccount… of pkg/apis/core/validation.
"""

from __future__ import annotations

from fakekube.apis.rest.strategy import Strategy, WriteContext
from fakekube.apis.well_known import ENFORCE_MOUNTABLE_SECRETS_ANNOTATION
from fakekube.base.objects import Object

_MOUNTABLE_SECRETS_TEXT = (
    f"metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS_ANNOTATION}]: deprecated in v1.32+; "
    "prefer separate namespaces to isolate access to mounted secrets"
)


class ServiceAccountStrategy(Strategy):
    """The strategy of serviceaccounts."""

    delete_returns_object = True
    checks_metadata_again = True

    def prepare_for_create(self, context: WriteContext, obj: Object) -> None:
        _keep_names(obj)

    def prepare_for_update(self, context: WriteContext, obj: Object, old: Object) -> None:
        _keep_names(obj)

    def warnings(self, context: WriteContext, obj: Object, old: Object | None) -> list[str]:
        annotations, before = ((o or {}).get("metadata", {}).get("annotations") or () for o in (obj, old))
        new = ENFORCE_MOUNTABLE_SECRETS_ANNOTATION in annotations and ENFORCE_MOUNTABLE_SECRETS_ANNOTATION not in before
        return [_MOUNTABLE_SECRETS_TEXT] if new else []


def _keep_names(obj: Object) -> None:
    """Drops all fields but the name of references to secrets."""
    secrets = obj.get("secrets")
    if secrets:
        obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]
