"""Writes a folder with stand-ins for kube-apiserver, etcd and kubectl, as KUBEBUILDER_ASSETS names it.

Each stand-in is a small shell script. It answers --help and --version itself, because envtest asks for them at each start,
and becomes Python by `exec` for the rest, so that the process that was started is the one that serves. Python starts
without site and with the folders of modules written down, which takes half as long; a folder therefore belongs to the
environment of Python that wrote it.

Invariant: a file is replaced as a whole, so that suites that run meanwhile are not disturbed.

Specified by: sigs.k8s.io/controller-runtime/pkg/internal/testing/process (bin_path_finder.go, process.go: CheckFlag) and
tools/setup-envtest (store/store.go, versions/version.go).
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["BINARIES", "default_folder", "installed_folder", "write_folder"]

BINARIES = ("etcd", "kube-apiserver", "kubectl")

#: How Go names this machine's architecture; others as Python names them.
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
    "import gc, sys; gc.disable(); sys.path[:] = {path}; from fakekube.envtest.kube_apiserver import main; "
    "sys.exit(main(sys.argv[1:], profile={profile!r}, controllers={controllers!r}, control={control}))"
)

_KUBECTL = """\
#!/bin/sh
# kubectl of fakekube: the first other kubectl on the PATH, else a small one of its own. Written by `fakekube envtest`.
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

_KUBECTL_CODE = "import sys; sys.path[:] = {path}; from fakekube.envtest.kubectl import main; sys.exit(main(sys.argv[1:]))"


def default_folder() -> Path:
    """Returns the folder of `fakekube envtest` without --dir: in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "fakekube" / "envtest"


def installed_folder(version: str) -> Path:
    """Returns the folder of a version (1.36.3) in the store of setup-envtest."""
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / _data_home()
    return Path(data) / "kubebuilder-envtest" / "k8s" / f"{version}-{platform.system().lower()}-{architecture}"


def _data_home() -> str:
    return "Library/Application Support" if platform.system() == "Darwin" else ".local/share"


def write_folder(
    folder: Path, *, version: str, profile: str = "envtest", controllers: Sequence[str] | None = None, control: bool = False
) -> None:
    """Writes the stand-ins to a folder, which is made if need be. Raises OSError.

    Args:
        folder: where; files of the same names are replaced.
        version: what `--version` says, such as v1.36.3.
        profile: that of the API server's cluster.
        controllers: which controllers run, as `Cluster` takes them; None for those of the profile.
        control: whether the API server has the control prefix /fakekube/v1.
    """
    folder.mkdir(parents=True, exist_ok=True)
    python, path = shlex.quote(sys.executable), json.dumps(_module_path())
    etcd = Path(__file__).with_name("etcd.py")
    switches = None if controllers is None else list(controllers)
    code = _API_SERVER_CODE.format(path=path, profile=profile, controllers=switches, control=control)
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
    """Returns where this process finds modules: this package first, then the rest as it stands, without the working folder."""
    own = str(Path(__file__).parents[2])
    return list(dict.fromkeys([own, *(str(Path(entry).absolute()) for entry in sys.path if entry and Path(entry).exists())]))


def _replace(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).chmod(0o755)
    os.replace(name, path)


# ---------------------------------------------------------------- help texts

#: Searched for lines that begin with the flags that envtest knows only of some releases.
_ETCD_HELP = """\
Usage:

  etcd [flags]
    Start an etcd server: fakekube's stand-in, whose API server keeps the objects itself.

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
The Kubernetes API server validates and configures data for the api objects. This is fakekube's stand-in, in memory.

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
