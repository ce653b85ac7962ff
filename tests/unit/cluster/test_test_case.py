"""Test cases of unittest, and the methods of a cluster as coroutines."""

from __future__ import annotations

import asyncio
import io
import os
import unittest
from typing import Any, ClassVar

import pytest

import fakekube
from fakekube.cluster.test_case import ClusterMixin

BARE = {"profile": "apiserver"}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def run(case: type[unittest.TestCase]) -> unittest.TestResult:
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    return unittest.TextTestRunner(io.StringIO(), verbosity=0).run(suite)


def test_each_test_method_gets_a_new_cluster() -> None:
    seen: list[fakekube.Cluster] = []

    class Case(fakekube.TestCase):
        cluster_options = BARE
        sets_kubeconfig = True

        def test_one(self) -> None:
            seen.append(self.cluster)
            self.assertEqual(os.environ["KUBECONFIG"], str(self.cluster.kubeconfig))
            self.cluster.create(config_map("a"))

        def test_two(self) -> None:
            self.test_one()

    before = os.environ.get("KUBECONFIG")
    assert run(Case).wasSuccessful()
    assert len({id(one) for one in seen}) == 2
    assert os.environ.get("KUBECONFIG") == before
    with pytest.raises(RuntimeError, match="stopped"):
        seen[0].start()


def test_shared_cluster_of_a_test_class() -> None:
    urls: set[str] = set()

    class Case(fakekube.TestCase):
        cluster_options: ClassVar[Any] = {**BARE, "load": config_map("always")}
        shared_cluster = True

        def test_one(self) -> None:
            urls.add(self.cluster.url)
            names = [one["metadata"]["name"] for one in self.cluster.list("cm", namespace="default")]
            self.assertEqual(names, ["always"])
            self.cluster.create(config_map("a"))

        def test_two(self) -> None:
            self.test_one()

    assert run(Case).wasSuccessful()
    assert len(urls) == 1


def test_failure_report_shows_requests_and_object_histories() -> None:
    class Case(fakekube.TestCase):
        cluster_options = BARE

        def test_it(self) -> None:
            self.cluster.create(config_map("settings", x="1"))
            self.cluster.patch("cm", "settings", {"data": {"x": "2"}})
            import urllib.request

            urllib.request.urlopen(f"{self.cluster.url}/api/v1/pods").close()
            self.assertEqual(self.cluster.get("cm", "settings")["data"]["x"], "3", "settings")

    ((_, text),) = run(Case).failures
    assert "list /api/v1/pods" in text
    assert "history of configmaps default/settings" in text
    assert "MODIFIED" in text
    assert "data.x" in text


def test_strict_test_case_fails_for_unfired_faults() -> None:
    class Case(fakekube.TestCase):
        cluster_options: ClassVar[Any] = {**BARE, "strict": True}

        def test_it(self) -> None:
            self.cluster.faults.on("get").status(500)

    ((_, text),) = (result := run(Case)).errors + result.failures
    assert "never happened" in text


def test_isolated_asyncio_test_case() -> None:
    class Case(fakekube.IsolatedAsyncioTestCase):
        cluster_options = BARE

        async def test_it(self) -> None:
            waiting = asyncio.create_task(self.aio.wait_for("cm", "a", timeout=60))
            await asyncio.sleep(0)
            await self.aio.create(config_map("a"))
            self.assertEqual((await waiting)["metadata"]["name"], "a")
            await self.aio.settle()
            await self.aio.wait(self.cluster.requests.where(verb="create", own=True), 1)
            self.cluster.clock.hold()
            before = self.cluster.clock.now()
            await self.aio.advance(hours=1)
            self.assertEqual((self.cluster.clock.now() - before).total_seconds(), 3600)
            with self.assertRaises(AttributeError):
                self.aio.url  # noqa: B018

    result = run(Case)
    assert result.wasSuccessful(), result.errors


def test_cluster_mixin_with_other_base_classes() -> None:
    class Base(unittest.TestCase):
        def setUp(self) -> None:
            self.more = True

    class Case(ClusterMixin, Base):
        cluster_options = BARE

        def test_it(self) -> None:
            self.assertTrue(self.more and self.cluster.url)

        def test_skipped(self) -> None:
            self.skipTest("later")

    result = run(Case)
    assert result.wasSuccessful()
    assert len(result.skipped) == 1
