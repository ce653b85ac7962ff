"""The volumes of a pod.

ConfigMaps, Secrets, the downward API and projected volumes have the layout of a kubelet's atomic writer: a directory with a
timestamp, the link `..data` to it, and a link for each file. Their content is computed when it is read, so that it is always
up to date; a kubelet takes up to a minute. With `subPath` the content is that at the start of the container.

Invariant: all containers of a pod mount the same directory for a volume.

Specified by: pkg/kubelet/kubelet_pods.go (makeMounts); pkg/volume (configmap, secret, downwardapi, projected, emptydir),
pkg/volume/util/atomic_writer.go.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Callable, Mapping
from stat import S_ISGID, S_ISVTX
from typing import Final, NamedTuple

from fakekube.apimachinery.schema.quantity import parse
from fakekube.apimachinery.selectors import from_label_selector
from fakekube.apis.core.pods.visitor import containers
from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.base.golang import pem
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import StoredObject
from fakekube.nodes.runtime.environment import expand, field_value, resource_value, values_of
from fakekube.nodes.runtime.filesystem import (
    SET_GROUP,
    BlockDevice,
    Device,
    Directory,
    File,
    FileSystem,
    Node,
    Socket,
    Symlink,
    oserror,
)


class _Content(NamedTuple):
    """The content, the mode and the owner of a file in a volume."""

    data: bytes
    mode: int
    uid: int = 0


#: Type of a hostPath → the type of the file that it must be, and its name.
_HOST_PATHS: Final[Mapping[str, tuple[type[Node], str]]] = {
    "Directory": (Directory, "directory"),
    "DirectoryOrCreate": (Directory, "directory"),
    "File": (File, "file"),
    "FileOrCreate": (File, "file"),
    "Socket": (Socket, "socket file"),
    "CharDevice": (Device, "character device"),
    "BlockDevice": (BlockDevice, "block device"),
}


def host_path_error(files: FileSystem, source: StoredObject) -> str:
    """Returns why a hostPath cannot be mounted: the files of the node have something else at its path; "" if it can."""
    expected = _HOST_PATHS.get(source.get("type") or "")
    if expected is None:
        return ""
    path, (type_, name) = source["path"], expected
    if not files.exists(path):
        is_there = source["type"].endswith("OrCreate")
    else:
        is_there = isinstance(files.node(path), type_)
    return "" if is_there else f"hostPath type check failed: {path} is not a {name}"


def local_path_error(files: FileSystem, cluster: ClusterAccess, namespace: str, claim: str) -> str:
    """Returns the message of the event about a claim whose local volume is not on the node; "" if there is nothing to tell."""
    bound = _volume_of(cluster, namespace, claim)
    path = "" if bound is None else (bound["spec"].get("local") or {}).get("path", "")
    if bound is None or not path or files.exists(path):
        return ""
    name = bound["metadata"]["name"]
    return f'MountVolume.NewMounter initialization failed for volume "{name}" : path {go_quote(path)} does not exist'


def _volume_of(cluster: ClusterAccess, namespace: str, claim: str) -> StoredObject | None:
    """Returns the PersistentVolume to which a claim is bound; None if it is not bound."""
    found = cluster.get("", "persistentvolumeclaims", namespace, claim)
    name = found["spec"].get("volumeName") if found is not None else None
    return cluster.get("", "persistentvolumes", "", name) if name else None


def bytes_of(node: Node) -> int:
    """Returns the bytes that a node and what is below it take."""
    inner = list(node.own.values()) if isinstance(node, Directory) else ()
    return node.taken + sum(map(bytes_of, inner))


#: The directory of the volumes that all nodes reach.
_SHARED: Final = "/volumes"


def _shared_name(volume: StoredObject) -> str:
    """Returns the name of the directory of a PersistentVolume that all nodes reach."""
    return f"{volume['metadata']['name']} {volume['metadata']['uid']}"


class Volumes:
    """The volumes of one pod.

    Args:
        pod: returns the current Pod object.
        cluster: access to ConfigMaps, Secrets and ClusterTrustBundles.
        now: returns the seconds since 1970.
        token: returns a service account token for an audience and a lifetime in seconds.
        node: returns the node of the pod.
        node_files: returns the files of the node.
        shared_files: returns the files of the volumes that all nodes reach.
        image_root: returns the root directory of an image.
        credential: returns the key and the certificates of a source `podCertificate`, by its volume and index.
    """

    def __init__(
        self,
        pod: Callable[[], StoredObject],
        cluster: ClusterAccess,
        now: Callable[[], float],
        token: Callable[[str, int], str],
        node: Callable[[], StoredObject | None],
        *,
        node_files: Callable[[], FileSystem],
        shared_files: Callable[[], FileSystem],
        image_root: Callable[[str], Directory],
        credential: Callable[[str, int], tuple[bytes, bytes]],
    ) -> None:
        self._pod, self._cluster, self._now, self._token, self._node = pod, cluster, now, token, node
        self._node_files, self._shared_files, self._image_root = node_files, shared_files, image_root
        self._credential = credential
        self._directories: dict[str, Node] = {}
        self._stamp = "..2026_01_01_00_00_00.0"

    def count_bytes(self, name: str) -> int:
        """Returns the bytes that the files of a volume take; 0 if it is not mounted."""
        found = self._directories.get(name)
        return 0 if found is None else bytes_of(found)

    def read_file(self, volume: str, path: str) -> bytes:
        """Returns the content of a file in a volume. Raises OSError."""
        found = next((one for one in self._pod()["spec"].get("volumes") or () if one["name"] == volume), None)
        node = None if found is None else self._directory(found)
        if not isinstance(node, Directory):
            raise oserror(errno.ENOENT, path)
        return FileSystem(node, self._now).read(f"/{path}")

    def mount(self, container: StoredObject, environment: Mapping[str, str], files: FileSystem) -> None:
        """Mounts the volumeMounts of a container."""
        volumes = {one["name"]: one for one in self._pod()["spec"].get("volumes") or ()}
        for one in container.get("volumeMounts") or ():
            volume = volumes.get(one["name"])
            if volume is None:
                continue
            node = self._directory(volume)
            sub = one.get("subPath") or expand(one.get("subPathExpr") or "", environment)
            if sub:
                node = self._node_below(node, sub)
            read_only = bool(one.get("readOnly")) or bool(
                {"image", "configMap", "secret", "downwardAPI", "projected"} & volume.keys()
            )
            files.mount(one["mountPath"], node, read_only=read_only)

    def _node_below(self, node: Node, path: str) -> Node:
        """Returns the node at a sub-path: a copy if it is a file with computed content, else the file or directory itself."""
        view = FileSystem(node, self._now) if isinstance(node, Directory) else None
        if view is None:
            return node
        if not view.exists(path):
            return self._make_below(node, path)
        found = view.node(path)
        return (
            File(found.mode, data=bytearray(found.content), mtime=self._now())
            if isinstance(found, File) and found.source
            else found
        )

    def _make_below(self, volume: Node, path: str) -> Node:
        """Makes the directories of a sub-path, with the mode of the volume, and its group if that is inherited."""
        assert isinstance(volume, Directory)
        found, gid = volume, volume.gid if volume.mode & S_ISGID else 0
        for name in [one for one in path.split("/") if one]:
            inner = found.own.setdefault(name, Directory(volume.mode, gid=gid, mtime=self._now(), kind=volume.kind))
            if not isinstance(inner, Directory):  # a link, or what cannot have entries
                return FileSystem(volume, self._now).make_directories(path)
            found = inner
        return found

    def _directory(self, volume: StoredObject) -> Node:
        found = self._directories.get(volume["name"])
        if found is None and "image" in volume:
            found = self._directories[volume["name"]] = self._image_root(volume["image"].get("reference") or "")
        if found is None and (claim := self._claim_of(volume)):
            found = self._directories[volume["name"]] = self._bound_volume(claim, volume)
        if found is None and "hostPath" in volume:
            found = self._directories[volume["name"]] = self._on_node(volume["hostPath"])
        if found is None:
            contents = self._contents_of(volume)
            found = self._empty(volume) if contents is None else self._make_directory(contents)
            self._directories[volume["name"]] = found
        return found

    def _claim_of(self, volume: StoredObject) -> str:
        """Returns the name of the claim of a volume; "" if it has none."""
        if "ephemeral" in volume:
            return f"{self._pod()['metadata']['name']}-{volume['name']}"
        return str((volume.get("persistentVolumeClaim") or {}).get("claimName") or "")

    def _bound_volume(self, claim: str, volume: StoredObject) -> Node:
        """Returns the directory of the volume to which a claim is bound: all pods that use it share it.

        Local volumes and hostPaths are directories of the node, all others of the cluster, also those of the provisioner of
        the default class: a pod finds its data on whatever node it starts again.
        """
        bound = _volume_of(self._cluster, self._pod()["metadata"]["namespace"], claim)
        if bound is None:
            return self._empty(volume)
        from fakekube.controllers.volumes.controller import is_provisioned_here

        if "hostPath" in bound["spec"] and not is_provisioned_here(bound):
            return self._on_node(bound["spec"]["hostPath"])
        if "local" in bound["spec"]:
            made = self._on_node(bound["spec"]["local"])
            if (group := self._fs_group()) is not None:
                _give_to_group(made, group)
            return made
        path = f"{_SHARED}/{_shared_name(bound)}"
        return self._shared_files().node(path) if self._shared_files().exists(path) else self._new_shared(path, volume)

    def _new_shared(self, path: str, volume: StoredObject) -> Node:
        """Makes the directory of a volume; those of volumes that are gone are removed."""
        made, files = self._empty(volume), self._shared_files()
        files.make_directories(_SHARED)
        for name in list(files.directory(_SHARED).own):
            other = self._cluster.get("", "persistentvolumes", "", name.partition(" ")[0])
            if other is None or _shared_name(other) != name:
                files.remove(f"{_SHARED}/{name}")
        files.add(path, made)
        return made

    def _on_node(self, source: StoredObject) -> Node:
        """Returns the file or directory of the node at the path of a hostPath; it is created if it does not exist."""
        files = self._node_files()
        path = source["path"]
        if files.exists(path):
            return files.node(path)
        if (source.get("type") or "").startswith("File"):
            files.make_directories(posixpath.dirname(path))
            return files.write(path, b"")
        return files.make_directories(path)

    def _empty(self, volume: StoredObject) -> Directory:
        """Returns the directory of a volume without content, which belongs to the pod's fsGroup."""
        group = self._fs_group()
        source = volume.get("emptyDir") or {}
        is_memory = source.get("medium") == "Memory"
        mode, kind = 0o777 if group is None else 0o2777, "tmpfs" if is_memory else "ext4"
        mode |= S_ISVTX if is_memory else 0  # as a tmpfs is made
        size = self._memory_size(source.get("sizeLimit")) if is_memory else None
        return Directory(mode, gid=group or 0, mtime=self._now(), kind=kind, size=size)

    def _fs_group(self) -> int | None:
        """Returns the fsGroup of the pod."""
        group = (self._pod()["spec"].get("securityContext") or {}).get("fsGroup")
        return None if group is None else int(group)

    def _fs_user(self) -> int | None:
        """Returns the user as whom all containers run, if that is said of all (FsUserFrom in pkg/volume/util)."""
        pod = self._pod()
        of_pod = (pod["spec"].get("securityContext") or {}).get("runAsUser")
        users = {(one.get("securityContext") or {}).get("runAsUser", of_pod) for one in containers(pod["spec"])}
        user = users.pop() if len(users) == 1 else None
        return None if user is None else int(user)

    def _memory_size(self, limit: str | None) -> int | None:
        """Returns the size in bytes of a volume in memory: its limit, or that of the pod's memory if that is less."""
        limits = [((one.get("resources") or {}).get("limits") or {}).get("memory") for one in self._pod()["spec"]["containers"]]
        found = [parse(str(limit)).value()] if limit else []
        if all(limits):
            found.append(sum(parse(str(one)).value() for one in limits))
        return min(found, default=None)

    def _contents_of(self, volume: StoredObject) -> Callable[[], dict[str, _Content]] | None:
        """Returns the function that computes the content of a volume; None for an empty directory."""
        sources: dict[str, Callable[[StoredObject, int], dict[str, _Content]]] = {
            "configMap": self._config_map,
            "secret": self._secret,
            "downwardAPI": self._downward,
            "projected": lambda source, mode: self._projected_content(volume["name"], source, mode),
        }
        for kind, make in sources.items():
            if kind in volume:
                source = volume[kind]
                return lambda: make(source, source.get("defaultMode", 0o644))
        return None

    def _make_directory(self, contents: Callable[[], dict[str, _Content]]) -> Directory:
        """Returns a directory in the layout of the atomic writer."""
        born, group = self._now(), self._fs_group()
        gid, readable = (0, 0) if group is None else (group, 0o440)  # SetVolumeOwnership, of volumes that are only read

        def data() -> dict[str, Node]:
            made = Directory(0o755, mtime=born)
            for path, content in contents().items():
                *folders, name = path.split("/")
                at = made
                for folder in folders:
                    inner = at.own.setdefault(folder, Directory(0o755, gid=gid, mtime=born))
                    assert isinstance(inner, Directory)
                    at = inner
                mode, text = content.mode | readable, content.data
                at.own[name] = File(mode, content.uid, gid, mtime=born, data=bytearray(text), source=lambda data=text: data)  # type: ignore[misc]
            return made.own

        inner = Directory(0o755, mtime=born, source=data, kind="tmpfs")

        def entries() -> dict[str, Node]:
            tops = {path.partition("/")[0] for path in contents()}
            links: dict[str, Node] = {top: Symlink(0o777, mtime=born, target=f"..data/{top}") for top in sorted(tops)}
            return {self._stamp: inner, "..data": Symlink(0o777, mtime=born, target=self._stamp), **links}

        return Directory(0o777, mtime=born, source=entries, kind="tmpfs")

    # --- Sources ------------------------------------------------------------------------------------------------------

    def _config_map(self, source: StoredObject, mode: int) -> dict[str, _Content]:
        return self._keys_content("configmaps", source.get("name") or "", source, mode)

    def _secret(self, source: StoredObject, mode: int) -> dict[str, _Content]:
        return self._keys_content("secrets", source.get("secretName") or source.get("name") or "", source, mode)

    def _keys_content(self, kind: str, name: str, source: StoredObject, mode: int) -> dict[str, _Content]:
        values = values_of(kind, self._pod()["metadata"]["namespace"], name, self._cluster)
        items = source.get("items")
        if not items:
            return {key: _Content(value, mode) for key, value in values.items()}
        return {item["path"]: _Content(values[item["key"]], item.get("mode", mode)) for item in items if item["key"] in values}

    def _downward(self, source: StoredObject, mode: int) -> dict[str, _Content]:
        pod, made = self._pod(), {}
        for item in source.get("items") or ():
            if "fieldRef" in item:
                value = field_value(pod, item["fieldRef"]["fieldPath"])
            else:
                value = resource_value(pod, {}, item["resourceFieldRef"], self._node())
            made[item["path"]] = _Content(value.encode(), item.get("mode", mode))
        return made

    def _projected_content(self, volume: str, source: StoredObject, mode: int) -> dict[str, _Content]:
        made: dict[str, _Content] = {}
        user = self._fs_user()
        # Tokens and certificates are read by the user of the containers, or by their fsGroup, alone.
        private = mode if user is None and self._fs_group() is None else 0o600
        for index, one in enumerate(source.get("sources") or ()):
            if "serviceAccountToken" in one:
                wanted = one["serviceAccountToken"]
                token = self._token(wanted.get("audience") or "", wanted.get("expirationSeconds") or 3600)
                made[wanted["path"]] = _Content(token.encode(), private, user or 0)
            elif "configMap" in one:
                made |= self._config_map(one["configMap"], mode)
            elif "secret" in one:
                made |= self._secret(one["secret"], mode)
            elif "downwardAPI" in one:
                made |= self._downward(one["downwardAPI"], mode)
            elif "clusterTrustBundle" in one:
                wanted = one["clusterTrustBundle"]
                made[wanted["path"]] = _Content(trust_anchors(wanted, self._cluster)[0], private, user or 0)
            elif "podCertificate" in one:
                key, chain = self._credential(volume, index)
                contents = {"credentialBundlePath": key + chain, "keyPath": key, "certificateChainPath": chain}
                made |= {
                    one["podCertificate"][field]: _Content(content, private, user or 0)
                    for field, content in contents.items()
                    if one["podCertificate"].get(field)
                }
        return {posixpath.normpath(path): content for path, content in made.items()}


def _give_to_group(node: Node, group: int) -> None:
    """Lets a group write to a directory with its content (SetVolumeOwnership)."""
    node.gid = group
    if isinstance(node, Directory):
        node.mode |= SET_GROUP | 0o770
        for entry in node.entries.values():
            _give_to_group(entry, group)
    elif isinstance(node, File):
        node.mode |= 0o660


_BUNDLES: Final = ("certificates.k8s.io", "clustertrustbundles")


def trust_anchors(source: StoredObject, cluster: ClusterAccess) -> tuple[bytes, str]:
    """Returns the certificates of a source `clusterTrustBundle`, each once, and why there are none; "" if there are.

    Specified by: pkg/kubelet/clustertrustbundle/clustertrustbundle_manager.go (GetTrustAnchorsByName, GetTrustAnchorsBySigner).
    """
    name, problem = source.get("name"), ""
    if name is not None:
        found = cluster.get(*_BUNDLES, "", name)
        bundles = [] if found is None else [found]
        if found is None:
            problem = f'while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "{name}" not found'
    else:
        selector = source.get("labelSelector")
        matches = from_label_selector(selector).matches if selector is not None else lambda _labels: False
        bundles = [
            one
            for one in cluster.list(*_BUNDLES)
            if one["spec"].get("signerName") == source.get("signerName") and matches(one["metadata"].get("labels") or {})
        ]
        if not bundles:
            problem = "combination of signerName and labelSelector matched zero ClusterTrustBundles"
    anchors = [block.content for one in bundles for block in pem.blocks((one["spec"].get("trustBundle") or "").encode())]
    content = b"".join(pem.encode("CERTIFICATE", anchor) for anchor in dict.fromkeys(anchors))
    return content, "" if source.get("optional") else problem
