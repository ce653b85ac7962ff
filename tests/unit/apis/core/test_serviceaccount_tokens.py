"""ServiceAccount tokens expire by the clock of the cluster."""

from __future__ import annotations

from fakekube import Cluster

ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}


def token_of(cluster: Cluster) -> str:
    path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    answer = cluster.request("POST", path, {"spec": {"expirationSeconds": 600}})
    return str(answer.json()["status"]["token"])


def authenticated(cluster: Cluster, token: str) -> bool:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    return bool(cluster.create(review)["status"].get("authenticated"))


def test_token_expires_by_the_cluster_clock() -> None:
    with Cluster(profile="apiserver") as cluster:
        cluster.clock.hold()
        cluster.create(ACCOUNT)
        token = token_of(cluster)
        assert authenticated(cluster, token)
        cluster.clock.advance(minutes=9)
        assert authenticated(cluster, token)
        cluster.clock.advance(minutes=3)  # a minute of leeway is over, too
        assert not authenticated(cluster, token)
