"""The authorizers of one cluster, by the flags --authorization-mode or --authorization-config.

Specified by: k8s.io/kubernetes/pkg/kubeapiserver/authorizer (config.go, reload.go) and
pkg/kubeapiserver/options/authorization.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fakekube.auth.authorization import AlwaysAllow, AlwaysDeny, PrivilegedGroup, RuleResolver, UnionAuthorizer
from fakekube.auth.options import AuthorizationOptions, OptionError

__all__ = ["MODES", "Factories", "authorizer_of"]

#: Modes that a cluster knows; ABAC, which the real server also has, is not there.
MODES: Final = ("AlwaysAllow", "AlwaysDeny", "Webhook", "RBAC", "Node")

Factories = Mapping[str, Callable[[], RuleResolver]]
"""What makes the authorizers that need the cluster: RBAC and Node."""


def authorizer_of(options: AuthorizationOptions, factories: Factories) -> UnionAuthorizer:
    """Who decides, after the privileged group. Raises OptionError."""
    if options.authorization_config:
        raise OptionError("--authorization-config")
    authorizers = [_of_mode(mode, options, factories) for mode in _checked(options.authorization_mode)]
    return UnionAuthorizer(PrivilegedGroup(), *authorizers)


def _checked(modes: Sequence[str]) -> Sequence[str]:
    """Raises OptionError for modes that are unknown or named twice."""
    if not modes:
        raise OptionError("at least one authorization-mode must be passed")
    for mode in modes:
        if mode not in MODES:
            raise OptionError(f'authorization-mode "{mode}" is not a valid mode')
    if len(set(modes)) != len(modes):
        raise OptionError(f"authorization-mode {modes!r} has mode specified more than once")
    return modes


def _of_mode(mode: str, options: AuthorizationOptions, factories: Factories) -> RuleResolver:
    if mode == "AlwaysAllow":
        return AlwaysAllow()
    if mode == "AlwaysDeny":
        return AlwaysDeny()
    if mode == "Webhook":
        raise OptionError("--authorization-webhook-config-file")
    return factories[mode]()
