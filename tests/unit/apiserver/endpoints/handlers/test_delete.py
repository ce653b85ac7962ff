"""Deletions that need a permission of their own."""

from __future__ import annotations

from fakekube import Cluster

VERB = "unsafe-delete-ignore-read-errors"
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1", "ignoreStoreReadErrorWithClusterBreakingPotential": True}


def test_an_unsafe_deletion_needs_the_permission_for_the_object() -> None:
    with Cluster(profile="apiserver", feature_gates={"AllowUnsafeMalformedObjectDeletion": True}) as cluster:
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}})
        rules = [{"verbs": ["delete", VERB], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"]}]
        group = "rbac.authorization.k8s.io"
        cluster.create({"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "unsafe"}, "rules": rules})
        deleter = {**rules[0], "verbs": ["delete"]}
        cluster.create({"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "safe"}, "rules": [deleter]})
        for user, role in (("alice", "unsafe"), ("bob", "safe")):
            cluster.create(
                {
                    "apiVersion": f"{group}/v1",
                    "kind": "ClusterRoleBinding",
                    "metadata": {"name": user},
                    "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                    "subjects": [{"kind": "User", "apiGroup": group, "name": user}],
                }
            )

        def delete(user: str) -> tuple[int, str]:
            path = "/api/v1/namespaces/default/configmaps/a"
            answer = cluster.request("DELETE", path, OPTIONS, headers={"Impersonate-User": user})
            return answer.status, answer.json()["message"]

        code, message = delete("alice")
        assert code == 409
        assert "the object is decodable from storage" in message
        assert delete("bob") == (403, f'configmaps "a" is forbidden: not permitted to do "{VERB}", reason: ')
