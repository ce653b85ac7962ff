"""Writes a folder for KUBEBUILDER_ASSETS with replacements for kube-apiserver, etcd and kubectl.

Each replacement is a small shell script. It handles --help and --version itself, because envtest calls them at each start, and
otherwise executes Python with `exec`, so that the started process is the one that serves. Python runs without the module `site`
and with a fixed sys.path, which halves its start time; a folder can therefore only be used with the Python environment that wrote
it.

Invariant: files are replaced atomically, so that suites can run meanwhile.

Specified by: sigs.k8s.io/controller-runtime/pkg/internal/testing/process (bin_path_finder.go, process.go: CheckFlag) and
tools/setup-envtest (store/store.go, versions/version.go).
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fakekube.apimachinery.data import DEFAULT

BINARIES = ("etcd", "kube-apiserver", "kubectl")

#: Python's name of an architecture → Go's name, if they differ.
_ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "i686": "386"}

_HELP = """\
#!/bin/sh
# {name} of fakekube: written by `fakekube envtest`.
for argument; do
  case $argument in
  --help|-help|-h) printf '%s\\n' {help}; exit 0 ;;
  --version|-version) printf '%s\\n' {version}; exit 0 ;;
  esac
done
"""

_ETCD = 'exec {python} -I -S {script} "$@"\n'

_API_SERVER = 'exec {python} -I -S -c {code} "$@"\n'

_API_SERVER_CODE = (
    "import gc, sys; gc.disable(); sys.path[:] = {path}; from fakekube.cli.envtest.kube_apiserver import main; "
    "sys.exit(main(sys.argv[1:], profile={profile!r}, controllers={controllers!r}, control={control}, minor={minor!r}))"
)

_KUBECTL = """\
#!/bin/sh
# kubectl of fakekube: executes the first other kubectl on the PATH, else a small replacement. Written by `fakekube envtest`.
here=$(dirname -- "$0") && here=$(cd -- "$here" && pwd -P)
IFS=:
for folder in $PATH; do
  if [ -x "$folder/kubectl" ] && [ ! -d "$folder/kubectl" ] && [ "$(cd -- "$folder" && pwd -P)" != "$here" ]; then
    unset IFS
    exec "$folder/kubectl" "$@"
  fi
done
unset IFS
exec {python} -I -c {code} "$@"
"""

_KUBECTL_CODE = "import sys; sys.path[:] = {path}; from fakekube.cli.envtest.kubectl import main; sys.exit(main(sys.argv[1:]))"


def default_folder() -> Path:
    """Returns the default of --dir of `fakekube envtest`: a folder in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "fakekube" / "envtest"


def installed_folder(version: str) -> Path:
    """Returns the folder of a version (1.36.3) in the store of setup-envtest."""
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    if platform.system() == "Darwin":
        store = Path.home() / "Library" / "Application Support" / "io.kubebuilder.envtest"
    else:
        store = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "kubebuilder-envtest"
    return store / "k8s" / f"{version}-{platform.system().lower()}-{architecture}"


def named_release(folder: Path) -> str | None:
    """Returns the release that a folder is named after by setup-envtest: 1.34.1 of 1.34.1-linux-amd64; None if there is none."""
    found = re.fullmatch(r"v?(\d+\.\d+\.\d+)(-\w+){2}", folder.name)
    return found[1] if found else None


def write_folder(
    folder: Path,
    *,
    version: str,
    minor: str = DEFAULT,
    profile: str = "apiserver",
    controllers: Sequence[str] | None = None,
    control: bool = False,
) -> None:
    """Writes the replacements to a folder, which is created if necessary. Raises OSError.

    Args:
        folder: where to write; files of the same names are replaced.
        version: the output of `--version`, such as v1.36.3.
        minor: the minor of Kubernetes that the API server emulates.
        profile: the profile of the cluster, unless the suite chooses another one (`command_line.PROFILE_FLAG`).
        controllers: the argument `controllers` of `Cluster`; None for the controllers of the profile.
        control: whether to serve the control API, /fakekube/v1.
    """
    folder.mkdir(parents=True, exist_ok=True)
    python, path = shlex.quote(sys.executable), json.dumps(_module_path())
    etcd = Path(__file__).with_name("etcd.py")
    switches = None if controllers is None else list(controllers)
    code = _API_SERVER_CODE.format(path=path, profile=profile, controllers=switches, control=control, minor=minor)
    texts = {
        "etcd": _head("etcd", _ETCD_HELP, "etcd Version: 3.6.8") + _ETCD.format(python=python, script=shlex.quote(str(etcd))),
        "kube-apiserver": _head("kube-apiserver", _API_SERVER_HELP, f"Kubernetes {version}")
        + _API_SERVER.format(python=python, code=shlex.quote(code)),
        "kubectl": _KUBECTL.format(python=python, code=shlex.quote(_KUBECTL_CODE.format(path=path))),
    }
    for name in BINARIES:
        _replace(folder / name, texts[name])


def _head(name: str, text: str, version: str) -> str:
    return _HELP.format(name=name, help=shlex.quote(text), version=shlex.quote(version))


def _module_path() -> list[str]:
    """Returns the sys.path for the replacements: this package first, then that of this process without the working folder."""
    own = str(Path(__file__).parents[3])
    return list(dict.fromkeys([own, *(str(Path(entry).absolute()) for entry in sys.path if entry and Path(entry).exists())]))


def _replace(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).chmod(0o755)
    os.replace(name, path)


# --- Help texts -------------------------------------------------------------------------------------------------------

#: envtest searches these texts for lines that begin with flags that only some releases have.
_ETCD_HELP = """\
Usage:

  etcd [flags]
    Start an etcd server: the replacement of fakekube, whose API server keeps the objects itself.

Flags with an effect:
  --listen-client-urls 'http://localhost:2379'
    List of URLs to listen on for client traffic.

Flags without one, among others:
  --data-dir 'default.etcd'
  --wal-dir ''
  --listen-peer-urls 'http://localhost:2380'
  --advertise-client-urls 'http://localhost:2379'
  --unsafe-no-fsync 'false'"""

_API_SERVER_HELP = """\
The Kubernetes API server validates and configures data for the api objects. This is the replacement of fakekube, in memory.

Usage:
  kube-apiserver [flags]

Secure serving flags:
      --bind-address ip                       The IP address on which to listen for the --secure-port port.
      --cert-dir string                       The directory where the TLS certs are located.
      --secure-port int                       The port on which to serve HTTPS. (default 6443)
      --tls-cert-file string                  File containing the default x509 Certificate for HTTPS.
      --tls-private-key-file string           File containing the default x509 private key matching --tls-cert-file.

Authentication and authorization flags:
      --anonymous-auth                        Enables anonymous requests to the secure port.
      --api-audiences strings                 Identifiers of the API.
      --authentication-config string          File with Authentication Configuration.
      --authorization-config string           File with Authorization Configuration.
      --authorization-mode strings            Ordered list of plug-ins to do authorization on the secure port.
      --authorization-webhook-config-file string
      --client-ca-file string                 Authorities of client certificates.
      --requestheader-client-ca-file string   Authorities of front proxies.
      --service-account-issuer stringArray    Identifier of the service account token issuer.
      --service-account-key-file stringArray  Files with keys that verify service account tokens.
      --service-account-signing-key-file string
      --token-auth-file string                File with static tokens.

Other flags with an effect:
      --admission-control-config-file string
      --audit-log-path string
      --audit-policy-file string
      --audit-webhook-config-file string
      --disable-admission-plugins strings
      --enable-admission-plugins strings
      --feature-gates strings
      --service-cluster-ip-range string
      --service-node-port-range portRange

Flags without one are accepted."""
