"""The files of images: programs and system files that are the same in all images, and the pages of web servers.

Specified by: the images busybox, nginx, httpd and coredns; pkg/kubelet/kubelet_pods.go (ensureHostsFile),
pkg/kubelet/network/dns.
"""

from __future__ import annotations

import posixpath
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from fakekube.base.objects import StoredObject
from fakekube.nodes.images.names import base_name
from fakekube.nodes.runtime.commands import APPLETS
from fakekube.nodes.runtime.dns import Resolver
from fakekube.nodes.runtime.filesystem import Device, Directory, File, FileSystem, MountNamespace, Space, Symlink

if TYPE_CHECKING:
    from fakekube.nodes.images.image import Image


#: The bytes that the files of a node may have.
NODE_CAPACITY: Final = 256 * 1024 * 1024
#: The content of a program file is this and the name of the command.
APPLET: Final = b"\x7fELF fakekube "
#: The content of the file of an image's own program is this and its name.
PROGRAM: Final = b"\x7fELF fakekube program "
_FOLDERS: Final = ("bin", "dev", "dev/pts", "etc", "home", "proc", "root", "run", "sbin", "sys", "tmp", "usr",
                   "usr/bin", "usr/local", "usr/local/bin", "usr/sbin", "var", "var/log", "var/run", "var/tmp", "opt", "mnt",
                   "srv")  # fmt: skip
_DEVICES: Final = {"null": "null", "zero": "zero", "random": "random", "urandom": "random", "stdin": "fd0", "stdout": "fd1",
                   "stderr": "fd2", "tty": "tty"}  # fmt: skip
_PASSWD: Final = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n"
_GROUP: Final = "root:x:0:\nnobody:x:65534:\n"

_NGINX_LINES: Final = (
    "/docker-entrypoint.sh: /docker-entrypoint.d/ is not empty, will attempt to perform configuration",
    "/docker-entrypoint.sh: Configuration complete; ready for start up",
    "[notice] 1#1: start worker processes",
)
#: Of v1.13.1, with the hash of kubeadm's Corefile; the line about GOMAXPROCS, which tells the node's processors, is left out.
_COREDNS_LINES: Final = (
    ".:53",
    "[INFO] plugin/reload: Running configuration SHA512 = 1b226df79860026c6a52e67daa10d7f0d57ec5b023288ec00c5e05f93523c894"
    "564e15b91770d3a07ae1cfbe861d15b37d4a0027e69c546ab112970993a3b03b",
    "CoreDNS-1.13.1",
    "linux/amd64, go1.25.2, 1db4568",
)
#: The log lines at the start of an image without a command.
START_LINES: Final[Mapping[str, Sequence[str]]] = {"nginx": _NGINX_LINES, "coredns": _COREDNS_LINES}


#: The directory that the web server of an image serves.
WEB_ROOTS: Final[Mapping[str, str]] = {"nginx": "/usr/share/nginx/html", "httpd": "/usr/local/apache2/htdocs"}


def page(image: str) -> bytes:
    """Returns the page that the web server of an image serves."""
    name = base_name(image) or "fakekube"
    if name == "httpd":
        return b"<html><body><h1>It works!</h1></body></html>\n"
    return (
        f"<!DOCTYPE html>\n<html>\n<head>\n<title>Welcome to {name}!</title>\n</head>\n<body>\n"
        f"<h1>Welcome to {name}!</h1>\n</body>\n</html>\n"
    ).encode()


def default_application(
    pod: Mapping[str, Any], spec: Mapping[str, Any], port: int, files: Callable[[], FileSystem]
) -> Callable[..., Iterable[bytes]]:
    """Returns the default application of a container: serves the files of the images nginx and httpd, else a page with the
    name of the image."""
    image = spec.get("image", "")

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"] or "/"
        if base_name(image) in WEB_ROOTS:
            status, body, kind = _file(files(), WEB_ROOTS[base_name(image)] + path)
        else:
            status, body, kind = HTTPStatus.OK, page(image), "text/html"
        headers = [("Content-Type", kind), ("Content-Length", str(len(body))), ("Server", base_name(image) or "fakekube")]
        start_response(f"{status.value} {status.phrase}", headers)
        return [body]

    return application


def _file(files: FileSystem, path: str) -> tuple[HTTPStatus, bytes, str]:
    """Returns the response with a file, or with the index of a directory: status, body and media type."""
    import mimetypes

    try:
        body = files.read(f"{path}index.html" if path.endswith("/") else path)
    except OSError:
        is_directory = path.endswith("/") and files.exists(path)
        status = HTTPStatus.FORBIDDEN if is_directory else HTTPStatus.NOT_FOUND  # a directory is not listed
        return status, f"<html><head><title>{status.value} {status.phrase}</title></head></html>\n".encode(), "text/html"
    kind = "text/html" if path.endswith("/") else mimetypes.guess_type(path)[0] or "application/octet-stream"
    return HTTPStatus.OK, body, kind


def root_of(name: str, now: float, image: Image | None = None) -> Directory:
    """Returns the root directory of a new container.

    Args:
        name: the name of the image.
        now: the time of its files, in seconds since 1970.
        image: the image, if it is known.
    """
    root = Directory(mtime=now)
    files = FileSystem(root, lambda: now)
    for folder in _FOLDERS:
        files.make_directory(f"/{folder}", mode=0o1777 if folder in ("tmp", "var/tmp") else 0o755)
    base = base_name(name)
    if image is None or image.shell:
        _install_shell(files, frozenset() if image is None else image.lacks)
    for device_name, device in _DEVICES.items():
        files.add(f"/dev/{device_name}", Device(0o666, mtime=now, name=device))
    files.write("/etc/passwd", _PASSWD.encode())
    files.write("/etc/group", _GROUP.encode())
    system = image.system if image is not None else ""
    files.write(
        "/etc/os-release", f'NAME="{system or "fakekube"}"\nID={base or "fakekube"}\nPRETTY_NAME="{system or name}"\n'.encode()
    )
    if base in WEB_ROOTS:
        files.make_directories(WEB_ROOTS[base])
        files.write(f"{WEB_ROOTS[base]}/index.html", page(name))
    if base == "nginx":
        files.make_directories("/etc/nginx/conf.d")
        files.write("/etc/nginx/nginx.conf", b"events {}\nhttp { include /etc/nginx/conf.d/*.conf; }\n")
    if image is not None:
        _install_image(files, image)
    return root


def _install_shell(files: FileSystem, lacks: frozenset[str]) -> None:
    """Writes the applets of the shell, except those that an image lacks."""
    programs, now = files.directory("/bin").own, files.now()
    for name in APPLETS:
        if name not in lacks:
            programs[name] = File(0o755, mtime=now, data=bytearray(APPLET + name.encode() + b"\n"))
    files.add("/usr/bin/env", Symlink(target="/bin/env", mtime=now))


def _install_image(files: FileSystem, image: Image) -> None:
    """Writes the programs and files of an image."""
    for name in image.programs:
        path = name if name.startswith("/") else f"/usr/local/bin/{name}"
        files.make_directories(posixpath.dirname(path))
        files.write(path, PROGRAM + name.encode() + b"\n", mode=0o755)
    for path, content in image.files.items():
        files.make_directories(posixpath.dirname(path))
        made = content() if callable(content) else content
        files.write(path, made.encode() if isinstance(made, str) else made)


def node_root(node: str, now: float) -> FileSystem:
    """Returns the files of a node."""
    files = FileSystem(Directory(mtime=now, kind="ext4"), lambda: now, Space(NODE_CAPACITY))
    for path in ("/bin", "/dev", "/usr/bin", "/etc", "/tmp", "/var/lib", "/var/log", "/run", "/proc/1/ns"):
        files.make_directories(path)
    files.directory("/tmp").mode = 0o1777
    _install_shell(files, frozenset())
    for name, device in _DEVICES.items():
        files.add(f"/dev/{name}", Device(0o666, mtime=now, name=device))
    files.add("/proc/1/ns/mnt", MountNamespace(0o444, mtime=now, files=weakref.ref(files)))
    files.write("/etc/hosts", f"127.0.0.1\tlocalhost\n127.0.1.1\t{node}\n".encode())
    files.write("/etc/hostname", f"{node}\n".encode())
    return files


def hostname_of(pod: StoredObject) -> str:
    """Returns the host name of a pod's containers."""
    spec = pod["spec"]
    if spec.get("hostNetwork"):
        return str(spec.get("nodeName", ""))
    if spec.get("hostnameOverride"):
        return str(spec["hostnameOverride"])
    hostname = str(spec.get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")
    if spec.get("setHostnameAsFQDN") and spec.get("subdomain"):
        return f"{hostname}.{spec['subdomain']}.{pod['metadata']['namespace']}.svc.cluster.local"
    return hostname


def install(pod: StoredObject, files: FileSystem, resolver: Resolver) -> None:
    """Writes the files that a kubelet adds: /etc/hosts, /etc/hostname, /etc/resolv.conf."""
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    hostname, address = hostname_of(pod), (pod.get("status") or {}).get("podIP", "")
    full = f"{hostname}.{spec['subdomain']}.{namespace}.svc.cluster.local" if spec.get("subdomain") else ""
    managed = " (host network)" if spec.get("hostNetwork") else ""
    hosts = f"# Kubernetes-managed hosts file{managed}.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
    hosts += f"{address}\t{full + chr(9) if full else ''}{hostname}\n" if address else ""
    aliases = [f"{one['ip']}\t{chr(9).join(one.get('hostnames') or ())}\n" for one in spec.get("hostAliases") or ()]
    hosts += ("\n# Entries added by HostAliases.\n" + "".join(aliases)) if aliases else ""
    for path, text in (("/etc/hosts", hosts), ("/etc/hostname", f"{hostname}\n"), ("/etc/resolv.conf", str(resolver))):
        if not isinstance(files.place(path).node, File):
            files.write(path, text.encode())
