"""Printers of the core group but workloads: nodes, pods, Services, accounts; of events, EndpointSlices, Ingresses, network
policies.

Specified by: k8s.io/kubernetes/pkg/printers/internalversion (printers.go).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fakekube.apimachinery.printers.texts import (
    NONE,
    UNKNOWN,
    Ages,
    Cells,
    age,
    condition,
    containers,
    labels,
    name,
    quantity,
    selector,
    shorten_list,
    since,
)
from fakekube.base.objects import StoredObject


def _namespace(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), obj.get("status", {}).get("phase", ""), age(obj, ages)]


def _config_map(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, ages)]


def _secret(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, ages)]


def _name_and_age(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), age(obj, ages)]


def _component_status(obj: StoredObject, _: Ages) -> list[Any]:
    healthy = condition(obj.get("conditions"), "Healthy")
    if healthy is None:
        return [name(obj), "Unknown", "", ""]
    status = "Healthy" if healthy.get("status") == "True" else "Unhealthy"
    return [name(obj), status, healthy.get("message", ""), healthy.get("error", "")]


def _resource_quota(obj: StoredObject, ages: Ages) -> list[Any]:
    status = obj.get("status", {})
    texts: dict[bool, list[str]] = {True: [], False: []}
    for resource, hard in sorted((status.get("hard") or {}).items()):
        used = quantity(status.get("used"), resource)
        texts[resource.startswith("limits.")].append(f"{resource}: {used}/{hard}")
    return [name(obj), ", ".join(texts[False]), ", ".join(texts[True]), age(obj, ages)]


# --- Nodes ------------------------------------------------------------------------------------------------------------

_KERNEL: Final = 8
"""The index of the cell."""
_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"


def _node(obj: StoredObject, ages: Ages) -> list[Any]:
    status = obj.get("status", {})
    info = status.get("nodeInfo", {})
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        name(obj), _node_status(obj), _roles(obj), age(obj, ages), info.get("kubeletVersion", ""),
        _address(status, "InternalIP"), _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN, kernel, info.get("containerRuntimeVersion") or UNKNOWN,
    ]  # fmt: skip


def node_without_architecture(obj: StoredObject, ages: Ages) -> list[Any]:
    """Returns the cells of a Node in 1.35 and before, whose kernel has no architecture."""
    cells = _node(obj, ages)
    cells[_KERNEL] = obj.get("status", {}).get("nodeInfo", {}).get("kernelVersion") or UNKNOWN
    return cells


def _node_status(obj: StoredObject) -> str:
    ready = None
    for found in obj.get("status", {}).get("conditions") or ():
        if found.get("type") == "Ready":
            ready = found  # the last one of several
    text = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{text},SchedulingDisabled" if obj.get("spec", {}).get("unschedulable") else text


def _roles(obj: StoredObject) -> str:
    roles = set()
    for key, value in (obj["metadata"].get("labels") or {}).items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.add(value)
    return ",".join(sorted(roles - {""})) or NONE


def _address(status: StoredObject, type_: str) -> str:
    found = condition(status.get("addresses"), type_)
    return NONE if found is None else found.get("address", "")


# --- Events -----------------------------------------------------------------------------------------------------------


def _event(obj: StoredObject, ages: Ages) -> list[Any]:
    """Returns an event of events.k8s.io in the form of the core group."""
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), ages)
    last = since(obj["lastTimestamp"], ages) if obj.get("lastTimestamp") else first
    series = obj.get("series")
    count = obj.get("count") or 1
    if series is not None:
        last, count = since(series.get("lastObservedTime"), ages), series.get("count", 0)
    involved = obj.get("involvedObject", {})
    target = involved.get("kind", "").lower()
    if involved.get("name"):
        target += f"/{involved['name']}"
    return [
        last, obj.get("type", ""), obj.get("reason", ""), target, involved.get("fieldPath", ""), _source(obj),
        obj.get("message", "").strip(), first, count, name(obj),
    ]  # fmt: skip


def _source(obj: StoredObject) -> str:
    source = obj.get("source", {})
    component = source.get("component") or obj.get("reportingComponent", "")
    instance = source.get("host") or obj.get("reportingInstance", "")
    return f"{component}, {instance}" if instance else component


def service_account_with_secrets(obj: StoredObject, ages: Ages) -> list[Any]:
    """Returns the cells of a ServiceAccount in 1.34 and before, with the number of its secrets."""
    return [name(obj), len(obj.get("secrets") or ()), age(obj, ages)]


CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "componentstatuses"): _component_status,
    ("", "configmaps"): _config_map,
    ("", "events"): _event,
    ("", "namespaces"): _namespace,
    ("", "nodes"): _node,
    ("", "resourcequotas"): _resource_quota,
    ("", "secrets"): _secret,
    ("", "serviceaccounts"): _name_and_age,
    ("events.k8s.io", "events"): _event,
}


# --- Pods and PodDisruptionBudgets -----------------------------------------------------------------------------------
# The STATUS of a pod is computed from its conditions and container statuses.
#
# Specified by: k8s.io/kubernetes/pkg/printers/internalversion/printers.go (printPod).


_COMPLETED: Final = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def pod_conditions(pod: StoredObject) -> list[dict[str, str]]:
    """Returns the conditions of a pod's row: Completed for one that has succeeded or failed."""
    phase = pod.get("status", {}).get("phase", "")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


@dataclass(slots=True)
class _Summary:
    """The status, and the numbers of containers, restarts and so on of a pod."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""
    """The time at which the last restarted container had terminated."""

    def count(self, container: StoredObject) -> None:
        self.restarts += container.get("restartCount", 0)
        terminated = _terminated_state(container.get("lastState"))
        ended = terminated.get("finishedAt") if terminated else None
        if ended and ended > self.last_restart:
            self.last_restart = ended


def pod_without_errors(pod: StoredObject, ages: Ages) -> list[Any]:
    """Returns the cells of a Pod in 1.34 and before, where only the reason of the first container counts."""
    return _pod(pod, ages, shows_errors=False)


def _pod(pod: StoredObject, ages: Ages, *, shows_errors: bool = True) -> list[Any]:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    sidecars = {c["name"] for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    summary = _summary(pod, sidecars, shows_errors=shows_errors)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts = f"{summary.restarts} ({since(summary.last_restart, ages)} ago)"
    total = len(spec.get("containers") or ()) + len(sidecars)
    ready = f"{summary.ready}/{total}"
    addresses = status.get("podIPs") or [{}]
    return [
        name(pod), ready, _reason_of_deletion(pod) or summary.reason, restarts, age(pod, ages),
        addresses[0].get("ip") or NONE, spec.get("nodeName") or NONE, status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec, status),
    ]  # fmt: skip


def _summary(pod: StoredObject, sidecars: set[str], *, shows_errors: bool) -> _Summary:
    status = pod.get("status", {})
    conditions = status.get("conditions")
    reason = status.get("reason") or status.get("phase", "")
    if any(found.get("reason") == "SchedulingGated" and found.get("type") == "PodScheduled" for found in conditions or ()):
        reason = "SchedulingGated"
    summary, of_sidecars = _Summary(reason), _Summary(reason)
    initializing = _initialization(pod, sidecars, summary, of_sidecars)
    initialized = condition(conditions, "Initialized")
    if not initializing or (initialized is not None and initialized.get("status") == "True"):
        of_sidecars.reason, of_sidecars.ready = summary.reason, summary.ready
        _running(status, of_sidecars, shows_errors=shows_errors)
        return of_sidecars
    return summary


def _initialization(pod: StoredObject, sidecars: set[str], summary: _Summary, of_sidecars: _Summary) -> bool:
    """Evaluates the init containers up to the first that is not complete. Returns whether the pod is still initializing."""
    total = len(pod.get("spec", {}).get("initContainers") or ())
    for number, container in enumerate(pod.get("status", {}).get("initContainerStatuses") or ()):
        summary.count(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            of_sidecars.count(container)
        state = container.get("state") or {}
        terminated, waiting = _terminated_state(state), state.get("waiting")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            summary.ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            summary.reason = f"Init:{_reason_of_end(terminated)}"
        elif waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            summary.reason = f"Init:{waiting['reason']}"
        else:
            summary.reason = f"Init:{number}/{total}"
        return True
    return False


def _running(status: StoredObject, summary: _Summary, *, shows_errors: bool) -> None:
    """Evaluates the containers from the last to the first, so that the status of the first one takes precedence."""
    has_running = False
    error = ""
    for container in reversed(status.get("containerStatuses") or ()):
        summary.count(container)
        state = container.get("state") or {}
        terminated, waiting = _terminated_state(state), state.get("waiting")
        if waiting is not None and waiting.get("reason"):
            summary.reason = waiting["reason"]
        elif terminated is not None:
            summary.reason = _reason_of_end(terminated)
            if shows_errors and terminated.get("exitCode"):
                error = summary.reason
        elif container.get("ready") and state.get("running") is not None:
            has_running = True
            summary.ready += 1
    if summary.reason == "Completed":
        if has_running and _is_ready(status.get("conditions")):
            summary.reason = "Running"
        elif error or has_running:
            summary.reason = error or "NotReady"


def _terminated_state(state: StoredObject | None) -> StoredObject | None:
    found: StoredObject | None = (state or {}).get("terminated")
    return found


def _reason_of_end(terminated: StoredObject) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _is_ready(conditions: Sequence[StoredObject] | None) -> bool:
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions or ())


def _reason_of_deletion(pod: StoredObject) -> str:
    status = pod.get("status", {})
    if not pod["metadata"].get("deletionTimestamp"):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in _COMPLETED else "Terminating"


def _readiness_gates(spec: StoredObject, status: StoredObject) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return NONE
    found = (condition(status.get("conditions"), gate["conditionType"]) for gate in gates)
    passed = sum(one is not None and one.get("status") == "True" for one in found)
    return f"{passed}/{len(gates)}"


def _pod_template(obj: StoredObject, _: Ages) -> list[Any]:
    template = obj.get("template", {})
    return [name(obj), *containers(template.get("spec")), labels(template.get("metadata", {}).get("labels"))]


def _disruption_budget(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    bounds = [str(spec.get(bound, "N/A")) for bound in ("minAvailable", "maxUnavailable")]
    return [name(obj), *bounds, obj.get("status", {}).get("disruptionsAllowed", 0), age(obj, ages)]


POD_CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "pods"): _pod,
    ("", "podtemplates"): _pod_template,
    ("policy", "poddisruptionbudgets"): _disruption_budget,
}


# --- Printers of Services, their endpoints, Ingresses and network policies -------------------------------------------


def _service(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    addresses = spec.get("clusterIPs") or [NONE]
    ports = ",".join(_port(port) for port in spec.get("ports") or ()) or NONE
    return [
        name(obj), spec.get("type", ""), addresses[0], _external(spec, obj.get("status", {})), ports,
        age(obj, ages), labels(spec.get("selector")),
    ]  # fmt: skip


def _port(port: StoredObject) -> str:
    node_port = port.get("nodePort", 0)
    number = f"{port.get('port', 0)}:{node_port}" if node_port > 0 else f"{port.get('port', 0)}"
    return f"{number}/{port.get('protocol', '')}"


def _external(spec: StoredObject, status: StoredObject) -> str:
    kind, addresses = spec.get("type"), spec.get("externalIPs") or []
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(addresses) or NONE
    if kind == "LoadBalancer":
        balancers = _load_balancer(status)
        return ",".join([balancers, *addresses] if balancers else addresses) or "<pending>"
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    return UNKNOWN


def _load_balancer(status: StoredObject) -> str:
    points = status.get("loadBalancer", {}).get("ingress") or ()
    found = {point.get("ip") or point.get("hostname", "") for point in points}
    return ",".join(sorted(found - {""}))


def _endpoints(obj: StoredObject, ages: Ages) -> list[Any]:
    subsets = obj.get("subsets") or ()
    if not subsets:
        return [name(obj), NONE, age(obj, ages)]
    found: list[str] = []
    for subset in subsets:
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += addresses if not ports else [_join_host_port(ip, port) for port in ports for ip in addresses]
    return [name(obj), shorten_list(found, empty=""), age(obj, ages)]


def _join_host_port(ip: str, port: StoredObject) -> str:
    host = f"[{ip}]" if ":" in ip else ip
    return f"{host}:{port.get('port', 0)}"


def _endpoint_slice(obj: StoredObject, ages: Ages) -> list[Any]:
    ports = (str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ())
    addresses = (ip for endpoint in obj.get("endpoints") or () for ip in endpoint.get("addresses") or ())
    return [name(obj), obj.get("addressType", ""), shorten_list(ports), shorten_list(addresses), age(obj, ages)]


def _ingress(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    ports = "80, 443" if spec.get("tls") else "80"
    address = _load_balancer(obj.get("status", {}))
    return [name(obj), spec.get("ingressClassName", NONE), _hosts(spec), address, ports, age(obj, ages)]


def _hosts(spec: StoredObject) -> str:
    """Returns up to three hosts; the number of further ones is that of the rules, not of their hosts."""
    rules = spec.get("rules") or ()
    hosts: list[str] = []
    for rule in rules:
        if len(hosts) == 3:
            return f"{','.join(hosts)} + {len(rules) - 3} more..."
        if rule.get("host"):
            hosts.append(rule["host"])
    return ",".join(hosts) or "*"


def ingress_class_without_default(obj: StoredObject, ages: Ages) -> list[Any]:
    """Returns the cells of an IngressClass in 1.35 and before, where a default is not marked."""
    return [name(obj), *_ingress_class(obj, ages)[1:]]


def _ingress_class(obj: StoredObject, ages: Ages) -> list[Any]:
    spec = obj.get("spec", {})
    annotations = obj["metadata"].get("annotations") or {}
    default = annotations.get("ingressclass.kubernetes.io/is-default-class") == "true"
    parameters, shown = spec.get("parameters"), NONE
    if parameters is not None:
        group = parameters.get("apiGroup")
        kind = parameters.get("kind", "") if group is None else f"{parameters.get('kind', '')}.{group}"
        shown = f"{kind}/{parameters.get('name', '')}"
    title = f"{name(obj)} (default)" if default else name(obj)
    return [title, spec.get("controller", ""), shown, age(obj, ages)]


def _network_policy(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), selector(obj.get("spec", {}).get("podSelector")) or NONE, age(obj, ages)]


def _service_cidr(obj: StoredObject, ages: Ages) -> list[Any]:
    return [name(obj), ",".join(obj.get("spec", {}).get("cidrs") or ()), age(obj, ages)]


def _ip_address(obj: StoredObject, ages: Ages) -> list[Any]:
    """Returns one cell more than there are columns, as the real printer does."""
    parent = obj.get("spec", {}).get("parentRef")
    shown = NONE
    if parent is not None:
        group, resource = parent.get("group", ""), parent.get("resource", "")
        parts = [f"{resource}.{group}".lower() if group else resource.lower(), parent.get("namespace", "")]
        shown = "/".join([*filter(None, parts), parent.get("name", "")])
    return [name(obj), shown, age(obj, ages)]


NETWORK_CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "endpoints"): _endpoints,
    ("", "services"): _service,
    ("discovery.k8s.io", "endpointslices"): _endpoint_slice,
    ("networking.k8s.io", "ingressclasses"): _ingress_class,
    ("networking.k8s.io", "ingresses"): _ingress,
    ("networking.k8s.io", "ipaddresses"): _ip_address,
    ("networking.k8s.io", "networkpolicies"): _network_policy,
    ("networking.k8s.io", "servicecidrs"): _service_cidr,
}
