"""/version: which Kubernetes this claims to be.

Specified by: k8s.io/apiserver/pkg/server/routes/version.go, k8s.io/apimachinery/pkg/version.
"""

from __future__ import annotations

from typing import Final

__all__ = ["git_version", "user_agent", "version_info"]

#: The patch release that each emulated minor was compared with.
_PATCHES: Final = {"1.36": 3}


def git_version(minor: str) -> str:
    """The release, say v1.36.3."""
    return f"v{minor}.{_PATCHES.get(minor, 0)}"


def user_agent(program: str, minor: str) -> str:
    """As client-go's DefaultKubernetesUserAgent makes it for a program of a release."""
    info = version_info(minor)
    return f"{program}/{info['gitVersion']} ({info['platform']}) kubernetes/{info['gitCommit'][:7]}"


def version_info(minor: str) -> dict[str, str]:
    """What /version says of an emulated minor ("1.36"). Who built it, and when, is nobody's."""
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
