"""HorizontalPodAutoscalers without metrics: what they can still do, and what they say."""

from __future__ import annotations

from tests.differential.life.manifests import condition, workload
from tests.differential.life.recordings import scenario
from tests.differential.life.world import World


def scaler(name: str, target: str, low: int, high: int, kind: str = "Deployment", **spec: object) -> dict[str, object]:
    return {
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": target},
            "minReplicas": low,
            "maxReplicas": high,
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
            ],
            **spec,
        },
    }


@scenario
def no_metrics(w: World) -> None:
    """Without the metrics API scaling is not active, and the number of replicas stays."""
    w.make(workload("Deployment", "web", 2, pods={"requests": {"cpu": "10m"}}))
    w.settle()
    w.make(scaler("web", "web", 1, 4))
    w.until(lambda: condition(w.read("horizontalpodautoscalers", "web"), "ScalingActive"))
    w.settle()
    w.dump("horizontalpodautoscalers", "deployments")


@scenario
def within_bounds(w: World) -> None:
    """Fewer replicas than the minimum, or more than the maximum, are mended without any metric."""
    w.make(workload("Deployment", "few", 1))
    w.make(workload("Deployment", "many", 5))
    w.settle()
    w.make(scaler("few", "few", 3, 4))
    w.make(scaler("many", "many", 1, 2))
    w.until(
        lambda: (
            (w.read("deployments", "few") or {})["spec"]["replicas"] == 3
            and (w.read("deployments", "many") or {})["spec"]["replicas"] == 2
        )
    )
    w.settle()
    w.fact("replicas", {d["metadata"]["name"]: d["spec"]["replicas"] for d in w.all("deployments")})


@scenario
def no_target(w: World) -> None:
    """A target that is not there, or of an unknown kind, shows in AbleToScale; a target with no replicas disables scaling."""
    w.make(workload("Deployment", "zero", 0))
    w.make(scaler("absent", "absent", 1, 2))
    w.make(scaler("strange", "x", 1, 2, kind="Strange"))
    w.make(scaler("zero", "zero", 1, 2))
    w.until(
        lambda: (
            condition(w.read("horizontalpodautoscalers", "absent"), "AbleToScale") == "False"
            and condition(w.read("horizontalpodautoscalers", "strange"), "AbleToScale") == "False"
            and condition(w.read("horizontalpodautoscalers", "zero"), "ScalingActive") == "False"
        )
    )
    w.settle()
    w.dump("horizontalpodautoscalers")
