"""Quotas, limit ranges, priorities and the other built-in admission: what they fill in, what they refuse, in which words."""

from __future__ import annotations

from typing import Any

from tests.differential.client import APPLY, MERGE, TABLE, Client
from tests.differential.definitions import definition, make, obj, served
from tests.differential.pacing import until
from tests.differential.registry import scenario

DRY = {"dryRun": "All"}


def core(c: Client, *rest: str) -> str:
    return "/".join([f"/api/v1/namespaces/{c.ns}", *rest])


def grouped(c: Client, group: str, *rest: str) -> str:
    return "/".join([f"/apis/{group}/namespaces/{c.ns}", *rest])


def container(name: str = "c", **resources: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", **({"resources": resources} if resources else {})}


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": list(containers) or [container()], **spec}}


def quota(c: Client, name: str, hard: dict[str, Any], **spec: Any) -> None:
    """Make a quota and write what the controller would: that nothing is used."""
    c.post(core(c, "resourcequotas"), {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})
    used = dict.fromkeys(hard, "0")
    c.patch(core(c, "resourcequotas", name, "status"), {"status": {"hard": hard, "used": used}}, MERGE)


def used(c: Client, name: str) -> None:
    """Record what is used; the usage of writes at once is written in one go."""
    c.get(core(c, "resourcequotas", name))


def clear(c: Client, plural: str, group: str = "") -> None:
    base = grouped(c, group, plural) if group else core(c, plural)
    c.delete(base, {"gracePeriodSeconds": 0}, silent=True)


@scenario
def quotas_of_counts(c: Client) -> None:
    """Each create of a counted kind adds one; the one too many is refused; a dry run counts nothing."""
    quota(
        c,
        "counts",
        {
            "configmaps": "3",
            "secrets": "1",
            "count/leases.coordination.k8s.io": "1",
            "services": "2",
            "persistentvolumeclaims": "1",
        },
    )
    for name in "abcd":
        c.post(core(c, "configmaps"), {"metadata": {"name": name}}, DRY)
        c.post(core(c, "configmaps"), {"metadata": {"name": name}})
    used(c, "counts")
    for name in "ab":
        c.post(core(c, "secrets"), {"metadata": {"name": name}})
        c.post(grouped(c, "coordination.k8s.io/v1", "leases"), {"metadata": {"name": name}})
        c.post(
            core(c, "persistentvolumeclaims"),
            {
                "metadata": {"name": name},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            },
        )
    c.patch(
        core(c, "configmaps", "z"), {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}, APPLY, {"fieldManager": "m"}
    )
    c.put(core(c, "configmaps", "a"), {"metadata": {"name": "a"}, "data": {"a": "b"}})
    c.post(core(c, "configmaps"), {"metadata": {"name": "BAD"}})
    used(c, "counts")
    c.get(core(c, "resourcequotas"), headers={"Accept": TABLE})
    for plural in ("configmaps", "secrets", "persistentvolumeclaims"):
        clear(c, plural)
    clear(c, "leases", "coordination.k8s.io/v1")
    used(c, "counts")


@scenario
def quotas_of_compute(c: Client) -> None:
    """A pod must say what a quota counts; what it asks for is added; the message tells requested, used and limited."""
    quota(c, "compute", {"requests.cpu": "1", "requests.memory": "1Gi", "limits.cpu": "2", "limits.memory": "2Gi", "pods": "3"})
    c.post(core(c, "pods"), pod("none"))
    c.post(core(c, "pods"), pod("some", container(requests={"cpu": "100m"})))
    c.post(core(c, "pods"), pod("limits", container(limits={"cpu": "100m", "memory": "10Mi"})))
    c.post(core(c, "pods"), pod("two", container(limits={"cpu": "100m", "memory": "10Mi"}), container("d")))
    c.post(
        core(c, "pods"),
        pod(
            "init",
            container(limits={"cpu": "100m", "memory": "10Mi"}),
            initContainers=[container("i", limits={"cpu": "500m", "memory": "20Mi"})],
        ),
    )
    used(c, "compute")
    c.post(
        core(c, "pods"), pod("big", container(limits={"cpu": "3", "memory": "3Gi"}, requests={"cpu": "600m", "memory": "900Mi"}))
    )
    c.post(
        core(c, "pods"),
        pod("big-cpu", container(limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "900m", "memory": "10Mi"})),
    )
    c.post(
        core(c, "pods"), pod("third", container(limits={"cpu": "10m", "memory": "1Mi"}), overhead={"cpu": "1m", "memory": "1Mi"})
    )
    c.post(core(c, "pods"), pod("fourth", container(limits={"cpu": "10m", "memory": "1Mi"})))
    c.post(
        core(c, "pods"),
        pod(
            "fourth",
            container(limits={"cpu": "10m", "memory": "1Mi"}),
            initContainers=[container("i", limits={"cpu": "1m", "memory": "1Mi"}) | {"restartPolicy": "Always"}],
        ),
    )
    used(c, "compute")
    c.get(core(c, "resourcequotas", "compute"), headers={"Accept": TABLE})
    clear(c, "pods")


@scenario
def quotas_of_pod_level_resources(c: Client) -> None:
    """What a pod asks for as a whole counts in place of its containers'."""
    quota(c, "q", {"cpu": "1", "memory": "1Gi", "limits.cpu": "1"})
    whole = {"requests": {"cpu": "300m", "memory": "10Mi"}, "limits": {"cpu": "400m", "memory": "20Mi"}}
    c.post(core(c, "pods"), pod("whole", container(), resources=whole))
    used(c, "q")
    c.post(
        core(c, "pods"),
        pod(
            "part",
            container(requests={"cpu": "100m"}),
            resources={"requests": {"cpu": "700m", "memory": "1Mi"}, "limits": {"cpu": "700m"}},
        ),
    )
    c.post(core(c, "pods"), pod("none", container(requests={"cpu": "100m"}), resources={"requests": {"memory": "1Mi"}}))
    c.post(core(c, "pods"), pod("over", container(), resources={**whole, "requests": {"cpu": "400m", "memory": "2Gi"}}))
    used(c, "q")
    clear(c, "pods")


@scenario
def quotas_have_scopes(c: Client) -> None:
    """A quota with a scope counts only pods of it: best effort, terminating, of a priority, across namespaces."""
    for name, scope in (
        ("be", "BestEffort"),
        ("nbe", "NotBestEffort"),
        ("t", "Terminating"),
        ("nt", "NotTerminating"),
        ("cross", "CrossNamespacePodAffinity"),
    ):
        quota(c, name, {"pods": "1"}, scopes=[scope])
    quota(
        c,
        "high",
        {"pods": "1"},
        scopeSelector={
            "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-cluster-critical"]}]
        },
    )
    quota(c, "exists", {"pods": "1"}, scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]})
    limited = container(limits={"cpu": "1m"})
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "k", "namespaces": ["other"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for number, one in enumerate(
        (
            pod("a"),
            pod("a", limited),
            pod("a", activeDeadlineSeconds=5),
            pod("a", limited, activeDeadlineSeconds=5),
            pod("a", affinity=affinity),
            pod("a", limited, affinity=affinity),
        )
    ):
        one["metadata"]["name"] = f"p{number}"
        c.post(core(c, "pods"), one)
    c.get(core(c, "resourcequotas"), {"includeObject": "None"}, headers={"Accept": TABLE})
    clear(c, "pods")


@scenario
def quotas_of_storage(c: Client) -> None:
    """Claims count by class, and by the class of attributes; growing counts the growth."""
    quota(
        c,
        "s",
        {
            "requests.storage": "10Gi",
            "persistentvolumeclaims": "3",
            "gold.storageclass.storage.k8s.io/requests.storage": "5Gi",
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        },
    )
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Gi"}}}
    path = core(c, "persistentvolumeclaims")
    c.post(path, {"metadata": {"name": "a"}, "spec": {**claim, "storageClassName": "gold"}})
    c.post(path, {"metadata": {"name": "b"}, "spec": {**claim, "storageClassName": "gold"}})
    c.post(path, {"metadata": {"name": "c"}, "spec": {**claim, "storageClassName": ""}})
    c.post(path, {"metadata": {"name": "d"}, "spec": claim})
    c.post(
        path,
        {
            "metadata": {"name": "e", "annotations": {"volume.beta.kubernetes.io/storage-class": "gold"}},
            "spec": {**claim, "resources": {"requests": {"storage": "1Gi"}}},
        },
    )
    used(c, "s")
    c.patch(f"{path}/a", {"spec": {"resources": {"requests": {"storage": "9Gi"}}}}, MERGE)
    c.get(core(c, "resourcequotas", "s"), headers={"Accept": TABLE})
    for name in "acde":
        c.patch(f"{path}/{name}", {"metadata": {"finalizers": None}}, MERGE, silent=True)
    clear(c, "persistentvolumeclaims")


@scenario
def quotas_of_services(c: Client) -> None:
    """Load balancers and node ports count on create and when the type changes."""
    quota(c, "s", {"services": "4", "services.nodeports": "2", "services.loadbalancers": "1"})
    path = core(c, "services")
    port = {"port": 80}
    c.post(path, {"metadata": {"name": "a"}, "spec": {"ports": [port], "type": "NodePort"}})
    c.post(
        path,
        {
            "metadata": {"name": "b"},
            "spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}], "type": "NodePort"},
        },
    )
    c.post(
        path,
        {"metadata": {"name": "c"}, "spec": {"ports": [port], "type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}},
    )
    c.post(path, {"metadata": {"name": "d"}, "spec": {"ports": [port], "type": "LoadBalancer"}})
    c.post(path, {"metadata": {"name": "e"}, "spec": {"ports": [port]}})
    used(c, "s")
    c.patch(f"{path}/e", {"spec": {"type": "LoadBalancer"}}, MERGE)
    c.patch(f"{path}/e", {"spec": {"type": "NodePort"}}, MERGE)
    c.patch(f"{path}/c", {"spec": {"type": "ClusterIP"}}, MERGE)
    c.patch(f"{path}/e", {"spec": {"type": "ExternalName", "externalName": "a.b"}}, MERGE)
    c.patch(f"{path}/e", {"spec": {"type": "LoadBalancer", "externalName": None}}, MERGE)
    used(c, "s")
    for name in "abcde":
        c.delete(f"{path}/{name}", silent=True)


@scenario
def quotas_of_custom_resources(c: Client) -> None:
    """A custom resource is counted by count/plural.group; other spellings count nothing."""
    body = definition(c, obj({"spec": obj({"a": {"type": "integer"}})}))
    with served(c, body) as path:
        quota(c, "q", {f"count/widgets.g{c.id}.example.com": "1", "count/pods": "0", "count/deployments.apps": "0"})
        until(lambda: c.post(path, make(body, "probe"), DRY, silent=True).status == 201)
        c.post(path, make(body, "one"))
        c.post(path, make(body, "two"))
        c.post(core(c, "pods"), pod("p"))
        c.post(
            grouped(c, "apps/v1", "deployments"),
            {
                "metadata": {"name": "d"},
                "spec": {
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}},
                },
            },
        )
        used(c, "q")


@scenario
def quotas_without_a_status(c: Client) -> None:
    """Until the controller wrote the status, what the quota names is refused."""
    c.post(core(c, "resourcequotas"), {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5", "pods": "5", "cpu": "1"}}})
    c.post(core(c, "configmaps"), {"metadata": {"name": "a"}})
    c.post(core(c, "pods"), pod("p"))
    c.post(core(c, "pods"), pod("p", container(requests={"cpu": "1m"})))
    c.post(core(c, "secrets"), {"metadata": {"name": "a"}})
    c.patch(core(c, "resourcequotas", "q", "status"), {"status": {"hard": {"configmaps": "5"}}}, MERGE)
    c.post(core(c, "configmaps"), {"metadata": {"name": "a"}})
    c.patch(core(c, "resourcequotas", "q", "status"), {"status": {"used": {"configmaps": "5"}}}, MERGE)
    c.post(core(c, "configmaps"), {"metadata": {"name": "a"}})


@scenario
def limit_ranges_default_and_bound(c: Client) -> None:
    """Containers get defaults; those beyond the bounds are refused, all faults in one message."""
    path = core(c, "limitranges")
    c.post(
        path,
        {
            "metadata": {"name": "l"},
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "default": {"cpu": "200m", "memory": "100Mi"},
                        "defaultRequest": {"cpu": "100m"},
                        "min": {"cpu": "50m"},
                        "max": {"cpu": "1", "memory": "200Mi"},
                        "maxLimitRequestRatio": {"cpu": "4"},
                    },
                    {"type": "Pod", "max": {"cpu": "1500m"}, "min": {"memory": "1Mi"}, "maxLimitRequestRatio": {"memory": "2"}},
                    {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}},
                ]
            },
        },
    )
    for number, one in enumerate(
        (
            pod("a"),
            pod("a", container(limits={"cpu": "2"})),
            pod("a", container(requests={"cpu": "1m"})),
            pod("a", container(requests={"cpu": "50m"}, limits={"cpu": "1"})),
            pod("a", container(), container("d"), initContainers=[container("i", limits={"cpu": "3"})]),
            pod("a", container(limits={"memory": "300Mi"}, requests={"memory": "1Mi"})),
            pod("a", container(limits={"cpu": "900m"}), container("d", limits={"cpu": "900m"})),
            pod("a", container(requests={"memory": "100"}, limits={"memory": "100"})),
            pod("a", container(limits={"example.com/x": "1"})),
            pod("a", container(), resources={"limits": {"cpu": "3"}}),
            pod("a", container(), resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}),
            pod("a", container(), initContainers=[container("i") | {"restartPolicy": "Always"}]),
        )
    ):
        one["metadata"]["name"] = f"p{number}"
        c.post(core(c, "pods"), one, DRY)
    for size in ("1Mi", "1Gi", "5Gi", "6Gi"):
        c.post(
            core(c, "persistentvolumeclaims"),
            {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}},
            DRY,
        )
    c.post(
        core(c, "persistentvolumeclaims"),
        {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {}}},
        DRY,
    )
    c.post(
        core(c, "persistentvolumeclaims"),
        {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}},
    )
    c.patch(core(c, "persistentvolumeclaims", "v"), {"spec": {"resources": {"requests": {"storage": "9Gi"}}}}, MERGE)
    c.get(path, headers={"Accept": TABLE})


@scenario
def several_limit_ranges(c: Client) -> None:
    """All ranges of a namespace hold; the first fills in."""
    for name, default, most in (("a", "100m", "1"), ("b", "300m", "500m")):
        c.post(
            core(c, "limitranges"),
            {
                "metadata": {"name": name},
                "spec": {"limits": [{"type": "Container", "default": {"cpu": default}, "max": {"cpu": most}}]},
            },
        )
    c.post(core(c, "pods"), pod("p", container(requests={"cpu": "600m"}, limits={"cpu": "700m"})), DRY)
    c.post(core(c, "pods"), pod("p", container(limits={"cpu": "2"})), DRY)


@scenario
def priorities_of_pods(c: Client) -> None:
    """A pod gets the value and the preemption policy of its class; what it says itself must agree."""
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    high, never = c.name("high"), c.name("never")
    c.post(path, {"metadata": {"name": high}, "value": 1000, "description": "d"})
    c.post(path, {"metadata": {"name": never}, "value": -5, "preemptionPolicy": "Never"})
    c.post(path, {"metadata": {"name": c.name("too")}, "value": 2_000_000_000})
    c.post(path, {"metadata": {"name": "system-x"}, "value": 5})
    c.post(path, {"metadata": {"name": c.name("bad")}, "value": 1, "preemptionPolicy": "Nope"})
    for spec in (
        {},
        {"priorityClassName": high},
        {"priorityClassName": never},
        {"priorityClassName": "absent"},
        {"priorityClassName": high, "priority": 1000},
        {"priorityClassName": high, "priority": 5},
        {"priority": 0},
        {"priority": 7},
        {"priorityClassName": never, "preemptionPolicy": "PreemptLowerPriority"},
        {"priorityClassName": never, "preemptionPolicy": "Never"},
        {"preemptionPolicy": "Never"},
        {"preemptionPolicy": "Nope"},
        {"priorityClassName": "system-node-critical"},
        {"priorityClassName": "system-cluster-critical", "priority": 1},
    ):
        c.post(core(c, "pods"), pod("p", **spec), DRY)
    for change in ({"value": 5}, {"description": "e"}, {"preemptionPolicy": "Never"}, {"globalDefault": True}):
        c.patch(f"{path}/{high}", change, MERGE, DRY)
    c.get(f"{path}/{high}", headers={"Accept": TABLE})
    c.delete(f"{path}/{high}")
    c.post(core(c, "pods"), pod("p", priorityClassName=high), DRY)
    c.delete(f"{path}/{never}")


@scenario
def pod_security_of_a_namespace(c: Client) -> None:
    """Labels of the namespace enforce, warn and audit; workloads are warned of, pods refused."""
    ns = f"/api/v1/namespaces/{c.ns}"
    risky = pod(
        "r",
        container() | {"securityContext": {"privileged": True}},
        hostNetwork=True,
        hostPID=True,
        volumes=[{"name": "h", "hostPath": {"path": "/"}}],
    )
    good = pod(
        "g",
        container() | {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}},
        securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    )
    work = {
        "metadata": {"name": "w"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": risky["spec"]},
        },
    }
    for level in ("privileged", "baseline", "restricted", "nope"):
        for version in ("latest", "v1.20", "v1.99", "x"):
            c.patch(
                ns,
                {
                    "metadata": {
                        "labels": {
                            "pod-security.kubernetes.io/enforce": level,
                            "pod-security.kubernetes.io/enforce-version": version,
                        }
                    }
                },
                MERGE,
            )
            for one in (risky, good, pod("p")):
                c.post(core(c, "pods"), one, DRY)
    c.patch(
        ns,
        {
            "metadata": {
                "labels": {
                    "pod-security.kubernetes.io/enforce": None,
                    "pod-security.kubernetes.io/enforce-version": None,
                    "pod-security.kubernetes.io/warn": "restricted",
                    "pod-security.kubernetes.io/audit": "baseline",
                }
            }
        },
        MERGE,
    )
    c.post(core(c, "pods"), risky, DRY)
    c.post(grouped(c, "apps/v1", "deployments"), work, DRY)
    c.post(grouped(c, "apps/v1", "daemonsets"), work, DRY)
    c.post(
        grouped(c, "batch/v1", "cronjobs"),
        {
            "metadata": {"name": "c"},
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {"spec": {"template": {"spec": {**risky["spec"], "restartPolicy": "Never"}}}},
            },
        },
        DRY,
    )
    c.post(core(c, "podtemplates"), {"metadata": {"name": "t"}, "template": {"spec": risky["spec"]}}, DRY)
    c.post(core(c, "pods"), {**risky, "metadata": {"name": "stays"}})
    c.patch(ns, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}, MERGE, DRY)
    c.patch(ns, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}, MERGE)
    c.patch(core(c, "pods", "stays"), {"metadata": {"labels": {"a": "b"}}}, MERGE)
    c.patch(
        core(c, "pods", "stays"),
        {"spec": {"containers": [{"name": "c", "image": "j"}]}},
        "application/strategic-merge-patch+json",
    )
    c.patch(
        core(c, "pods", "stays", "ephemeralcontainers"),
        {"spec": {"ephemeralContainers": [{"name": "e", "image": "i", "securityContext": {"privileged": True}}]}},
        "application/strategic-merge-patch+json",
    )
    c.delete(core(c, "pods", "stays"), {"gracePeriodSeconds": 0}, silent=True)


@scenario
def default_classes(c: Client) -> None:
    """Of several default classes the newest counts; a claim that names none gets it."""
    path = "/apis/networking.k8s.io/v1/ingressclasses"
    rule = {"metadata": {"name": "i"}, "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}
    c.post(grouped(c, "networking.k8s.io/v1", "ingresses"), rule, DRY)
    c.post(grouped(c, "networking.k8s.io/v1", "ingresses"), {**rule, "spec": {**rule["spec"], "ingressClassName": "x"}}, DRY)
    c.post(
        grouped(c, "networking.k8s.io/v1", "ingresses"),
        {
            "metadata": {"name": "i", "annotations": {"kubernetes.io/ingress.class": "x"}},
            "spec": {**rule["spec"], "ingressClassName": "x"},
        },
        DRY,
    )
    c.post(
        path,
        {
            "metadata": {"name": c.name("i"), "annotations": {"ingressclass.kubernetes.io/is-default-class": "nope"}},
            "spec": {"controller": "a.b/c"},
        },
        DRY,
    )


@scenario
def tolerations_and_taints_by_admission(c: Client) -> None:
    """Pods tolerate unreachable nodes for 300 seconds, unless they say otherwise; extended resources add none here."""
    for tolerations in (
        None,
        [],
        [{"operator": "Exists"}],
        [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
        [{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}],
        [{"key": "node.kubernetes.io/unreachable", "operator": "Equal", "value": "x", "effect": "NoExecute"}],
        [{"effect": "NoExecute", "operator": "Exists"}],
        [{"key": "a", "effect": "NoSchedule"}],
    ):
        c.post(core(c, "pods"), pod("p", tolerations=tolerations), DRY)
    c.post(core(c, "pods"), pod("p", container(limits={"example.com/gpu": "1"})), DRY)


@scenario
def namespaces_that_end_or_are_absent(c: Client) -> None:
    """What is made in a namespace that is absent or ends is refused."""
    absent, ending = c.name("absent"), c.name("ending")
    for plural, body in (
        ("configmaps", {}),
        ("pods", pod("p")),
        ("secrets", {}),
        ("serviceaccounts", {}),
        ("services", {"spec": {"ports": [{"port": 80}]}}),
    ):
        one = {**body, "metadata": {"name": "a"}}
        c.post(f"/api/v1/namespaces/{absent}/{plural}", one)
        c.post(f"/api/v1/namespaces/{absent}/{plural}", one, DRY)
        c.patch(
            f"/api/v1/namespaces/{absent}/{plural}/a",
            {
                "apiVersion": "v1",
                "kind": {
                    "configmaps": "ConfigMap",
                    "pods": "Pod",
                    "secrets": "Secret",
                    "serviceaccounts": "ServiceAccount",
                    "services": "Service",
                }[plural],
                **body,
                "metadata": {"name": "a"},
            },
            APPLY,
            {"fieldManager": "m"},
        )
        c.delete(f"/api/v1/namespaces/{absent}/{plural}/a")
        c.delete(f"/api/v1/namespaces/{absent}/{plural}")
    c.post("/api/v1/namespaces", {"metadata": {"name": ending}, "spec": {"finalizers": ["a.b/c"]}})
    c.post(f"/api/v1/namespaces/{ending}/configmaps", {"metadata": {"name": "kept"}})
    c.delete(f"/api/v1/namespaces/{ending}")
    c.post(f"/api/v1/namespaces/{ending}/configmaps", {"metadata": {"name": "a"}})
    c.post(f"/api/v1/namespaces/{ending}/configmaps", {"metadata": {"name": "a"}}, DRY)
    c.patch(f"/api/v1/namespaces/{ending}/configmaps/kept", {"data": {"a": "b"}}, MERGE)
    c.delete(f"/api/v1/namespaces/{ending}")
    c.put(
        f"/api/v1/namespaces/{ending}/finalize",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ending}, "spec": {"finalizers": ["x"]}},
    )
    c.delete(f"/api/v1/namespaces/{ending}/configmaps/kept")
    c.put(
        f"/api/v1/namespaces/{ending}/finalize",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ending}, "spec": {"finalizers": []}},
    )
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        c.delete(f"/api/v1/namespaces/{name}", None, DRY)
