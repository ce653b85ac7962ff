"""Base classes for tests with unittest: a fresh cluster for each test, or one for a class that is reset before each.

    class TestOperator(fakekube.TestCase):
        cluster_options = {"profile": "apiserver"}

        def test_it(self):
            self.cluster.create(...)

Invariant: a cluster is stopped after its last test, also if that fails; the error of a failing test has the requests of its
cluster.
"""

from __future__ import annotations

import os
import unittest
from typing import Any, ClassVar
from unittest import mock

from fakekube.cluster import Cluster
from fakekube.cluster.testing.clients import AsyncCluster
from fakekube.cluster.testing.traces import report_of
from fakekube.cluster_options import ClusterOptions


class ClusterMixin:
    """Provides a started cluster for each test; a mixin that must precede `unittest.TestCase` or a subclass of it.

    Class attributes:
        cluster_options: the arguments of `Cluster`, such as {"profile": "apiserver", "strict": True}; by default none.
        shared_cluster: whether all tests of the class use one cluster, which is reset before each; by default False, a fresh
            cluster for each test.
        sets_kubeconfig: whether KUBECONFIG is set to the kubeconfig of the cluster during each test; by default False.
    """

    cluster_options: ClassVar[ClusterOptions] = {}
    shared_cluster: ClassVar[bool] = False
    sets_kubeconfig: ClassVar[bool] = False

    cluster: Cluster
    """The cluster of this test."""
    _shared: ClassVar[Cluster | None] = None

    @classmethod
    def setUpClass(cls) -> None:
        """Starts the cluster of the class, if its tests share one."""
        super().setUpClass()  # type: ignore[misc]
        if cls.shared_cluster:
            cls._shared = Cluster(**cls.cluster_options).start()
            cls.addClassCleanup(cls._shared.stop)  # type: ignore[attr-defined]

    def setUp(self) -> None:
        """Starts the cluster of the test, or resets that of the class."""
        case: Any = self
        if self._shared is not None:
            self._shared.reset()
            self.cluster = self._shared
        else:
            self.cluster = Cluster(**self.cluster_options).start()
            case.addCleanup(self.cluster.stop)
        if self.sets_kubeconfig:
            environment = mock.patch.dict(os.environ, self.cluster.environment)
            environment.start()
            case.addCleanup(environment.stop)
        super().setUp()  # type: ignore[misc]

    def _callTestMethod(self, method: Any) -> None:
        """Adds the recorded requests of the cluster to the error of a test."""
        try:
            super()._callTestMethod(method)  # type: ignore[misc]
        except unittest.SkipTest:
            raise
        except Exception as error:
            for title, text in report_of(self.cluster, str(error)):
                error.add_note(f"{title}:\n{text}")
            raise


class TestCase(ClusterMixin, unittest.TestCase):
    """A test case whose tests have a started cluster, `self.cluster`.

    Class attributes (see `ClusterMixin`): `cluster_options`, the arguments of `Cluster`; `shared_cluster`, one cluster for all
    tests of the class; `sets_kubeconfig`, whether KUBECONFIG is set.
    """


class IsolatedAsyncioTestCase(ClusterMixin, unittest.IsolatedAsyncioTestCase):
    """A test case with coroutines as tests, which have `self.cluster` and `self.aio`; see `ClusterMixin` and `Cluster.aio`."""

    @property
    def aio(self) -> AsyncCluster:
        """The methods of the cluster as coroutines."""
        return self.cluster.aio
