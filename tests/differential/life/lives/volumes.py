"""Volumes and claims: who is bound to whom, and what is left when one goes. No volume is made by anybody but the scenario."""

from __future__ import annotations

from tests.differential.life.manifests import condition, pod
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World

BOTH = ("persistentvolumeclaims", "persistentvolumes")


def volume(
    w: World,
    name: str,
    size: str,
    cls: str = "c",
    policy: str = "Retain",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    **more: object,
) -> dict[str, object]:
    labels = more.pop("labels", None)
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": w.name(name), **({"labels": labels} if labels else {})},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": list(modes),
            "persistentVolumeReclaimPolicy": policy,
            "storageClassName": w.name(cls),
            "csi": {"driver": "example.com", "volumeHandle": name},
            **more,
        },
    }


def claim(
    w: World, name: str, size: str, cls: str = "c", modes: tuple[str, ...] = ("ReadWriteOnce",), **more: object
) -> dict[str, object]:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": list(modes),
            "resources": {"requests": {"storage": size}},
            "storageClassName": w.name(cls),
            **more,
        },
    }


def phase(w: World, name: str) -> str | None:
    return (w.read("persistentvolumeclaims", name) or {"status": {}})["status"].get("phase")


def user(claim: str, **kw: object) -> dict[str, object]:
    return pod(f"uses-{claim}", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}], **kw)


@scenario
def smallest_that_fits(w: World) -> None:
    """A claim is bound to the smallest volume of its class with its modes that is large enough."""
    for name, size in (("large", "10Gi"), ("middle", "5Gi"), ("small", "1Gi")):
        w.make(volume(w, name, size))
    w.make(volume(w, "other-class", "2Gi", cls="d"))
    w.make(volume(w, "other-mode", "2Gi", modes=("ReadOnlyMany",)))
    w.settle()
    w.dump("persistentvolumes", label="available")
    w.make(claim(w, "a", "2Gi"))
    w.until(lambda: phase(w, "a") == "Bound")
    w.settle()
    w.dump(*BOTH, label="bound")
    w.make(claim(w, "b", "20Gi"))
    w.make(claim(w, "many", "1Gi", modes=("ReadWriteMany",)))
    w.settle()
    w.dump("persistentvolumeclaims", label="two wait")
    w.make(volume(w, "huge", "20Gi"))
    w.until(lambda: phase(w, "b") == "Bound")
    w.settle()
    w.dump(*BOTH, label="one waits")


@scenario
def by_name_and_label(w: World) -> None:
    """volumeName binds to that volume; a selector to one so labelled; a volume's claimRef waits for its claim."""
    w.make(volume(w, "v1", "1Gi"))
    w.make(volume(w, "v2", "3Gi", labels={"tier": "gold"}))
    w.make(
        volume(
            w, "v3", "2Gi", claimRef={"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": w.ns, "name": "reserved"}
        )
    )
    w.settle()
    w.dump("persistentvolumes", label="reserved")
    w.make(claim(w, "gold", "1Gi", selector={"matchLabels": {"tier": "gold"}}))
    w.make(claim(w, "named", "1Gi", volumeName=w.name("v1")))
    w.make(claim(w, "reserved", "1Gi"))
    w.until(lambda: [phase(w, n) for n in ("gold", "named", "reserved")] == ["Bound"] * 3)
    w.settle()
    w.dump(*BOTH)


@scenario
def released(w: World) -> None:
    """The volume of a deleted claim is Released and kept (Retain); freed of its claimRef it is Available."""
    w.make(volume(w, "v", "1Gi"))
    w.settle()  # the volume is available
    w.make(claim(w, "c", "1Gi"))
    w.until(lambda: phase(w, "c") == "Bound")
    w.settle()
    w.remove("persistentvolumeclaims", "c")
    w.settle()
    w.dump(*BOTH, label="released")
    w.make(claim(w, "c", "1Gi"))
    w.settle()
    w.dump("persistentvolumeclaims", label="not the same claim")
    w.edit("persistentvolumes", w.name("v"), {"spec": {"claimRef": None}})
    w.until(lambda: phase(w, "c") == "Bound")
    w.settle()
    w.dump(*BOTH, label="bound again")


@scenario
def protected(w: World) -> None:
    """A claim that a scheduled pod uses, and a volume that is bound, stay until they are free."""
    w.make(volume(w, "v", "1Gi"))
    w.settle()  # the volume is available
    w.make(claim(w, "c", "1Gi"))
    w.until(lambda: phase(w, "c") == "Bound")
    w.make(user("c"))
    w.settle()
    w.remove("persistentvolumeclaims", "c")
    w.remove("persistentvolumes", w.name("v"))
    w.settle()
    w.dump(*BOTH, label="both wait")
    w.run("uses-c", phase="Succeeded")
    w.settle()
    w.fact("claim left when the pod is done", w.read("persistentvolumeclaims", "c") is not None)
    w.remove("pods", "uses-c")
    w.settle()
    w.dump(*BOTH, label="free")


@scenario
def not_protected_by_pods_that_wait(w: World) -> None:
    """A pod on no node does not hold its claim; a volume that is available goes at once."""
    w.make(volume(w, "v", "1Gi"))
    w.make(volume(w, "spare", "5Gi"))
    w.settle()  # the volume is available
    w.make(claim(w, "c", "1Gi"))
    w.until(lambda: phase(w, "c") == "Bound")
    w.make(user("c", hand=True))
    w.settle()
    w.remove("persistentvolumeclaims", "c")
    w.remove("persistentvolumes", w.name("spare"))
    w.settle()
    w.dump(*BOTH)


@scenario
def lost(w: World) -> None:
    """A bound claim whose volume is gone is Lost, with a warning."""
    w.make(volume(w, "v", "1Gi"))
    w.settle()  # the volume is available
    w.make(claim(w, "c", "1Gi"))
    w.until(lambda: phase(w, "c") == "Bound")
    w.settle()
    w.remove("persistentvolumes", w.name("v"))
    w.edit("persistentvolumes", w.name("v"), {"metadata": {"finalizers": None}})
    w.until(lambda: phase(w, "c") == "Lost")
    w.settle()
    w.dump(*BOTH)


@scenario
def waits_for_a_pod(w: World) -> None:
    """In a class with WaitForFirstConsumer a claim is bound when a pod is scheduled, to a volume that its node reaches."""
    w.make(
        {
            "kind": "StorageClass",
            "metadata": {"name": w.name("late")},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    for name, host in (("near", "life-node"), ("far", "elsewhere")):
        w.make(
            volume(
                w,
                name,
                "1Gi" if name == "far" else "2Gi",
                cls="late",
                nodeAffinity={
                    "required": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]}
                        ]
                    }
                },
            )
        )
    w.make(claim(w, "c", "1Gi", cls="late"))
    w.settle()
    w.dump("persistentvolumeclaims", label="waits")
    w.make(user("c"))
    w.until(lambda: phase(w, "c") == "Bound")
    w.settle()
    w.dump(*BOTH, label="bound")


@scenario
def nobody_makes_one(w: World) -> None:
    """Without a class, with an unknown class, with somebody else's class: why the claim waits, and its pod with it."""
    w.make({"kind": "StorageClass", "metadata": {"name": w.name("foreign")}, "provisioner": "example.com/disks"})
    none = claim(w, "none", "1Gi")
    none["spec"]["storageClassName"] = ""
    w.make(none)
    w.make(claim(w, "unknown", "1Gi", cls="absent"))
    w.make(claim(w, "foreign", "1Gi", cls="foreign"))
    w.settle()
    w.make(user("none"))
    w.make(user("absent"))
    w.settle()
    w.dump("persistentvolumeclaims")
    w.fact("why", {p["metadata"]["name"]: condition(p, "PodScheduled", "message") for p in w.all("pods")})


@scenario
def deleted_by_nobody(w: World) -> None:
    """A volume to be deleted whose driver nobody plays stays Released (CSI) for its provisioner."""
    w.make(volume(w, "v", "1Gi", policy="Delete"))
    w.settle()  # the volume is available
    w.make(claim(w, "c", "1Gi"))
    w.until(lambda: phase(w, "c") == "Bound")
    w.settle()
    w.remove("persistentvolumeclaims", "c")
    w.settle()
    w.dump(*BOTH)


@scenario
def out_of_reach(w: World) -> None:
    """A pod whose bound volume is on another node waits: volume node affinity conflict; so does one whose claim is being deleted or absent."""
    w.make(
        volume(
            w,
            "v",
            "1Gi",
            nodeAffinity={
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["elsewhere"]}]}
                    ]
                }
            },
        )
    )
    w.make(claim(w, "c", "1Gi"))
    w.until(lambda: phase(w, "c") == "Bound")
    w.make(user("c"))
    w.make(user("nothing"))
    w.settle()
    w.fact(
        "why",
        {
            p["metadata"]["name"]: [condition(p, "PodScheduled", "reason"), condition(p, "PodScheduled", "message")]
            for p in w.all("pods")
        },
    )
    w.dump("persistentvolumeclaims")
