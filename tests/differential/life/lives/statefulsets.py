"""StatefulSets: order, identity, revisions, claims."""

from __future__ import annotations

from tests.differential.life.manifests import image, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


def stateful(name: str, replicas: int, hand: bool = False, **kw: object) -> dict[str, object]:
    return workload("StatefulSet", name, replicas, hand=hand, **{"serviceName": name, **kw})


def storage(w: World, name: str = "data") -> list[dict[str, object]]:
    return [
        {
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": w.name("none"),
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    ]


def names(w: World) -> list[str]:
    return sorted(p["metadata"]["name"] for p in w.all("pods"))


@scenario
def comes_up_in_order(w: World) -> None:
    """Pods are made one after the other, each when the one before is ready; names, labels, hostnames and revisions are fixed."""
    w.make(stateful("db", 3))
    w.settle()
    w.order("order")
    w.dump("statefulsets", "pods", "controllerrevisions", managers=True)


@scenario
def waits_for_the_one_before(w: World) -> None:
    """Without a ready first pod there is no second; scaled down, the last goes first."""
    w.make(stateful("db", 3, hand=True))
    w.settle()
    w.dump("statefulsets", "pods", label="first")
    w.run("db-0")
    w.settle()
    w.dump("statefulsets", label="second")
    w.run("db-1")
    w.settle()
    w.run("db-2")
    w.settle()
    w.edit("statefulsets", "db", {"spec": {"replicas": 1}})
    w.settle()
    w.order("order")
    w.dump("statefulsets", label="one")


@scenario
def parallel(w: World) -> None:
    """podManagementPolicy Parallel makes and deletes all at once; updates stay ordered."""
    w.make(stateful("db", 3, hand=True, podManagementPolicy="Parallel"))
    w.settle()
    w.dump("statefulsets", "pods", label="all")
    w.edit("statefulsets", "db", {"spec": {"replicas": 1}})
    w.settle()
    w.dump("statefulsets", label="one")
    w.fact("pods", names(w))


@scenario
def rolls_from_the_end(w: World) -> None:
    """A new template replaces the pods from the highest ordinal down, each when the one before is ready."""
    w.make(stateful("db", 2, hand=True))
    w.settle()
    w.run("db-0")
    w.settle()
    w.run("db-1")
    w.settle()
    w.edit("statefulsets", "db", image("app:2"))
    w.settle()
    w.dump("statefulsets", "pods", "controllerrevisions", label="last one")
    w.run("db-1")
    w.settle()
    w.dump("statefulsets", label="first one")
    w.run("db-0")
    w.settle()
    w.dump("statefulsets", "pods", label="done")
    w.order("order")


@scenario
def partition(w: World) -> None:
    """Only ordinals from the partition on are updated; lowered, the rest follows."""
    w.make(stateful("db", 3, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}))
    w.settle()
    w.edit("statefulsets", "db", image("app:2"))
    w.settle()
    w.dump("statefulsets", "pods", label="canary")
    w.remove("pods", "db-0")
    w.settle()
    w.fact("images", {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in w.all("pods")})
    w.edit("statefulsets", "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    w.settle()
    w.dump("statefulsets", "pods", label="all")


@scenario
def on_delete(w: World) -> None:
    """With OnDelete a pod gets the new template when it is made again."""
    w.make(stateful("db", 2, updateStrategy={"type": "OnDelete"}))
    w.settle()
    w.edit("statefulsets", "db", image("app:2"))
    w.settle()
    w.dump("statefulsets", label="changed")
    w.remove("pods", "db-1")
    w.settle()
    w.dump("statefulsets", "pods", label="one made again")


@scenario
def claims(w: World) -> None:
    """Each pod gets a claim for each template, named TEMPLATE-POD; claims stay when pods go, if nothing else is said."""
    w.make(stateful("db", 2, podManagementPolicy="Parallel", volumeClaimTemplates=storage(w)))
    w.settle()
    w.dump("statefulsets", "persistentvolumeclaims", "pods", label="made")
    w.edit("statefulsets", "db", {"spec": {"replicas": 1}})
    w.settle()
    w.fact("claims", sorted(c["metadata"]["name"] for c in w.all("persistentvolumeclaims")))
    w.remove("statefulsets", "db")
    w.until(lambda: not w.all("pods"))
    w.settle()
    w.dump("persistentvolumeclaims", label="left")


@scenario
def claims_that_go(w: World) -> None:
    """persistentVolumeClaimRetentionPolicy: owner references make claims go with their pod or their StatefulSet."""
    w.make(
        stateful(
            "db",
            2,
            hand=True,
            podManagementPolicy="Parallel",
            volumeClaimTemplates=storage(w),
            persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"},
        )
    )
    w.settle()
    w.dump("persistentvolumeclaims", label="owned")
    w.edit("statefulsets", "db", {"spec": {"replicas": 1}})
    w.settle()
    w.dump("persistentvolumeclaims", label="scaled")
    w.remove("statefulsets", "db", "Background")
    w.until(lambda: not w.all("persistentvolumeclaims"))
    w.settle()
    w.fact("left", [c["metadata"]["name"] for c in w.all("persistentvolumeclaims")])


@scenario
def first_ordinal(w: World) -> None:
    """ordinals.start moves the names; moved later, pods are made at the new end and deleted at the old."""
    w.make(stateful("db", 2, ordinals={"start": 3}))
    w.settle()
    w.dump("statefulsets", "pods")
    w.edit("statefulsets", "db", {"spec": {"ordinals": {"start": 4}}})
    w.settle()
    w.fact("pods", names(w))
    w.dump("statefulsets", label="moved")


@scenario
def revisions(w: World) -> None:
    """Every template is a ControllerRevision; a former one comes back with a new number; history is cut to its limit."""
    w.make(stateful("db", 1, revisionHistoryLimit=2))
    for tag in ("app:2", "app:3", "app:1", "app:4", "app:5"):
        w.settle()
        w.edit("statefulsets", "db", image(tag))
    w.settle()
    w.dump("statefulsets", "controllerrevisions")


@scenario
def broken_update_stays(w: World) -> None:
    """A pod that never got ready blocks the way, even when the template is mended, until it is deleted."""
    w.make(stateful("db", 2))
    w.settle()
    w.edit("statefulsets", "db", {"spec": {"template": {"spec": {"nodeSelector": {"no": "where"}}}}})
    w.settle()
    w.dump("statefulsets", "pods", label="broken")
    w.edit("statefulsets", "db", {"spec": {"template": {"spec": {"nodeSelector": None}}}})
    w.settle()
    w.dump("statefulsets", label="mended")
    w.fact("pods", {p["metadata"]["name"]: p["status"]["phase"] for p in w.all("pods")})
    w.remove("pods", "db-1")
    w.settle()
    w.dump("statefulsets", label="freed")


@scenario
def failed_pod(w: World) -> None:
    """A failed or succeeded pod is deleted and made again under its name."""
    w.make(stateful("db", 1, hand=True))
    w.settle()
    before = (w.read("pods", "db-0") or {"metadata": {}})["metadata"].get("uid")
    w.run("db-0", phase="Failed", reason="Evicted")
    w.settle()
    w.fact("another", before != (w.read("pods", "db-0") or {"metadata": {}})["metadata"].get("uid"))
    w.dump("statefulsets", "pods")
    w.order("order")


@scenario
def max_unavailable_is_dropped(w: World) -> None:
    """maxUnavailable does not come through (its feature gate is off): pods are replaced one at a time, in Parallel, too."""
    w.make(stateful("db", 4, hand=True, podManagementPolicy="Parallel", updateStrategy={"rollingUpdate": {"maxUnavailable": 2}}))
    w.settle()
    for i in range(4):
        w.run(f"db-{i}")
    w.settle()
    w.edit("statefulsets", "db", image("app:2"))
    w.settle()
    w.dump("statefulsets", label="two")
    w.fact("images", {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in w.all("pods")})
