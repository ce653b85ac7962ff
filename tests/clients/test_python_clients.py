"""The Python packages that people use work on a cluster: create, list, watch, patch and delete with each of them.

A package that is not installed is skipped. Every test does the same to a ConfigMap; what differs is the package's way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fakekube import Cluster

NAME = "settings"
TIMEOUT = 60
MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "labels": {"app": "web"}}, "data": {"a": "1"}}
TYPES = ["ADDED", "MODIFIED", "DELETED"]

# The packages' own doings: files they leave open, functions of Python that they should no longer call.
pytestmark = pytest.mark.filterwarnings("default")


def test_kubernetes(fakekube: Cluster) -> None:
    client = pytest.importorskip("kubernetes.client")
    watch = pytest.importorskip("kubernetes.watch")
    api = client.CoreV1Api(fakekube.clients.kubernetes())
    assert api.create_namespaced_config_map("default", MANIFEST).data == {"a": "1"}
    with pytest.raises(client.ApiException) as conflict:
        api.create_namespaced_config_map("default", MANIFEST)
    assert (conflict.value.status, conflict.value.reason) == (409, "Conflict")
    listed = api.list_namespaced_config_map("default", label_selector="app=web")
    assert [item.metadata.name for item in listed.items] == [NAME]
    api.patch_namespaced_config_map(NAME, "default", {"data": {"a": "2"}})
    found = api.read_namespaced_config_map(NAME, "default")
    assert found.data == {"a": "2"}
    found.data = {"a": "3"}
    api.replace_namespaced_config_map(NAME, "default", found)
    api.delete_namespaced_config_map(NAME, "default")
    with pytest.raises(client.ApiException) as gone:
        api.read_namespaced_config_map(NAME, "default")
    assert gone.value.status == 404
    seen = watch.Watch().stream(
        api.list_namespaced_config_map, "default", field_selector=f"metadata.name={NAME}",
        resource_version=listed.metadata.resource_version, timeout_seconds=TIMEOUT,
    )  # fmt: skip
    events = [next(seen) for _ in range(3)]
    assert [event["type"] for event in events] == ["MODIFIED", "MODIFIED", "DELETED"]
    assert events[1]["object"].data == {"a": "3"}


def test_kubernetes_with_all_kinds_of_objects(fakekube: Cluster) -> None:
    """The package refuses objects that lack what the real server always sends."""
    client = pytest.importorskip("kubernetes.client")
    api_client = fakekube.clients.kubernetes()
    container = {"name": "main", "image": "nginx"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    apps, core = client.AppsV1Api(api_client), client.CoreV1Api(api_client)
    made = apps.create_namespaced_deployment("default", {"metadata": {"name": "web"}, "spec": spec})
    assert made.spec.replicas == 1
    assert apps.read_namespaced_deployment_scale("web", "default").spec.replicas == 1
    apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 3}})
    core.create_namespaced_pod("default", {"metadata": {"name": "one"}, "spec": {"containers": [container]}})
    assert core.read_namespaced_pod("one", "default").status.phase == "Pending"
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="one"))
    core.create_namespaced_pod_eviction("one", "default", eviction)
    assert client.VersionApi(api_client).get_code().minor == "37"
    assert {group.name for group in client.ApisApi(api_client).get_api_versions().groups} >= {"apps", "batch"}


def test_kubernetes_dynamic(fakekube: Cluster, tmp_path: Path) -> None:
    dynamic = pytest.importorskip("kubernetes.dynamic")
    client = dynamic.DynamicClient(fakekube.clients.kubernetes(), cache_file=tmp_path / "discovery.json")
    configmaps = client.resources.get(api_version="v1", kind="ConfigMap")
    applied = configmaps.server_side_apply(body=MANIFEST, name=NAME, namespace="default", field_manager="test")
    assert applied.metadata.managedFields[0].manager == "test"
    revision = configmaps.get(namespace="default").metadata.resourceVersion
    configmaps.delete(name=NAME, namespace="default")
    event = next(iter(configmaps.watch(namespace="default", name=NAME, resource_version=revision, timeout=TIMEOUT)))
    assert event["type"] == "DELETED"


def test_kubernetes_leader_election(fakekube: Cluster) -> None:
    client = pytest.importorskip("kubernetes.client")
    api = client.CoordinationV1Api(fakekube.clients.kubernetes())
    lease = api.create_namespaced_lease("default", {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "one"}})
    stale = lease.metadata.resource_version
    lease.spec.holder_identity = "two"
    api.replace_namespaced_lease("leader", "default", lease)
    lease.metadata.resource_version = stale
    with pytest.raises(client.ApiException) as conflict:
        api.replace_namespaced_lease("leader", "default", lease)
    assert conflict.value.status == 409


def run(story: Callable[[], Awaitable[None]]) -> None:
    """An asynchronous story, to its end or its timeout."""

    async def in_time() -> None:
        async with asyncio.timeout(TIMEOUT):
            await story()

    asyncio.run(in_time())


def test_kubernetes_asyncio(fakekube: Cluster) -> None:
    client = pytest.importorskip("kubernetes_asyncio.client")
    watch = pytest.importorskip("kubernetes_asyncio.watch")

    async def story() -> None:
        async with await fakekube.clients.kubernetes_asyncio() as api_client:
            api = client.CoreV1Api(api_client)
            revision = (await api.list_namespaced_config_map("default")).metadata.resource_version
            await api.create_namespaced_config_map("default", MANIFEST)
            listed = await api.list_namespaced_config_map("default", label_selector="app=web")
            assert [item.metadata.name for item in listed.items] == [NAME]
            patch = [{"op": "replace", "path": "/data/a", "value": "2"}]
            changed = await api.patch_namespaced_config_map(NAME, "default", patch, _content_type="application/json-patch+json")
            assert changed.data == {"a": "2"}
            await api.delete_namespaced_config_map(NAME, "default")
            types = []
            async with watch.Watch() as stream:
                async for event in stream.stream(
                    api.list_namespaced_config_map, "default", resource_version=revision, timeout_seconds=TIMEOUT
                ):
                    types.append(event["type"])
                    if len(types) == len(TYPES):
                        break
            assert types == TYPES

    run(story)


def test_kr8s(fakekube: Cluster) -> None:
    kr8s_objects = pytest.importorskip("kr8s.objects")
    api = fakekube.clients.kr8s()
    configmap = kr8s_objects.ConfigMap(MANIFEST, api=api)
    configmap.create()
    assert [found.name for found in api.get("configmaps", namespace="default", label_selector="app=web")] == [NAME]
    watch = api.watch("configmaps", namespace="default", field_selector=f"metadata.name={NAME}")
    assert next(watch)[0] == "ADDED"
    configmap.patch({"data": {"a": "2"}})
    event, changed = next(watch)
    assert (event, changed.raw["data"]) == ("MODIFIED", {"a": "2"})
    configmap.label(tier="front")
    configmap.delete()
    configmap.wait("delete", timeout=TIMEOUT)
    assert not configmap.exists()


def test_kr8s_asyncio(fakekube: Cluster) -> None:
    kr8s_objects = pytest.importorskip("kr8s.asyncio.objects")

    async def story() -> None:
        api = await fakekube.clients.kr8s_asyncio()
        configmap = await kr8s_objects.ConfigMap(MANIFEST, api=api)
        await configmap.create()
        types = []
        async for event, found in api.watch("configmaps", namespace="default", field_selector=f"metadata.name={NAME}"):
            types.append(event)
            if event == "ADDED":
                await found.patch({"data": {"a": "2"}})
            elif event == "MODIFIED":
                await found.delete()
            else:
                break
        assert types == TYPES

    run(story)


def test_lightkube(fakekube: Cluster) -> None:
    lightkube = pytest.importorskip("lightkube")
    core = pytest.importorskip("lightkube.resources.core_v1")
    client: Any = fakekube.clients.lightkube()
    made = client.create(core.ConfigMap.from_dict(MANIFEST), namespace="default")
    assert [found.metadata.name for found in client.list(core.ConfigMap, labels={"app": "web"})] == [NAME]
    watch = client.watch(
        core.ConfigMap, fields={"metadata.name": NAME}, resource_version=made.metadata.resourceVersion, server_timeout=TIMEOUT
    )
    client.patch(core.ConfigMap, NAME, {"data": {"a": "2"}})
    event, changed = next(watch)
    assert (event, changed.data) == ("MODIFIED", {"a": "2"})
    changed.metadata.managedFields = None
    changed.data = {"a": "3"}
    client.apply(changed, field_manager="test", force=True)
    client.delete(core.ConfigMap, NAME)
    assert [next(watch)[0] for _ in range(2)] == ["MODIFIED", "DELETED"]
    with pytest.raises(lightkube.ApiError) as gone:
        client.get(core.ConfigMap, NAME)
    assert gone.value.status.code == 404


def test_pykube(fakekube: Cluster) -> None:
    pykube = pytest.importorskip("pykube")
    api = fakekube.clients.pykube()
    metadata = {"name": NAME, "namespace": "default", "labels": {"app": "web"}}
    configmap = pykube.ConfigMap(api, {**MANIFEST, "metadata": metadata})
    configmap.create()
    configmap.patch({"data": {"a": "2"}})
    found = pykube.ConfigMap.objects(api, namespace="default").filter(selector={"app": "web"})
    assert [one.obj["data"] for one in found] == [{"a": "2"}]
    watch = iter(found.watch())
    assert next(watch).type == "ADDED"
    configmap.delete()
    assert next(watch).type == "DELETED"
    assert not configmap.exists()
