"""Serves /version: the emulated version of Kubernetes.

Specified by: k8s.io/apiserver/pkg/server/routes/version.go, k8s.io/apimachinery/pkg/version.
"""

from __future__ import annotations

from typing import Final

#: Emulated minor version → the patch release that it was compared with.
_PATCHES: Final = {"1.36": 3}


def git_version(minor: str) -> str:
    """Returns the release, for example v1.36.3."""
    return f"v{minor}.{_PATCHES.get(minor, 0)}"


def user_agent(program: str, minor: str) -> str:
    """Returns the User-Agent of client-go (DefaultKubernetesUserAgent) for a program of a release."""
    info = version_info(minor)
    return f"{program}/{info['gitVersion']} ({info['platform']}) kubernetes/{info['gitCommit'][:7]}"


def version_info(minor: str) -> dict[str, str]:
    """Returns the content of /version for a minor version ("1.36"). Build fields are placeholders."""
    major, _, number = minor.partition(".")
    return {
        "major": major,
        "minor": number,
        "emulationMajor": major,
        "emulationMinor": number,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(number) - 1),
        "gitVersion": git_version(minor),
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "go1.26.8",
        "compiler": "gc",
        "platform": "linux/amd64",
    }
