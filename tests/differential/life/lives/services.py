"""Services' Endpoints and EndpointSlices."""

from __future__ import annotations

from tests.differential.life.manifests import pod, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World

BOTH = ("endpointslices", "endpoints")


def service(name: str, selector: dict[str, str] | None, ports: list[dict[str, object]], **spec: object) -> dict[str, object]:
    return {
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {**({"selector": selector} if selector else {}), "ports": ports, **spec},
    }


def up(w: World, name: str, ip: str, ready: bool = True) -> None:
    """Give a pod that its node runs another address, and make it ready or not."""
    w.until(lambda: (w.read("pods", name) or {})["status"]["phase"] == "Running")
    w.run(
        name,
        podIP=ip,
        podIPs=[{"ip": ip}],
        conditions=[{"type": t, "status": "True" if ready else "False"} for t in ("Ready", "ContainersReady")],
    )


@scenario
def ready_pods(w: World) -> None:
    """Pods of the selector become endpoints with address, node and reference; ports are looked up by number or name."""
    d = workload("Deployment", "web", 2)
    d["spec"]["template"]["spec"]["containers"][0]["ports"] = [
        {"name": "http", "containerPort": 8080},
        {"name": "dns", "containerPort": 53, "protocol": "UDP"},
    ]
    w.make(
        service(
            "web",
            {"app": "web"},
            [
                {"name": "a", "port": 80, "targetPort": "http"},
                {"name": "b", "port": 90, "targetPort": 9090},
                {"name": "c", "port": 53, "targetPort": "dns", "protocol": "UDP"},
                {"name": "d", "port": 7, "targetPort": "absent"},
            ],
        )
    )
    w.settle()
    w.dump(*BOTH, label="none")
    w.make(d)
    w.settle()
    w.dump(*BOTH, "services", label="two")
    w.edit("deployments", "web", {"spec": {"replicas": 0}})
    w.settle()
    w.dump(*BOTH, label="none again")


@scenario
def managers(w: World) -> None:
    """Whose the fields of Endpoints and EndpointSlices are."""
    w.make(pod("p", {"app": "x"}))
    w.settle()
    w.make(service("x", {"app": "x"}, [{"port": 80, "appProtocol": "http"}]))
    w.settle()
    w.dump(*BOTH, managers=True)


@scenario
def pods_not_ready(w: World) -> None:
    """Pods that are not ready are listed apart (Endpoints) or with ready false (EndpointSlices), and published if the Service says so."""
    for name, ip, ready in (("a", "10.64.9.1", True), ("b", "10.64.9.2", False)):
        w.make(pod(name, {"app": "x"}))
        up(w, name, ip, ready)
    w.make(pod("c", {"app": "x"}, hand=True))
    w.make(service("x", {"app": "x"}, [{"port": 80}]))
    w.make(service("all", {"app": "x"}, [{"port": 80}], publishNotReadyAddresses=True))
    w.settle()
    w.dump(*BOTH, label="one of three")
    up(w, "b", "10.64.9.2")
    w.settle()
    w.dump(*BOTH, label="two")


@scenario
def pods_that_end(w: World) -> None:
    """A terminating pod serves and is not ready; failed and succeeded pods are no endpoints."""
    for i, name in enumerate(("ends", "fails", "stays", "sick"), 1):
        p = pod(name, {"app": "x"})
        p["metadata"]["finalizers"] = ["example.com/wait"]
        w.make(p)
        up(w, name, f"10.64.8.{i}", ready=name != "sick")
    w.make(service("x", {"app": "x"}, [{"port": 80}]))
    w.settle()
    w.run("fails", phase="Failed")
    w.remove("pods", "ends")
    w.remove("pods", "sick")
    w.settle()
    w.dump(*BOTH)


@scenario
def headless(w: World) -> None:
    """A headless Service has endpoints and a label for it; hostnames of pods in its subdomain are told."""
    w.make(pod("a", {"app": "x"}, hostname="first", subdomain="x"))
    w.make(pod("b", {"app": "x"}, hostname="second", subdomain="other"))
    up(w, "a", "10.64.7.1")
    up(w, "b", "10.64.7.2")
    w.make(service("x", {"app": "x"}, [{"port": 80}], clusterIP="None"))
    w.make(service("portless", {"app": "x"}, [], clusterIP="None"))
    w.settle()
    w.dump(*BOTH)


@scenario
def ports_that_differ(w: World) -> None:
    """Pods whose named port has another number are in a slice (and a subset) of their own."""
    for i, port in enumerate((8080, 8080, 9090), 1):
        p = pod(f"p{i}", {"app": "x"})
        p["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": port}]
        w.make(p)
        up(w, f"p{i}", f"10.64.6.{i}")
    w.make(service("x", {"app": "x"}, [{"name": "w", "port": 80, "targetPort": "http"}]))
    w.settle()
    w.dump(*BOTH)


@scenario
def no_selector(w: World) -> None:
    """Endpoints written by hand are mirrored into slices; a Service without selector makes none itself."""
    w.make(service("x", None, [{"name": "p", "port": 80}]))
    w.settle()
    w.dump(*BOTH, label="nothing")
    w.make(
        {
            "kind": "Endpoints",
            "metadata": {"name": "x", "labels": {"mine": "1"}, "annotations": {"note": "n"}},
            "subsets": [
                {
                    "addresses": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2", "hostname": "h"}],
                    "notReadyAddresses": [{"ip": "192.0.2.3"}],
                    "ports": [{"name": "p", "port": 8080}],
                },
                {"addresses": [{"ip": "192.0.2.9"}], "ports": [{"name": "q", "port": 9}]},
            ],
        }
    )
    w.settle()
    w.dump(*BOTH, label="mirrored")
    w.edit("endpoints", "x", {"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}})
    w.settle()
    w.dump("endpointslices", label="not mirrored")


@scenario
def changes_of_mind(w: World) -> None:
    """Another selector, another port, ExternalName: endpoints follow; with the Service they go."""
    for name, app in (("a", "x"), ("b", "y")):
        w.make(pod(name, {"app": app}))
    w.make(service("s", {"app": "x"}, [{"port": 80}]))
    w.settle()
    w.edit(
        "services",
        "s",
        {"spec": {"selector": {"app": "y"}, "ports": [{"port": 81, "targetPort": 8181}]}, "metadata": {"labels": {"l": "1"}}},
    )
    w.settle()
    w.dump(*BOTH, label="other selector")
    w.edit("pods", "b", {"metadata": {"labels": {"app": "z"}}})
    w.settle()
    w.dump(*BOTH, label="pod relabelled")
    w.remove("services", "s")
    w.settle()
    w.dump(*BOTH, label="service gone")


@scenario
def readiness_gates(w: World) -> None:
    """A pod with readiness gates is an endpoint by its Ready condition, whatever the gates say."""
    w.make(pod("p", {"app": "x"}, readinessGates=[{"conditionType": "example.com/lb"}]))
    w.make(service("x", {"app": "x"}, [{"port": 80}]))
    w.settle()
    w.dump("pods", "endpointslices", label="as the node says")
    w.run(
        "p",
        conditions=[
            {"type": "example.com/lb", "status": "False"},
            {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady"},
        ],
    )
    w.settle()
    w.dump("endpointslices", label="not ready")


@scenario
def pods_on_no_node(w: World) -> None:
    """A pod with an address and no node is no endpoint: slices skip it and an event says so; Endpoints are not even made."""
    w.make(pod("p", {"app": "x"}, hand=True))
    w.run("p", phase="Running", podIP="10.64.5.1", podIPs=[{"ip": "10.64.5.1"}], conditions=[{"type": "Ready", "status": "True"}])
    w.settle()
    w.make(service("x", {"app": "x"}, [{"port": 80}]))
    w.settle()
    w.dump(*BOTH)
