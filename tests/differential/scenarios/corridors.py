"""Ways between rooms: services' addresses and ports, tokens, bindings, scale and status of every kind, grants, events."""

from __future__ import annotations

from typing import Any

from tests.differential.client import APPLY, JSON_PATCH, MERGE, STRATEGIC, TABLE, Client
from tests.differential.registry import scenario
from tests.differential.steps import robot, rule

# fmt: off

DRY = {"dryRun": "All"}


def core(c: Client, *rest: str) -> str:
    return "/".join([f"/api/v1/namespaces/{c.ns}", *rest])


def grouped(c: Client, group: str, *rest: str) -> str:
    return "/".join([f"/apis/{group}/namespaces/{c.ns}", *rest])


def service(name: str, *ports: Any, **spec: Any) -> dict[str, Any]:
    numbered = [{"port": port, "name": f"p{n}"} if isinstance(port, int) else port for n, port in enumerate(ports or (80,))]
    return {"metadata": {"name": name}, "spec": {"ports": numbered, **spec}}


def end(c: Client, *paths: str) -> None:
    for path in paths:
        c.patch(path, {"metadata": {"finalizers": None}}, MERGE, silent=True)
        c.delete(path, {"gracePeriodSeconds": 0}, silent=True)


@scenario
def services_change_their_type(c: Client) -> None:
    """From each type to each other, by PUT and by patch: what is kept, dropped and allocated."""
    path = core(c, "services")
    specs: dict[str, dict[str, Any]] = {
        "ClusterIP": {}, "Headless": {"clusterIP": "None"}, "NodePort": {"type": "NodePort"}, "LoadBalancer": {"type": "LoadBalancer"}, "ExternalName": {"type": "ExternalName", "externalName": "a.b"},
        "Local": {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}, "Classy": {"type": "LoadBalancer", "loadBalancerClass": "a.b/c", "allocateLoadBalancerNodePorts": False},
    }
    for before, spec in specs.items():
        name = before.lower()
        c.post(path, service(name, **spec))
        for after, wanted in specs.items():
            kind = {"Headless": "ClusterIP", "Local": "LoadBalancer", "Classy": "LoadBalancer"}.get(after, after)
            c.patch(f"{path}/{name}", {"spec": {**wanted, "type": kind}}, MERGE, DRY)
            stored = c.get(f"{path}/{name}", silent=True).json
            c.put(f"{path}/{name}", {**stored, "spec": {"ports": stored["spec"]["ports"], **wanted, "type": kind}}, DRY)
        end(c, f"{path}/{name}")


@scenario
def services_without_a_pod_behind(c: Client) -> None:
    """Where requests through a Service are sent: its EndpointSlices from 1.37 on, its Endpoints before; an address must be a pod's."""
    path, slices = core(c, "services"), grouped(c, "discovery.k8s.io/v1", "endpointslices")

    def ask(*names: str) -> None:
        for name in names:
            for method in ("GET", "POST"):
                c.request(method, f"{path}/{name}/proxy/x", {} if method == "POST" else None)

    ask("absent", "absent:80", "absent:http", "https:absent:", "a:b:c:d", "ftp:absent:80")
    for name in ("bare", "listed", "sliced"):
        c.post(path, service(name, 80, 81), silent=True)
    c.post(path, {"metadata": {"name": "named"}, "spec": {"type": "ExternalName", "externalName": "a.b"}}, silent=True)
    pod = {"kind": "Pod", "name": "p", "namespace": c.ns}
    ports, of = [{"name": "p0", "port": 80}], {"kubernetes.io/service-name": "sliced"}
    c.post(core(c, "endpoints"), {"metadata": {"name": "listed"}, "subsets": [{"addresses": [{"ip": "10.1.1.1", "targetRef": pod}, {"ip": "10.1.1.2"}], "ports": ports}]})
    ask("bare", "bare:p0", "bare:80", "bare:81", "bare:99", "listed", "listed:p0", "listed:80", "listed:p9", "https:listed:p0", "named", "named:80")
    base = {"metadata": {"name": "empty", "labels": of}, "addressType": "IPv4", "endpoints": [], "ports": ports}
    c.post(slices, base)
    ask("sliced", "sliced:p0", "sliced:80")
    unready = {"addresses": ["10.1.1.3"], "conditions": {"ready": False}, "targetRef": pod}
    c.post(slices, {**base, "metadata": {"name": "full", "labels": of}, "endpoints": [{"addresses": ["10.1.1.1"], "targetRef": pod}, {"addresses": ["10.1.1.2"]}, unready]})
    ask("sliced", "sliced:p0", "sliced:80", "sliced:81", "sliced:p9", "https:sliced:p0")


@scenario
def deleted_services_and_their_endpoints(c: Client) -> None:
    """Endpoints go with their Service until 1.36; from 1.37 on only the controller removes them. EndpointSlices stay."""
    c.post(core(c, "services"), service("s"))
    c.post(core(c, "endpoints"), {"metadata": {"name": "s"}, "subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}]})
    slices = grouped(c, "discovery.k8s.io/v1", "endpointslices")
    c.post(slices, {"metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}}, "addressType": "IPv4", "endpoints": [], "ports": []})
    c.delete(core(c, "services", "s"), None, DRY)
    c.get(core(c, "endpoints", "s"))
    c.delete(core(c, "services", "s"))
    c.get(core(c, "endpoints", "s"))
    c.get(f"{slices}/s-1")


@scenario
def old_marks_are_dropped(c: Client) -> None:
    """Annotations of init containers, and the label of budgets of v1beta1: dropped in decoding until 1.36, then when they are written."""
    old = {"pod.beta.kubernetes.io/init-containers": "x", "pod.alpha.kubernetes.io/init-container-statuses": "y", "k": "v"}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": {"a": "b"}, "annotations": old}, "spec": spec}
    path = grouped(c, "apps/v1", "deployments")
    c.post(path, {"metadata": {"name": "d", "annotations": old}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})
    c.patch(f"{path}/d", {"spec": {"template": {"metadata": {"annotations": {**old, "z": "y"}}}}}, MERGE)
    applied = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"metadata": {"annotations": {**old, "z": "q"}}}}}
    c.patch(f"{path}/d", applied, APPLY, {"fieldManager": "m", "force": "true"})
    c.post(core(c, "podtemplates"), {"metadata": {"name": "t"}, "template": template})
    c.post(core(c, "replicationcontrollers"), {"metadata": {"name": "t"}, "spec": {"template": template}})
    job = {"spec": {"template": {**template, "spec": {**spec, "restartPolicy": "Never"}}}}
    c.post(grouped(c, "batch/v1", "cronjobs"), {"metadata": {"name": "t"}, "spec": {"schedule": "* * * * *", "jobTemplate": job}})
    pod = core(c, "pods", "q")
    c.post(core(c, "pods"), {"metadata": {"name": "q", "annotations": old}, "spec": spec})
    c.patch(pod, {"metadata": {"annotations": {**old, "n": "m"}}}, MERGE)
    c.patch(pod, {"metadata": {"annotations": old}}, STRATEGIC, {"fieldManager": "z"})
    for subresource in ("status", "ephemeralcontainers", "resize"):
        c.patch(f"{pod}/{subresource}", {"metadata": {"annotations": {**old, "n": subresource}}, "status": {"message": "x"}}, MERGE)
    c.post(f"{pod}/binding", {"metadata": {"name": "q", "annotations": old}, "target": {"name": "n", "kind": "Node"}})
    c.get(pod)
    label, budgets = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", grouped(c, "policy/v1", "poddisruptionbudgets")
    none, everything, other = ({"key": key, "operator": operator} for key, operator in ((label, "Exists"), (label, "DoesNotExist"), ("z", "Exists")))
    for number, selector in enumerate((
        {"matchExpressions": [none]}, {"matchExpressions": [everything]}, {"matchLabels": {label: "x"}}, {},
        {"matchLabels": {"a": "b"}, "matchExpressions": [none, other]}, {"matchExpressions": [everything, none]},
    )):
        c.post(budgets, {"metadata": {"name": f"b{number}"}, "spec": {"minAvailable": 1, "selector": selector}})
        c.patch(f"{budgets}/b{number}", {"spec": {"selector": {"matchLabels": {label: "y", "q": "r"}}}}, MERGE, DRY)
        c.patch(f"{budgets}/b{number}", {"spec": {"minAvailable": 2}}, MERGE, DRY)
        c.patch(f"{budgets}/b{number}", {"spec": {"selector": {"matchExpressions": [{**other, "key": "w"}, everything]}}}, MERGE)


@scenario
def statuses_need_a_revision(c: Client) -> None:
    """A PUT of the status needs a resourceVersion where one of the object does: nodes of CSI (1.37), budgets, claims."""
    name, spec = c.name("n"), {"drivers": [{"name": "d", "nodeID": "x"}]}
    c.post("/apis/storage.k8s.io/v1/csinodes", {"metadata": {"name": name}, "spec": spec}, silent=True)
    budgets = grouped(c, "policy/v1", "poddisruptionbudgets")
    c.post(budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}}, silent=True)
    for path, body in ((f"/apis/storage.k8s.io/v1/csinodes/{name}", {"metadata": {"name": name}, "spec": spec}), (f"{budgets}/b", {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}})):
        for each in (path, f"{path}/status"):
            c.put(each, body)
            c.patch(each, {"metadata": {"labels": {"a": "b"}}}, MERGE)
    c.delete(f"/apis/storage.k8s.io/v1/csinodes/{name}", silent=True)


@scenario
def services_ask_for_addresses(c: Client) -> None:
    """An address that is taken, outside the range, of another family, or not one."""
    path = core(c, "services")
    taken = c.post(path, service("first"), silent=True).get("spec", "clusterIP")
    for address in ("10.0.0.0", "10.0.0.255", "192.0.2.1", "fd00::1", "x", "10.0.0.010", "None", "none", "", "10.0.0.1"):
        c.post(path, service("a", clusterIP=address), DRY)
        c.post(path, service("a", clusterIP=address, clusterIPs=["10.0.0.9"]), DRY)
    for addresses in (["None"], ["None", "None"], ["10.0.0.200", "fd00::2"], ["10.0.0.200", "10.0.0.201"], ["", "x"], ["10.0.0.200"], ["a", "b", "c"]):
        c.post(path, service("a", clusterIPs=addresses), DRY)
        c.post(path, service("a", clusterIP=addresses[0], clusterIPs=addresses), DRY)
    reply = c.post(path, service("b", clusterIP=taken), silent=True)
    c.transcript[-1:] = c.transcript[-1:]
    c.get(path + "/absent" + str(reply.status))
    for families in ([], ["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv4", "IPv4"], ["Nope"]):
        for policy in (None, "SingleStack", "PreferDualStack", "RequireDualStack", "Nope"):
            c.post(path, service("c", ipFamilies=families, ipFamilyPolicy=policy), DRY)
    c.patch(f"{path}/first", {"spec": {"clusterIP": "10.0.0.77"}}, MERGE, DRY)
    c.patch(f"{path}/first", {"spec": {"clusterIP": None}}, MERGE, DRY)
    c.patch(f"{path}/first", {"spec": {"clusterIP": "", "clusterIPs": []}}, MERGE, DRY)
    c.patch(f"{path}/first", {"spec": {"ipFamilies": ["IPv6"]}}, MERGE, DRY)
    c.patch(f"{path}/first", {"spec": {"ipFamilyPolicy": "RequireDualStack"}}, MERGE, DRY)
    end(c, f"{path}/first", f"{path}/b")


@scenario
def services_ask_for_node_ports(c: Client) -> None:
    """A port that is taken, outside the range, doubled, or kept when the service changes."""
    path = core(c, "services")
    for port in (1, 29999, 32768, 65536, -1, 0):
        c.post(path, service("a", {"port": 80, "nodePort": port}, type="NodePort"), DRY)
        c.post(path, service("a", {"port": 80, "nodePort": port}), DRY)
    c.post(path, service("two", {"port": 80, "name": "a", "nodePort": 31711}, {"port": 81, "name": "b", "nodePort": 31711}, type="NodePort"), DRY)
    c.post(path, service("two", {"port": 80, "name": "a", "nodePort": 31711}, {"port": 80, "name": "b", "nodePort": 31711, "protocol": "UDP"}, type="NodePort"), DRY)
    c.post(path, service("kept", {"port": 80, "name": "a", "nodePort": 31712}, type="NodePort"))
    c.post(path, service("other", {"port": 80, "name": "a", "nodePort": 31712}, type="NodePort"))
    c.post(path, service("other", {"port": 80, "name": "a", "nodePort": 31712, "protocol": "UDP"}, type="NodePort"), DRY)
    c.patch(f"{path}/kept", {"spec": {"ports": [{"port": 81, "name": "a"}]}}, MERGE, DRY)
    c.patch(f"{path}/kept", {"spec": {"ports": [{"port": 80, "name": "z"}]}}, MERGE, DRY)
    c.patch(f"{path}/kept", {"spec": {"ports": [{"port": 80, "name": "a", "nodePort": 31713}]}}, MERGE, DRY)
    c.patch(f"{path}/kept", {"spec": {"ports": [{"port": 82, "name": "b"}]}}, STRATEGIC, DRY)
    c.patch(f"{path}/kept", {"spec": {"externalTrafficPolicy": "Local"}}, MERGE, DRY)
    c.patch(f"{path}/kept", {"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 31714}}, MERGE, DRY)
    c.patch(f"{path}/kept", {"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 31712}}, MERGE, DRY)
    c.patch(f"{path}/kept", {"spec": {"healthCheckNodePort": 31714}}, MERGE, DRY)
    c.get(f"{path}/kept", headers={"Accept": TABLE})
    end(c, f"{path}/kept", f"{path}/other")


WORK = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}


@scenario
def scales_of_workloads(c: Client) -> None:
    """The scale of each kind: read, written, patched, applied; preconditions, wrong kinds and numbers."""
    for group, plural, kind in (("apps/v1", "deployments", "Deployment"), ("apps/v1", "replicasets", "ReplicaSet"), ("apps/v1", "statefulsets", "StatefulSet"), ("v1", "replicationcontrollers", "ReplicationController")):
        path = core(c, plural) if group == "v1" else grouped(c, group, plural)
        spec = {**WORK, "selector": {"a": "b"}} if group == "v1" else {**WORK, **({"serviceName": "s"} if kind == "StatefulSet" else {})}
        c.post(path, {"metadata": {"name": "w"}, "spec": {**spec, "replicas": 2}})
        scale = c.get(f"{path}/w/scale").json
        for replicas in (0, 3, -1, None, "x", 2**31):
            c.put(f"{path}/w/scale", {**scale, "spec": {"replicas": replicas}}, DRY)
            c.patch(f"{path}/w/scale", {"spec": {"replicas": replicas}}, MERGE, DRY)
        c.put(f"{path}/w/scale", {**scale, "metadata": {"name": "other"}}, DRY)
        c.put(f"{path}/w/scale", {**scale, "metadata": {"name": "w", "resourceVersion": "1"}}, DRY)
        c.put(f"{path}/w/scale", {**scale, "metadata": {"name": "w", "uid": "x"}}, DRY)
        c.put(f"{path}/w/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}, "spec": {"replicas": 4}})
        c.put(f"{path}/w/scale", {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": {"replicas": 4}}, DRY)
        c.put(f"{path}/w/scale", {**scale, "status": {"replicas": 9, "selector": "x=y"}}, DRY)
        c.patch(f"{path}/w/scale", [{"op": "replace", "path": "/spec/replicas", "value": 5}], JSON_PATCH)
        c.patch(f"{path}/w/scale", [{"op": "test", "path": "/spec/replicas", "value": 1}], JSON_PATCH)
        c.patch(f"{path}/w/scale", {"spec": {"replicas": 6}}, STRATEGIC, {"fieldManager": "s"})
        c.patch(f"{path}/w/scale", {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}, MERGE, {"fieldValidation": "Strict"})
        applied = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}, "spec": {"replicas": 7}}
        c.patch(f"{path}/w/scale", applied, APPLY, {"fieldManager": "m"})
        c.patch(f"{path}/w/scale", applied, APPLY, {"fieldManager": "m", "force": "true"})
        c.get(f"{path}/w/scale", headers={"Accept": TABLE})
        c.get(f"{path}/w")
        c.get(f"{path}/absent/scale")
        c.post(f"{path}/w/scale", applied)
        c.delete(f"{path}/w/scale")
        end(c, f"{path}/w")


@scenario
def tokens_of_accounts(c: Client) -> None:
    """What a TokenRequest may ask for, and what is refused."""
    path = core(c, "serviceaccounts")
    c.post(path, {"metadata": {"name": "a"}})
    c.post(core(c, "pods"), {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "a", "containers": [{"name": "c", "image": "i"}]}}, silent=True)
    uid = c.get(core(c, "pods", "p"), silent=True).uid
    pod = {"apiVersion": "v1", "kind": "Pod", "name": "p"}

    def ask(body: Any, name: str = "a") -> None:
        reply = c.post(f"{path}/{name}/token", body, DRY)
        if reply.status == 201:
            c.transcript[-1]["body"]["status"] = {}

    for spec in (
        {}, {"audiences": []}, {"audiences": ["x"]}, {"audiences": [""]}, {"expirationSeconds": 599}, {"expirationSeconds": 600}, {"expirationSeconds": 2**32}, {"expirationSeconds": 2**32 + 1}, {"expirationSeconds": -1},
        {"boundObjectRef": pod}, {"boundObjectRef": {**pod, "uid": uid}}, {"boundObjectRef": {**pod, "uid": "x"}}, {"boundObjectRef": {**pod, "name": "absent"}}, {"boundObjectRef": {**pod, "kind": "Secret"}},
        {"boundObjectRef": {**pod, "kind": "Node", "name": "n"}}, {"boundObjectRef": {**pod, "kind": "ConfigMap"}}, {"boundObjectRef": {**pod, "apiVersion": "v2"}}, {"boundObjectRef": {"kind": "Pod"}}, {"boundObjectRef": {}},
    ):
        ask({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
    for body in ({"metadata": {"name": "other"}, "spec": {}}, {"metadata": {"namespace": "other"}, "spec": {}}, {"metadata": {"name": "a", "namespace": c.ns}, "spec": {}}, {"kind": "Pod", "apiVersion": "v1"}, {}, []):
        ask(body)
    ask({"spec": {}}, "absent")
    c.get(f"{path}/a/token")
    c.put(f"{path}/a/token", {})
    c.delete(f"{path}/a/token")
    end(c, core(c, "pods", "p"))


@scenario
def containers_are_added_and_resized(c: Client) -> None:
    """Ephemeral containers only grow; a resize changes amounts only."""
    path = core(c, "pods")
    amounts = {"requests": {"cpu": "100m", "memory": "10Mi"}, "limits": {"cpu": "200m", "memory": "20Mi"}}
    c.post(path, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": amounts}, {"name": "d", "image": "i"}], "initContainers": [{"name": "s", "image": "i", "restartPolicy": "Always", "resources": amounts}]}})
    where = f"{path}/p/ephemeralcontainers"
    c.get(where)
    for one in (
        {"name": "e", "image": "i"}, {"name": "e"}, {"name": "c", "image": "i"}, {"name": "E_", "image": "i"}, {"name": "e", "image": "i", "ports": [{"containerPort": 1}]}, {"name": "e", "image": "i", "resources": amounts},
        {"name": "e", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}}, {"name": "e", "image": "i", "targetContainerName": "c"}, {"name": "e", "image": "i", "targetContainerName": "x"}, {"name": "e", "image": "i", "lifecycle": {}},
        {"name": "e", "image": "i", "restartPolicy": "Always"}, {"name": "e", "image": "i", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}, {"name": "e", "image": "i", "volumeMounts": [{"name": "x", "mountPath": "/x", "subPath": "y"}]},
        {"name": "e", "image": "i", "terminationMessagePolicy": "Nope"}, {"name": "e", "image": "i", "stdinOnce": True}, {"name": "e", "image": " i"},
    ):
        c.patch(where, {"spec": {"ephemeralContainers": [one]}}, STRATEGIC, DRY)
        c.patch(f"{path}/p", {"spec": {"ephemeralContainers": [one]}}, STRATEGIC, DRY)
    c.patch(where, {"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}, STRATEGIC)
    c.patch(where, {"spec": {"ephemeralContainers": [{"name": "f", "image": "i"}]}}, STRATEGIC)
    c.patch(where, {"spec": {"ephemeralContainers": [{"name": "e", "image": "j"}]}}, STRATEGIC)
    c.patch(where, {"spec": {"ephemeralContainers": []}}, MERGE)
    c.patch(where, {"spec": {"containers": [{"name": "c", "image": "j"}]}, "metadata": {"labels": {"x": "y"}}}, STRATEGIC)
    c.patch(where, {"spec": {"nodeName": "n"}}, MERGE)
    c.put(where, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"ephemeralContainers": []}})
    where = f"{path}/p/resize"
    c.get(where)
    for change in (
        {"containers": [{"name": "c", "resources": {"requests": {"cpu": "150m"}}}]}, {"containers": [{"name": "c", "resources": {"limits": {"memory": "5Mi"}}}]}, {"containers": [{"name": "c", "resources": {"limits": {"cpu": None}}}]},
        {"containers": [{"name": "d", "resources": {"requests": {"cpu": "1"}}}]}, {"containers": [{"name": "c", "image": "j"}]}, {"containers": [{"name": "c", "resources": {"requests": {"example.com/x": "1"}}}]},
        {"containers": [{"name": "x", "image": "i"}]}, {"initContainers": [{"name": "s", "resources": {"requests": {"cpu": "150m"}}}]}, {"resources": {"requests": {"cpu": "1"}}}, {"nodeName": "n"}, {"containers": [{"name": "c", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}]},
        {"containers": [{"name": "c", "resources": {"requests": {"memory": "15Mi"}, "limits": {"memory": "15Mi"}}}]}, {"containers": [{"name": "c", "resources": {"claims": [{"name": "x"}]}}]}, {"terminationGracePeriodSeconds": 5},
    ):
        c.patch(where, {"spec": change}, STRATEGIC, DRY)
    c.patch(where, {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "150m"}}}]}}, STRATEGIC)
    c.patch(where, {"metadata": {"labels": {"x": "y"}}}, MERGE)
    c.get(f"{path}/p", headers={"Accept": TABLE})
    c.patch(f"{path}/absent/resize", {}, MERGE)
    c.patch(f"{path}/absent/ephemeralcontainers", {}, MERGE)
    end(c, f"{path}/p")


@scenario
def grants_do_not_escalate(c: Client) -> None:
    """Who is not an administrator grants what they have: roles, bindings, aggregation, impersonation."""
    rbac = grouped(c, "rbac.authorization.k8s.io/v1")
    c.post(f"{rbac}/roles", {"metadata": {"name": "maker"}, "rules": [rule("*", "roles,rolebindings", "rbac.authorization.k8s.io"), rule("get,list", "pods"), rule("get", "configmaps", names="one,two")]}, silent=True)
    one = robot(c)
    c.post(f"{rbac}/rolebindings", {"metadata": {"name": "maker"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maker"}, "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": c.ns}]}, silent=True)
    from tests.differential.pacing import until
    until(lambda: one.get(f"{rbac}/roles", silent=True).status == 200)
    for rules in (
        [], [rule("get", "pods")], [rule("list,get", "pods")], [rule("delete", "pods")], [rule("get", "pods,secrets")], [rule("*", "pods")], [rule("get", "*")], [rule("get", "configmaps")], [rule("get", "configmaps", names="one")],
        [rule("get", "configmaps", names="one,three")], [rule("get", "pods/status")], [rule("get", "pods", "apps")], [rule("get", "pods", "*")], [rule("get", "pods"), rule("delete", "pods"), rule("watch", "nodes")],
        [{"verbs": ["get"], "nonResourceURLs": ["/x"]}], [rule("escalate", "roles", "rbac.authorization.k8s.io")], [rule("create,update", "roles", "rbac.authorization.k8s.io")],
    ):
        one.post(f"{rbac}/roles", {"metadata": {"name": "new"}, "rules": rules}, DRY)
        one.put(f"{rbac}/roles/maker", {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "maker"}, "rules": rules}, DRY)
    for kind, name in (("Role", "maker"), ("Role", "absent"), ("ClusterRole", "view"), ("ClusterRole", "cluster-admin"), ("ClusterRole", "absent"), ("ClusterRole", "system:discovery"), ("Nope", "x")):
        body = {"metadata": {"name": "new"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}, "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]}
        one.post(f"{rbac}/rolebindings", body, DRY)
        c.post(f"{rbac}/rolebindings", body, DRY)
    for path, verb in ((core(c, "pods"), "GET"), (core(c, "secrets"), "GET"), (core(c, "configmaps", "one"), "GET"), (core(c, "configmaps", "three"), "GET"), (core(c, "configmaps"), "GET"), (core(c, "pods", "p", "log"), "GET"), (core(c, "pods", "p", "exec"), "POST"), ("/api/v1/nodes", "GET"), ("/apis/apps/v1/deployments", "GET"), (core(c, "pods"), "DELETE"), (core(c, "pods", "p"), "PATCH"), ("/metrics", "GET"), ("/api/v1/namespaces", "POST"), (f"/api/v1/namespaces/{c.ns}/finalize", "PUT"), (core(c, "serviceaccounts", "robot", "token"), "POST")):
        one.request(verb, path, {} if verb in ("POST", "PUT", "PATCH") else None, ctype=MERGE if verb == "PATCH" else None)
    for who in ({"Impersonate-User": "bob"}, {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}, {"Impersonate-Group": "x"}, {"Impersonate-User": f"system:serviceaccount:{c.ns}:robot"}, {"Impersonate-Uid": "5", "Impersonate-User": "a"}, {"Impersonate-User": "a", "Impersonate-Extra-Scopes": "x"}):
        one.get(core(c, "pods"), headers=who)
        c.get(core(c, "pods", "absent"), headers=who)


@scenario
def events_of_both_groups(c: Client) -> None:
    """An event is written by either group and read by the other; each group has its own rules."""
    old, new = core(c, "events"), grouped(c, "events.k8s.io/v1", "events")
    about = {"kind": "Pod", "namespace": c.ns, "name": "p", "apiVersion": "v1"}
    time = "2026-01-01T00:00:00.000001Z"
    fresh = {"eventTime": time, "reportingController": "a.b/c", "reportingInstance": "i", "action": "Do", "reason": "Did", "type": "Normal", "note": "n", "regarding": about}
    for number, change in enumerate((
        {}, {"eventTime": None}, {"reportingController": ""}, {"reportingController": "a b"}, {"reportingInstance": ""}, {"reportingInstance": "i" * 129}, {"action": ""}, {"action": "a" * 129}, {"reason": ""}, {"reason": "r" * 129}, {"type": ""}, {"type": "Nope"},
        {"note": "n" * 1025}, {"regarding": {**about, "namespace": "other"}}, {"regarding": {"kind": "Node", "name": "n"}}, {"series": {"count": 1, "lastObservedTime": time}}, {"series": {"count": 2, "lastObservedTime": time}}, {"series": {"count": 2}}, {"related": about},
        {"deprecatedSource": {"component": "x"}}, {"deprecatedCount": 3}, {"deprecatedFirstTimestamp": "2026-01-01T00:00:00Z"}, {"deprecatedLastTimestamp": "2026-01-01T00:00:00Z"},
    )):
        c.post(new, {"metadata": {"name": f"n{number}"}, **fresh, **change})
    plain = {"involvedObject": about, "reason": "R", "message": "m", "type": "Warning", "source": {"component": "x"}, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1}
    for number, change in enumerate((
        {}, {"involvedObject": {}}, {"involvedObject": {**about, "namespace": "other"}}, {"involvedObject": {"kind": "Node", "name": "n"}}, {"type": ""}, {"type": "x"}, {"reason": ""}, {"message": "m" * 2000}, {"eventTime": time}, {"eventTime": time, "reportingComponent": "a.b/c", "reportingInstance": "i", "action": "A"},
        {"count": -1}, {"series": {"count": 1}}, {"source": {"component": "x", "host": "h"}}, {"involvedObject": {**about, "fieldPath": "spec.containers{c}"}},
    )):
        c.post(old, {"metadata": {"name": f"o{number}"}, **plain, **change})
    for name in ("n0", "o0", "o9", "n18"):
        c.get(f"{old}/{name}")
        c.get(f"{new}/{name}")
        c.get(f"{old}/{name}", headers={"Accept": TABLE})
        c.get(f"{new}/{name}", headers={"Accept": TABLE})
        c.patch(f"{old}/{name}", {"count": 5, "message": "again"}, MERGE)
        c.patch(f"{new}/{name}", {"note": "again"}, MERGE)
        c.patch(f"{new}/{name}", {"series": {"count": 5, "lastObservedTime": time}}, MERGE)
        c.patch(f"{new}/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE)
        c.patch(f"{old}/{name}", {"involvedObject": {"name": "q"}}, MERGE)
        c.patch(f"{new}/{name}", {"related": {}}, MERGE)
    for selector in ("involvedObject.name=p", "reason=R", "type=Warning", "source=x", "reportingComponent=a.b/c", "involvedObject.kind=Node", "involvedObject.fieldPath=spec.containers{c}", "regarding.name=p"):
        c.get(old, {"fieldSelector": selector, "limit": "1"})
        c.get(new, {"fieldSelector": selector, "limit": "1"})
    c.delete(old, None, {"fieldSelector": "type=Warning"})
    c.get(new, {"limit": "2"})
    c.delete(new)


@scenario
def texts_of_values_of_any_form(c: Client) -> None:
    """An update owns a value whose text changed, be it by a space; an apply has no texts."""
    path = "/apis/resource.k8s.io/v1/deviceclasses"
    name = c.name("d")

    def body(text: str) -> bytes:
        head = f'{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"{name}"}},"spec":{{"config":[{{"opaque":{{"driver":"d.e","parameters":'
        return f"{head}{text}}}}}]}}}}".encode()

    for first in ('{"a": 1}', '{"a":1}', '{"a":1.0}'):
        for second in ('{"a": 1}', '{"a":1}', '{ "a":1.0}'):
            c.post(path, body(first), {"fieldManager": "m1"})
            c.put(f"{path}/{name}", body(second), {"fieldManager": "m2"})
            c.patch(f"{path}/{name}", body(second), APPLY, {"fieldManager": "m3"})
            c.put(f"{path}/{name}", body(first), {"fieldManager": "m4"})
            c.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}}, MERGE, {"fieldManager": "m5"})
            c.delete(f"{path}/{name}")
    revisions = grouped(c, "apps/v1", "controllerrevisions")
    for text in ('{"a": 1}', '{"a":1}', '{"a":1.0}', '{"a":1,"b":null}'):
        c.post(revisions, b'{"metadata":{"name":"r"},"revision":1,"data":{"a":1}}')
        c.put(f"{revisions}/r", b'{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"r"},"revision":1,"data":%s}' % text.encode())
