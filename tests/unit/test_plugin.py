"""The pytest plugin: fixtures, and options by ini file, command line and marker; with xdist, asyncio and threads."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from tests.nested_pytest import Project

CONFIG_MAP = 'dict(apiVersion="v1", kind="ConfigMap", metadata=dict(name={name}))'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    options = ("filterwarnings = error", "asyncio_default_fixture_loop_scope = function", "fakekube_profile = apiserver")
    made.write("pytest.ini", "\n".join(["[pytest]", *options]))
    return made


def write(project: Project, code: str) -> None:
    project.write("test_it.py", code.replace("CONFIG_MAP", CONFIG_MAP.format(name="name")))


def test_fixtures_provide_clusters_per_test_session_and_factory(project: Project) -> None:
    write(
        project,
        """
        import urllib.request

        def create(cluster, name):
            return cluster.create(CONFIG_MAP)

        def test_it_is_fresh_and_runs(fakekube):
            create(fakekube, "a")
            assert urllib.request.urlopen(fakekube.url + "/readyz").read() == b"ok"

        def test_it_is_fresh_again(fakekube):
            create(fakekube, "a")

        def test_the_session_remembers(fakekube_session):
            create(fakekube_session, "a")

        def test_the_session_remembered(fakekube_session, fakekube):
            assert fakekube_session.get("configmaps", "a")
            assert not fakekube.list("configmaps", namespace="default")

        def test_a_factory_makes_many(fakekube_factory):
            one, two = fakekube_factory(), fakekube_factory(profile="cluster")
            create(one, "a")
            two.settle()
            assert [item["metadata"]["name"] for item in two.list("configmaps", namespace="default")] == ["kube-root-ca.crt"]
            assert one.url != two.url
    """,
    )
    project.run().assert_outcomes(passed=5)


def test_clusters_are_freed_after_their_test(project: Project) -> None:
    write(
        project,
        """
        import gc, weakref
        import pytest

        clusters = []

        @pytest.mark.parametrize("n", range(3))
        def test_uses_one(fakekube, n):
            fakekube.create(dict(apiVersion="v1", kind="ConfigMap", metadata=dict(name="a")))
            clusters.append(weakref.ref(fakekube))

        def test_they_are_gone():
            gc.collect()
            assert [cluster() for cluster in clusters] == [None, None, None]
    """,
    )
    project.run().assert_outcomes(passed=4)


def test_marker_overrides_command_line_overrides_ini_file(project: Project) -> None:
    project.write("start.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: loaded, namespace: default}}")
    write(
        project,
        """
        import os
        from pathlib import Path

        import pytest

        def names(cluster):
            cluster.settle()
            return {item["metadata"]["name"] for item in cluster.list("configmaps", namespace="default")}

        def test_the_command_line_beats_the_ini_file(fakekube):
            assert names(fakekube) == {"kube-root-ca.crt", "loaded"}
            assert fakekube.url.startswith("https:")

        @pytest.mark.fakekube(profile="apiserver", tls=False, load=[], kubeconfig=False)
        def test_the_marker_beats_the_command_line(fakekube):
            assert names(fakekube) == set()
            assert fakekube.url.startswith("http:")
            assert os.environ.get("KUBECONFIG") is None

        def test_the_environment_tells_the_cluster(fakekube):
            assert fakekube.url in Path(os.environ["KUBECONFIG"]).read_text()

        def test_the_environment_is_as_it_was():
            assert "KUBECONFIG" not in os.environ
    """,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KUBECONFIG", raising=False)
        project.run(
            "--fakekube-profile=cluster", "--fakekube-tls", "--fakekube-load=start.yaml", "--fakekube-kubeconfig"
        ).assert_outcomes(passed=4)


def test_invalid_marker_arguments_are_an_error(project: Project) -> None:
    write(
        project,
        """
        import pytest

        @pytest.mark.fakekube(token_auth_fle="red")
        def test_misspelt(fakekube): ...

        @pytest.mark.fakekube("apiserver")
        def test_without_a_name(fakekube): ...

        def test_factory(fakekube_factory):
            with pytest.raises(TypeError, match="did you mean 'profile'"):
                fakekube_factory(profil="apiserver")
    """,
    )
    result = project.run()
    result.assert_outcomes(errors=2, passed=1)
    result.stdout.fnmatch_lines(["*the marker fakekube: unknown option: 'token_auth_fle' (did you mean 'token_auth_file'?)*"])
    result.stdout.fnmatch_lines(["*the marker fakekube takes the options of a cluster, fakekube(profile='apiserver')*"])


def test_every_option_of_a_cluster_is_one_of_the_plugin(project: Project) -> None:
    project.write("tokens.csv", "t0ken,alice,1")
    project.write("objects.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: loaded, namespace: default}}")
    project.write(
        "pytest.ini",
        """
        [pytest]
        asyncio_default_fixture_loop_scope = function
        fakekube_profile = apiserver
        fakekube_token_auth_file = tokens.csv
        fakekube_load = objects.yaml
        fakekube_keep_requests = 7
        fakekube_feature_gates =
            MutatingAdmissionPolicy=true
            OpenAPIEnums=false
        fakekube_compaction_interval = 2.5
        fakekube_tls = true
        """,
    )
    write(
        project,
        """
        import pytest

        def test_options(fakekube):
            reviewed = fakekube.request("GET", "/api/v1/namespaces/default/secrets", headers={"Authorization": "Bearer t0ken"})
            assert (reviewed.status, reviewed.json()["reason"]) == (403, "Forbidden")
            assert "alice" in reviewed.text
            assert fakekube.get("configmaps", "loaded")
            assert fakekube.url.startswith("http://")

        @pytest.mark.fakekube(anonymous_auth=False, tls=True)
        def test_flag_of_the_marker(fakekube):
            assert fakekube.url.startswith("https://")
            assert fakekube.request("GET", "/api", headers={"Authorization": "Bearer wrong"}).status == 401
    """,
    )
    arguments = ["--fakekube-authorization-mode=Node,RBAC", "--no-fakekube-tls"]
    project.run(*arguments).assert_outcomes(passed=2)
    for wrong, text in (("nodes=many", "fakekube_nodes: 'many' is not a number"), ("feature-gates=A", "neither GATE=true nor")):
        result = project.run(*arguments, f"--fakekube-{wrong}")
        result.assert_outcomes(errors=2)
        result.stdout.fnmatch_lines([f"*{text}*"])


def test_modules_of_the_package_are_not_rewritten_and_the_finder_is_taken_away(project: Project) -> None:
    write(
        project,
        """
        import sys

        def test_loaders(fakekube):
            fakekube.create(CONFIG_MAP)
            loaders = {
                name: module.__spec__.loader.__class__.__module__
                for name, module in sys.modules.items()
                if name.split(".")[0] == "fakekube" and name.split(".")[1:2] != ["pytest_plugin"]
            }
            assert len(loaders) > 100
            assert [name for name, loader in loaders.items() if "rewrite" in loader] == []
    """.replace("CONFIG_MAP", CONFIG_MAP.format(name="'a'")),
    )
    result = project.run_in_subprocess("-W", "error")
    result.assert_outcomes(passed=1)


def test_marker_and_options_are_documented_in_help(project: Project) -> None:
    project.run("--markers").stdout.fnmatch_lines(["@pytest.mark.fakekube(profile=*"])
    project.run("--help").stdout.fnmatch_lines(["*--fakekube-profile=*", "*--fakekube-feature-gates=*"])


def test_cluster_is_usable_from_asyncio_and_threads(project: Project) -> None:
    write(
        project,
        """
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        import pytest

        def create(cluster, name):
            return cluster.create(CONFIG_MAP)["metadata"]["resourceVersion"]

        @pytest.mark.asyncio
        async def test_asyncio(fakekube):
            made = [asyncio.to_thread(create, fakekube, f"c{n}") for n in range(10)]
            assert len(set(await asyncio.gather(*made))) == 10

        def test_threads(fakekube):
            with ThreadPoolExecutor(8) as pool:
                versions = list(pool.map(lambda n: create(fakekube, f"c{n}"), range(100)))
            assert len(set(versions)) == 100
            assert len(fakekube.list("configmaps", namespace="default")) == 100
    """,
    )
    project.run().assert_outcomes(passed=2)


def test_xdist_workers_have_their_own_clusters(project: Project) -> None:
    write(
        project,
        """
        import pytest

        def create(cluster, name):
            return cluster.create(CONFIG_MAP)

        @pytest.mark.parametrize("n", range(6))
        def test_each(n, fakekube, fakekube_session):
            create(fakekube, "same")
            create(fakekube_session, f"c{n}")
            assert fakekube.url != fakekube_session.url
    """,
    )
    project.run_in_subprocess("-n", "2").assert_outcomes(passed=6)


def test_failure_report_shows_recorded_requests(project: Project) -> None:
    write(
        project,
        """
        import urllib.request

        def test_it(fakekube):
            urllib.request.urlopen(fakekube.url + "/api/v1/pods").close()
            assert False
    """,
    )
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*requests to fakekube*", "*list /api/v1/pods by admin*200*"])


def test_unfired_faults_fail_a_strict_test(project: Project) -> None:
    write(
        project,
        """
        import pytest

        def test_fixture(fakekube_faults):
            fakekube_faults.on("delete", "pods").status(500)

        @pytest.mark.fakekube(strict=True)
        def test_marker(fakekube):
            fakekube.faults.on("delete", "pods").status(500)

        def test_neither(fakekube):
            fakekube.faults.on("delete", "pods").status(500)
    """,
    )
    result = project.run()
    result.assert_outcomes(passed=3, errors=2)
    result.stdout.fnmatch_lines(["*never happened*"])


FAILING = """
    def test_it_fails(fakekube, fakekube_factory):
        other = fakekube_factory(profile="apiserver")
        fakekube.create(dict(apiVersion="v1", kind="ConfigMap", metadata=dict(name="a")))
        fakekube.clock.hold()
        fakekube.clock.advance(hours=2)
        fakekube.create(dict(apiVersion="v1", kind="ConfigMap", metadata=dict(name="b")))
        assert not "reached"

    def test_it_passes(fakekube):
        fakekube.mark("here")
"""


def test_a_failed_test_has_a_trace_file_for_each_cluster(project: Project) -> None:
    from fakekube.powers.trace import trace_in

    write(project, FAILING)
    result = project.run("--fakekube-trace=failed", "--junitxml=junit.xml")
    result.assert_outcomes(passed=1, failed=1)
    files = sorted((project.folder / "fakekube-traces").iterdir())
    assert [re.sub("-[0-9a-f]{4}", "-X", file.name) for file in files] == ["test_it_fails-X-2.html", "test_it_fails-X.html"]
    result.stdout.fnmatch_lines(["*fakekube trace*", f"*{files[1]}", f"*{files[0]}"])
    assert str(files[1]) in (project.folder / "junit.xml").read_text(encoding="utf-8")
    trace = trace_in(files[1].read_bytes())
    assert trace["test"]["id"] == "test_it.py::test_it_fails"
    assert trace["test"]["outcome"] == "failed"
    assert "reached" in trace["test"]["message"]
    texts = [trace["marks"]["strings"][place] for place in trace["marks"]["columns"]["text"]]
    assert texts[:4] == ["setup", "call", "held", "advanced by 2h"]
    assert texts[4].startswith("failed: ")
    assert {"a", "b"} <= set(trace["changes"]["strings"])  # although the history was compacted meanwhile


def test_all_tests_have_trace_files_in_the_folder_of_the_ini_file(project: Project) -> None:
    write(project, FAILING)
    project.write("pytest.ini", "[pytest]\nfakekube_profile = apiserver\nfakekube_trace = all\nfakekube_trace_dir = out/traces\n")
    project.run().assert_outcomes(passed=1, failed=1)
    assert len(list((project.folder / "out" / "traces").glob("*.html"))) == 3


def test_no_trace_files_by_default(project: Project) -> None:
    write(project, FAILING)
    project.run().assert_outcomes(passed=1, failed=1)
    assert not (project.folder / "fakekube-traces").exists()


def test_a_trace_that_cannot_be_written_is_told(project: Project) -> None:
    write(project, FAILING)
    project.write("fakekube-traces", "a file")
    result = project.run("--fakekube-trace=failed")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["the trace cannot be written: *"])


def test_pause_shows_the_page_once_and_waits(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    write(project, FAILING + FAILING.replace("def test_it", "def test_again_it"))
    result = project.run("--fakekube-pause", "-s")
    result.assert_outcomes(passed=2, failed=2)
    assert sum("/fakekube/" in line for line in result.outlines) == 1


def test_pause_is_refused_with_xdist(project: Project) -> None:
    write(project, FAILING)
    result = project.run_in_subprocess("--fakekube-pause", "-n", "1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert any("pytest-xdist" in line for line in result.errlines)


def test_an_unknown_mode_is_refused(project: Project) -> None:
    write(project, FAILING)
    project.write("pytest.ini", "[pytest]\nfakekube_trace = sometimes\n")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert any("off, failed, all" in line for line in result.errlines)


def test_a_wrong_value_of_the_ini_file_is_told_with_its_option(project: Project) -> None:
    write(project, FAILING)
    project.write("pytest.ini", "[pytest]\nfakekube_tls = maybe\n")
    result = project.run()
    assert any("fakekube_tls: invalid truth value 'maybe'" in line for line in result.outlines)
