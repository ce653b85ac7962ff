"""The environment variables of a container.

Their sources, later ones with precedence: the image, Services, `envFrom`, `env`.

Specified by: pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables), pkg/kubelet/envvars (FromServices),
third_party/forked/golang/expansion, pkg/fieldpath, pkg/kubelet/util/env (ParseEnv).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from fakekube.apimachinery.schema.quantity import parse as parse_quantity
from fakekube.apis.core.pods.visitor import containers
from fakekube.apis.rest.cluster_access import ClusterAccess
from fakekube.base.golang.strconv import go_quote
from fakekube.base.objects import StoredObject

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: What Linux passes to a new process: bytes of one argument or variable (MAX_ARG_STRLEN), and of all together (a quarter of the
#: stack). A program with more does not start, so nothing longer is computed.
MAXIMUM_STRING: Final = 32 * 4096
MAXIMUM_STRINGS: Final = 2 << 20
REFERENCE: Final = re.compile(r"\$(\$|\(([^()]*)\))")
_MASTER_SERVICE: Final = "kubernetes"
_SUBSCRIPT: Final = re.compile(r"(metadata\.(?:labels|annotations))\['(.+)'\]")

#: Returns the content of a file, by the name of a volume and a path in it. Raises OSError.
ReadFile = Callable[[str, str], bytes]


def environment(
    pod: StoredObject, container: StoredObject, cluster: ClusterAccess, node: StoredObject | None, read_file: ReadFile
) -> dict[str, str]:
    """Returns the variables of a container.

    Args:
        pod: the pod of the container.
        container: an item of its spec.
        cluster: access to ConfigMaps, Secrets and Services.
        node: the node of the pod; its allocatable resources are the defaults of limits.
        read_file: reads files in volumes of the pod.
    """
    namespace = pod["metadata"]["namespace"]
    made = {"PATH": PATH, "HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"]}
    if container.get("tty"):
        made["TERM"] = "xterm"
    services = _services(namespace, cluster, all_of_them=pod["spec"].get("enableServiceLinks", True) is not False)
    for source in container.get("envFrom") or ():
        made |= _env_from(source, namespace, cluster)
    told = dict(made)
    size = 0
    for one in container.get("env") or ():
        if size > MAXIMUM_STRINGS:
            break
        if "valueFrom" in one:
            if "fileKeyRef" in one["valueFrom"]:
                value = _value_in_file(one["valueFrom"]["fileKeyRef"], read_file) or None
            else:
                value = _value_from(one["valueFrom"], pod, container, cluster, node)
            if value is None:
                continue
        else:
            value = expand(one.get("value") or "", {**services, **told})
        told[one["name"]] = value
        size += len(value)
    return {**told, **{name: value for name, value in services.items() if name not in told}, "HOME": told.get("HOME", "/root")}


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replaces `$(NAME)` by the value of a variable; `$$` is a dollar sign, and references to unknown variables are kept.

    The result ends soon after MAXIMUM_STRING characters: variables that double one another would fill the memory.
    """
    parts: list[str] = []
    length = end = 0
    for found in REFERENCE.finditer(text):
        value = "$" if found[1] == "$" else values.get(found[2], found[0])
        parts += (text[end : found.start()], value)
        length += len(value) + found.start() - end
        end = found.end()
        if length > MAXIMUM_STRING:
            return "".join(parts)
    return "".join((*parts, text[end:]))


def expand_each(words: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """Expands the command and arguments of a container; the list ends soon after MAXIMUM_STRINGS characters."""
    expanded, size = [], 0
    for word in words:
        expanded.append(expand(word, values))
        size += len(expanded[-1])
        if size > MAXIMUM_STRINGS:
            break
    return expanded


def fits_a_process(arguments: Iterable[str], variables: Mapping[str, str]) -> bool:
    """Reports whether Linux starts a program with these arguments and variables (execve: E2BIG)."""
    sizes = [len(one) for one in (*arguments, *variables.values())]
    return sum(sizes) <= MAXIMUM_STRINGS and max(sizes, default=0) < MAXIMUM_STRING


# --- Services ---------------------------------------------------------------------------------------------------------


def _services(namespace: str, cluster: ClusterAccess, *, all_of_them: bool) -> dict[str, str]:
    found: list[StoredObject] = [service for service in cluster.list("", "services", namespace) if all_of_them]
    master = cluster.get("", "services", "default", _MASTER_SERVICE)
    if master is not None and not any(one["metadata"]["name"] == _MASTER_SERVICE for one in found):
        found.append(master)
    made: dict[str, str] = {}
    for service in found:
        if service["spec"].get("clusterIP") not in (None, "", "None"):
            made |= _of_service(service)
    return made


def _of_service(service: StoredObject) -> dict[str, str]:
    prefix = service["metadata"]["name"].upper().replace("-", "_")
    address, ports = service["spec"]["clusterIP"], service["spec"].get("ports") or ()
    made = {f"{prefix}_SERVICE_HOST": address}
    if ports:
        made[f"{prefix}_SERVICE_PORT"] = str(ports[0]["port"])
    for port in ports:
        if port.get("name"):
            made[f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}"] = str(port["port"])
    for number, port in enumerate(ports):
        protocol = port.get("protocol", "TCP")
        url = f"{protocol.lower()}://{address}:{port['port']}"
        name = f"{prefix}_PORT_{port['port']}_{protocol}"
        made |= {f"{prefix}_PORT": url} if number == 0 else {}
        made |= {name: url, f"{name}_PROTO": protocol.lower(), f"{name}_PORT": str(port["port"]), f"{name}_ADDR": address}
    return made


# --- ConfigMaps and Secrets -------------------------------------------------------------------------------------------


def values_of(kind: str, namespace: str, name: str, cluster: ClusterAccess) -> dict[str, bytes]:
    """Returns the data of a ConfigMap (`configmaps`) or Secret (`secrets`); an empty dict if it does not exist."""
    found = cluster.get("", kind, namespace, name)
    if found is None:
        return {}
    data = found.get("data") or {}
    if kind == "secrets":
        return {key: b64decode(value) for key, value in data.items()}
    binary = found.get("binaryData") or {}
    return {key: value.encode() for key, value in data.items()} | {key: b64decode(value) for key, value in binary.items()}


def _env_from(source: StoredObject, namespace: str, cluster: ClusterAccess) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    for field, kind in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
        if field in source:
            values = values_of(kind, namespace, source[field].get("name") or "", cluster)
            return {prefix + key: value.decode("utf-8", "surrogateescape") for key, value in values.items()}
    return {}


def read_variable(text: str, name: str) -> str:
    """Returns the value of a variable in a file of lines `NAME='value'`, whose values may have several lines; "" if it has none.

    Raises ValueError: what comes before the variable is invalid.
    """
    lines = iter(text.splitlines())
    for whole in lines:
        line = whole.lstrip(" \t")
        if not line or line.startswith("#"):
            continue
        variable, equals, value = line.partition("=")
        if not equals or not variable or variable != variable.rstrip(" \t"):
            raise ValueError(f"invalid environment variable format: {line}")
        if value.startswith((" ", "\t")):
            if variable == name:
                return ""
            continue
        if not value.startswith("'"):
            raise ValueError("value must be enclosed in single quotes")
        quoted = value[1:]
        while "'" not in quoted:
            following = next(lines, None)
            if following is None:
                raise ValueError("unclosed single quote")
            quoted += f"\n{following}"
        quoted, _, rest = quoted.partition("'")
        if rest.strip(" \t") and not rest.lstrip(" \t").startswith("#"):
            raise ValueError("unexpected content after closing quote")
        if variable == name:
            return quoted
    return ""


def _value_in_file(reference: StoredObject, read_file: ReadFile) -> str | None:
    """Returns the value to which a `fileKeyRef` refers, "" if the file does not have it; None if the file cannot be read."""
    try:
        text = read_file(reference["volumeName"], reference["path"]).decode("utf-8", "surrogateescape")
        return read_variable(text, reference["key"])
    except (OSError, ValueError):
        return None


def env_file_error(container: StoredObject, read_file: ReadFile) -> str:
    """Returns why a container cannot be created whose variables are in files; "" if it can."""
    for one in container.get("env") or ():
        reference = (one.get("valueFrom") or {}).get("fileKeyRef")
        if reference is None:
            continue
        found = _value_in_file(reference, read_file)
        if found is None:
            return "couldn't parse env file"
        if not found and not reference.get("optional"):
            return f"environment variable key {go_quote(reference['key'])} not found in file {go_quote(reference['path'])}"
    return ""


def _value_from(
    source: StoredObject, pod: StoredObject, container: StoredObject, cluster: ClusterAccess, node: StoredObject | None
) -> str | None:
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        return resource_value(pod, container, source["resourceFieldRef"], node)
    for field, kind in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        if field in source:
            values = values_of(kind, pod["metadata"]["namespace"], source[field].get("name") or "", cluster)
            found = values.get(source[field]["key"])
            return None if found is None else found.decode("utf-8", "surrogateescape")
    return None


# --- The downward API -------------------------------------------------------------------------------------------------


def field_value(pod: StoredObject, path: str) -> str:
    """Returns the value of a field of the pod for the downward API; "" for an unsupported field."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        return str((metadata.get(subscript[1].partition(".")[2]) or {}).get(subscript[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        found = metadata.get(path.partition(".")[2]) or {}
        return "\n".join(f"{key}={go_quote(value)}" for key, value in sorted(found.items()))
    values = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.podIP": status.get("podIP", ""),
        "status.hostIP": status.get("hostIP", ""),
        "status.podIPs": ",".join(one["ip"] for one in status.get("podIPs") or ()),
        "status.hostIPs": ",".join(one["ip"] for one in status.get("hostIPs") or ()),
    }
    return str(values.get(path, ""))


def resource_value(pod: StoredObject, container: StoredObject, reference: StoredObject, node: StoredObject | None) -> str:
    """Returns the value of a `resourceFieldRef`: a resource of a container in units of the divisor, rounded up."""
    wanted = next((one for one in containers(pod["spec"]) if one["name"] == reference.get("containerName")), container)
    side, _, resource = reference["resource"].partition(".")
    quantity = ((wanted.get("resources") or {}).get(side) or {}).get(resource)
    if quantity is None and side == "limits" and node is not None:
        of_pod, of_node = (pod["spec"].get("resources") or {}).get("limits"), (node.get("status") or {}).get("allocatable")
        quantity = {**(of_node or {}), **(of_pod or {})}.get(resource)
    divisor = reference.get("divisor") or "1"
    scale = parse_quantity("1" if str(divisor) == "0" else str(divisor)).milli_value()
    return str(-(-parse_quantity(str(quantity or "0")).milli_value() // scale))
