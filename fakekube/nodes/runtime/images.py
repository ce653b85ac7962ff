"""The files of images: programs and system files that are the same in all images, and the pages of web servers.

Specified by: the images busybox, nginx and httpd; pkg/kubelet/kubelet_pods.go (ensureHostsFile), pkg/kubelet/network/dns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakekube.nodes.runtime.commands import APPLETS
from fakekube.nodes.runtime.filesystem import Device, Directory, File, FileSystem, Node, Symlink

__all__ = ["APPLET", "DEFAULT_COMMANDS", "WEB_ROOTS", "base_name", "install", "page"]

Object = Mapping[str, Any]

#: The content of a program file is this and the name of the command.
APPLET: Final = b"\x7fELF fakekube "
_FOLDERS: Final = ("bin", "dev", "dev/pts", "etc", "home", "proc", "root", "run", "sbin", "sys", "tmp", "usr",
                   "usr/bin", "usr/local", "usr/local/bin", "usr/sbin", "var", "var/log", "var/run", "var/tmp", "opt", "mnt",
                   "srv")  # fmt: skip
_DEVICES: Final = {"null": "null", "zero": "zero", "random": "random", "urandom": "random", "stdin": "fd0", "stdout": "fd1",
                   "stderr": "fd2", "tty": "tty"}  # fmt: skip
_BASH_LESS: Final = frozenset({"busybox", "alpine"})
_CURL_LESS: Final = frozenset({"busybox"})
_PASSWD: Final = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n"
_GROUP: Final = "root:x:0:\nnobody:x:65534:\n"

#: The default command of an image, by the last part of its name.
DEFAULT_COMMANDS: Final[Mapping[str, Sequence[str]]] = {
    "busybox": ("sh",),
    "alpine": ("/bin/sh",),
    "bash": ("bash",),
    "ubuntu": ("/bin/bash",),
    "debian": ("bash",),
}

_NGINX_LINES: Final = (
    "/docker-entrypoint.sh: /docker-entrypoint.d/ is not empty, will attempt to perform configuration",
    "/docker-entrypoint.sh: Configuration complete; ready for start up",
    "[notice] 1#1: start worker processes",
)
#: The log lines at the start of an image without a command.
START_LINES: Final[Mapping[str, Sequence[str]]] = {"nginx": _NGINX_LINES}


#: The directory that the web server of an image serves.
WEB_ROOTS: Final[Mapping[str, str]] = {"nginx": "/usr/share/nginx/html", "httpd": "/usr/local/apache2/htdocs"}


def base_name(image: str) -> str:
    """Returns the last part of an image's name, without tag and digest."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def page(image: str) -> bytes:
    """Returns the page that the web server of an image serves."""
    name = base_name(image) or "fakekube"
    if name == "httpd":
        return b"<html><body><h1>It works!</h1></body></html>\n"
    return (
        f"<!DOCTYPE html>\n<html>\n<head>\n<title>Welcome to {name}!</title>\n</head>\n<body>\n"
        f"<h1>Welcome to {name}!</h1>\n</body>\n</html>\n"
    ).encode()


def root_of(image: str, now: float) -> Directory:
    """Returns the root directory of a new container."""
    root = Directory(mtime=now)
    files = FileSystem(root, lambda: now)
    for folder in _FOLDERS:
        files.make_directory(f"/{folder}", mode=0o1777 if folder in ("tmp", "var/tmp") else 0o755)
    base = base_name(image)
    absent = ({"bash", "dash"} if base in _BASH_LESS else set()) | ({"curl"} if base in _CURL_LESS else set())
    programs = files.directory("/bin").own
    for name in APPLETS:
        if name not in absent:
            programs[name] = File(0o755, mtime=now, data=bytearray(APPLET + name.encode() + b"\n"))
    files.add("/usr/bin/env", Symlink(target="/bin/env", mtime=now))
    for name, device in _DEVICES.items():
        files.add(f"/dev/{name}", Device(0o666, mtime=now, name=device))
    files.write("/etc/passwd", _PASSWD.encode())
    files.write("/etc/group", _GROUP.encode())
    files.write("/etc/os-release", f'NAME="fakekube"\nID={base or "fakekube"}\nPRETTY_NAME="{image}"\n'.encode())
    if base in WEB_ROOTS:
        files.make_directories(WEB_ROOTS[base])
        files.write(f"{WEB_ROOTS[base]}/index.html", page(image))
    if base == "nginx":
        files.make_directories("/etc/nginx/conf.d")
        files.write("/etc/nginx/nginx.conf", b"events {}\nhttp { include /etc/nginx/conf.d/*.conf; }\n")
    return root


def install(pod: Object, files: FileSystem) -> None:
    """Writes the files that a kubelet adds: /etc/hosts, /etc/hostname, /etc/resolv.conf."""
    spec, name, namespace = pod["spec"], pod["metadata"]["name"], pod["metadata"]["namespace"]
    hostname, address = spec.get("hostname") or name, (pod.get("status") or {}).get("podIP", "")
    full = f"{hostname}.{spec['subdomain']}.{namespace}.svc.cluster.local" if spec.get("subdomain") else ""
    hosts = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
    hosts += f"{address}\t{full + chr(9) if full else ''}{hostname}\n" if address else ""
    aliases = [f"{one['ip']}\t{chr(9).join(one.get('hostnames') or ())}\n" for one in spec.get("hostAliases") or ()]
    hosts += ("\n# Entries added by HostAliases.\n" + "".join(aliases)) if aliases else ""
    for path, text in (("/etc/hosts", hosts), ("/etc/hostname", f"{hostname}\n"), ("/etc/resolv.conf", _resolv_conf(pod))):
        if not isinstance(_node(files, path), File):
            files.write(path, text.encode())


def _resolv_conf(pod: Object) -> str:
    """Returns the resolver configuration: that of the cluster, unless dnsPolicy is None, with the pod's dnsConfig
    (GetPodDNS)."""
    searches, servers, options = list[str](), list[str](), dict[str, str]()
    if pod["spec"].get("dnsPolicy") != "None":
        searches = [f"{pod['metadata']['namespace']}.svc.cluster.local", "svc.cluster.local", "cluster.local"]
        servers, options = ["10.96.0.10"], {"ndots": "5"}
    own = pod["spec"].get("dnsConfig") or {}
    searches += own.get("searches") or ()
    servers += own.get("nameservers") or ()
    options |= {one["name"]: one.get("value") or "" for one in own.get("options") or ()}
    lines = [f"search {' '.join(dict.fromkeys(searches))}\n"] if searches else []
    lines += [f"nameserver {server}\n" for server in dict.fromkeys(servers)]
    shown = [f"{name}:{value}" if value else name for name, value in options.items()]
    return "".join(lines) + (f"options {' '.join(shown)}\n" if shown else "")


def _node(files: FileSystem, path: str) -> Node | None:
    return files.place(path).node
