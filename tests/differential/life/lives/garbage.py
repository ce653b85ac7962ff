"""The garbage collector: what goes with its owner, what stays, what waits."""

from __future__ import annotations

from tests.differential.life.manifests import config, owner, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World

FINALIZER = ["example.com/wait"]


@scenario
def background(w: World) -> None:
    """Deleting in the background takes the owner at once and the dependents after it, whether they block or not."""
    a = w.make(config("a"))
    w.make(config("b", [owner(a)]))
    w.make(config("c", [owner(a, block=True, controller=True)]))
    w.make({"kind": "Secret", "metadata": {"name": "s", "ownerReferences": [owner(a)]}})
    w.make(config("free"))
    w.settle()
    w.dump("configmaps", label="before")
    w.remove("configmaps", "a", "Background")
    w.settle()
    w.dump("configmaps", "secrets", label="after")


@scenario
def foreground_waits_for_blockers(w: World) -> None:
    """Deleted in the foreground, an owner stays with the finalizer foregroundDeletion until the blocking dependents are gone."""
    a = w.make(config("a"))
    w.make(config("blocks", [owner(a, block=True)], finalizers=FINALIZER))
    w.make(config("other", [owner(a, block=False)]))
    w.settle()
    w.remove("configmaps", "a", "Foreground")
    w.settle()
    w.dump("configmaps", label="waiting", mask=("deletionGracePeriodSeconds",))
    w.edit("configmaps", "blocks", {"metadata": {"finalizers": None}})
    w.settle()
    w.dump("configmaps", label="done")


@scenario
def foreground_does_not_wait_for_others(w: World) -> None:
    """A dependent that does not block is deleted, and not waited for."""
    a = w.make(config("a"))
    w.make(config("slow", [owner(a, block=False)], finalizers=FINALIZER))
    w.settle()
    w.remove("configmaps", "a", "Foreground")
    w.settle()
    w.dump("configmaps")
    w.edit("configmaps", "slow", {"metadata": {"finalizers": None}})


@scenario
def orphan(w: World) -> None:
    """Orphans lose the reference to the deleted owner, and only that one."""
    a, z = w.make(config("a")), w.make(config("z"))
    w.make(config("b", [owner(a, block=True)]))
    w.make(config("c", [owner(a), owner(z)]))
    w.settle()
    w.remove("configmaps", "a", "Orphan")
    w.settle()
    w.dump("configmaps")


@scenario
def absent_owner(w: World) -> None:
    """An object whose owner never was is deleted; likewise one that names the right owner with another uid."""
    a = w.make(config("a"))
    never = {**owner(a), "name": "never", "uid": "11111111-2222-3333-4444-555555555555"}
    w.make(config("b", [never]))
    w.make(config("c", [{**owner(a), "uid": "11111111-2222-3333-4444-666666666666"}]))
    w.make(config("both", [owner(a), never]))
    w.settle()
    w.dump("configmaps")


@scenario
def owner_in_another_namespace(w: World) -> None:
    """A namespaced owner is looked for in the dependent's namespace; elsewhere it counts as absent, and an event says so."""
    other = w.space("other")
    a = w.make(config("a"), ns=other)
    w.settle()
    w.make(config("b", [owner(a)]))
    w.settle()
    w.dump("configmaps")
    w.dump("configmaps", ns=other, label="other")


@scenario
def cluster_wide_owner(w: World) -> None:
    """A cluster-wide owner takes its dependents of any namespace with it."""
    role = w.make({"kind": "ClusterRole", "metadata": {"name": w.name("owner")}, "rules": []})
    w.make(config("b", [owner(role, block=True)]))
    child = w.make({"kind": "ClusterRole", "metadata": {"name": w.name("child"), "ownerReferences": [owner(role)]}, "rules": []})
    w.make(config("c", [owner(child)]))
    w.settle()
    w.dump("configmaps", "clusterroles", label="before")
    w.remove("clusterroles", w.name("owner"), "Background")
    w.settle()
    w.dump("configmaps", "clusterroles", label="after")


@scenario
def chain(w: World) -> None:
    """In the foreground the last of a chain goes first; in the background the first."""

    def build(prefix: str) -> None:
        last = w.make(config(prefix + "1"))
        for i in (2, 3, 4):
            last = w.make(config(f"{prefix}{i}", [owner(last, block=True)]))

    build("f")
    build("g")
    w.settle()
    w.remove("configmaps", "f1", "Foreground")
    w.settle()
    w.remove("configmaps", "g1", "Background")
    w.settle()
    w.order("order", "ConfigMap", ("DELETED",))
    w.dump("configmaps")


@scenario
def circle(w: World) -> None:
    """Objects that own each other go when one of them does; also in the foreground, where the circle is broken."""
    for policy, names in (("Background", "ab"), ("Foreground", "cd")):
        first = w.make(config(names[0]))
        second = w.make(config(names[1], [owner(first, block=True)]))
        w.edit("configmaps", names[0], {"metadata": {"ownerReferences": [owner(second, block=True)]}})
        w.settle()
        w.remove("configmaps", names[0], policy)
        w.settle()
    w.dump("configmaps")


@scenario
def two_owners(w: World) -> None:
    """The first owner's deletion takes its reference, the second's takes the object."""
    a, b = w.make(config("a")), w.make(config("b"))
    w.make(config("child", [owner(a), owner(b)]))
    w.settle()
    w.remove("configmaps", "a", "Background")
    w.settle()
    w.dump("configmaps", label="one left")
    w.remove("configmaps", "b", "Foreground")
    w.settle()
    w.dump("configmaps", label="none left")


@scenario
def deployment_in_the_foreground(w: World) -> None:
    """Pods go before their ReplicaSet, and that before the Deployment."""
    w.make(workload("Deployment", "web", 3))
    w.settle()
    w.remove("deployments", "web", "Foreground")
    w.until(lambda: w.read("deployments", "web") is None)
    w.settle()
    w.dump("deployments", "replicasets", "pods")


@scenario
def deployment_orphaned_and_made_again(w: World) -> None:
    """The ReplicaSet and its pods live on without an owner, and are adopted by a Deployment of the same name and template."""
    w.make(workload("Deployment", "web", 2))
    w.settle()
    before = sorted(p["metadata"]["uid"] for p in w.all("pods"))
    w.remove("deployments", "web", "Orphan")
    w.settle()
    w.dump("deployments", "replicasets", label="orphans")
    w.make(workload("Deployment", "web", 2))
    w.settle()
    w.dump("deployments", "replicasets", label="adopted")
    w.fact("the same pods", before == sorted(p["metadata"]["uid"] for p in w.all("pods")))


@scenario
def custom_owners(w: World) -> None:
    """A custom resource owns and is owned, once the collector has seen its definition (it looks every 30 seconds)."""
    group = f"{w.id}.example.com"
    w.make(
        {
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"things.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": "Thing", "plural": "things"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                ],
            },
        }
    )
    path = f"/apis/{group}/v1/namespaces/{w.ns}/things"
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing"}
    w.until(lambda: w.post(path, {**thing, "metadata": {"name": "top"}}).status == 201)
    top = w.get(f"{path}/top").json
    under = w.must(w.post(path, {**thing, "metadata": {"name": "under", "ownerReferences": [owner(top, block=True)]}}))
    w.make(config("leaf", [owner(under)]))
    w.advance(35)
    w.delete(f"{path}/top", {"propagationPolicy": "Background"})
    w.until(lambda: w.read("configmaps", "leaf") is None, 90)
    w.settle()
    w.dump(f"{group}/v1/things", "configmaps")
