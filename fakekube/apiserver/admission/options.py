"""The flags of kube-apiserver about admission, and the admission control configuration file.

Reads the admission control configuration file, with the configuration of each plugin.

A file is an AdmissionConfiguration, whose plugins have their configuration inline or in another file; or, in the legacy
format, the configuration of ImagePolicyWebhook or PodNodeSelector itself.

Specified by: k8s.io/apiserver/pkg/server/options/admission.go; k8s.io/apiserver/pkg/admission/config.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakekube.apimachinery.codecs import yaml
from fakekube.apimachinery.codecs.errors import DecodeError
from fakekube.base.golang.strconv import go_quote


@dataclass(slots=True, frozen=True)
class AdmissionOptions:
    """The flags that select and configure admission plugins."""

    enable_admission_plugins: Sequence[str] = ()
    """Plugins that run although they are off by default."""
    disable_admission_plugins: Sequence[str] = ()
    """Plugins that do not run although they are on by default."""
    admission_control_config_file: str = ""
    """The path of an AdmissionConfiguration, which has the configurations of plugins."""


_GROUP, _KIND = "apiserver.config.k8s.io", "AdmissionConfiguration"
_VERSIONS = ("v1", "v1alpha1")
#: Field that identifies a configuration without kind → its plugin.
_LEGACY = {"imagePolicy": "ImagePolicyWebhook", "podNodeSelectorPluginConfig": "PodNodeSelector"}


class ConfigurationError(ValueError):
    """The file, or the configuration of a plugin, is invalid; the text is the reason."""


def read_configuration(path: str) -> Mapping[str, Any]:
    """Returns the configurations in a file, by plugin name. Raises ConfigurationError."""
    value = _document(Path(path))
    if not isinstance(value, dict):
        raise ConfigurationError(f"{path} is no {_KIND}")
    group, _, version = str(value.get("apiVersion", "")).rpartition("/")
    if (group, value.get("kind")) != (_GROUP, _KIND) or version not in _VERSIONS:
        found = {name: value for member, name in _LEGACY.items() if member in value}
        if not found:
            kind = f"no kind {go_quote(str(value.get('kind', '')))} is registered"
            raise ConfigurationError(f"{kind} for version {go_quote(str(value.get('apiVersion', '')))}")
        return found
    return {str(entry.get("name")): _configuration(entry, Path(path).parent) for entry in value.get("plugins") or ()}


def _configuration(entry: Mapping[str, Any], folder: Path) -> Any:
    if entry.get("configuration") is not None:
        return entry["configuration"]
    return _document(folder / entry["path"]) if entry.get("path") else None


def _document(path: Path) -> Any:
    """Raises ConfigurationError."""
    try:
        return yaml.loads(path.read_bytes())[0]
    except OSError as error:
        problem = f"{go_quote(str(path))} [open {path}: {(error.strerror or 'unreadable').lower()}]"
        raise ConfigurationError(f"unable to read admission control configuration from {problem}") from None
    except DecodeError as error:
        raise ConfigurationError(f"{path}: {error}") from None
