"""`fakekube validate`: refusals with file and line, output formats, exit codes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fakekube.cli import main
from fakekube.cli.validate import split_documents

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 10}}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: names}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]}
  validations: [{expression: "object.metadata.name.startsWith(params.data.prefix)", message: wrong prefix}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: names}
spec: {policyName: names, validationActions: [Deny], paramRef: {name: names, namespace: team, parameterNotFoundAction: Deny}}
"""
PARAMETER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: names, namespace: team}\ndata: {prefix: w-}\n"
OBJECTS = """\
# the widgets
apiVersion: example.com/v1
kind: Widget
metadata: {name: w-small, namespace: team}
spec: {size: 3}
---

apiVersion: example.com/v1
kind: Widget
metadata: {name: w-big, namespace: team}
spec: {size: 300}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: fine}
- apiVersion: example.com/v1
  kind: Widget
  metadata: {name: other}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "crd.yaml").write_text(CRD)
    (tmp_path / "params.yml").write_text(PARAMETER)
    (tmp_path / "widgets.yaml").write_text(OBJECTS)
    (tmp_path / "notes.txt").write_text("no manifest")
    return tmp_path


def test_refusals_have_file_and_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"{folder}/widgets.yaml:8", f"{folder}/widgets.yaml:19"]
    assert "Widget team/w-big: " in lines[0] and "should be less than or equal to 10" in lines[0]
    assert "Widget other: " in lines[1] and "wrong prefix" in lines[1]


def test_valid_manifests_are_silent(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(folder / "z"), str(folder / "params.yml")]) == 0
    assert capsys.readouterr().out == ""


def test_json_and_junit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(folder), "--output", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["summary"] == {"valid": 6, "invalid": 2, "skipped": 0, "warnings": 0}
    wrong = next(one for one in found["results"] if one["name"] == "w-big")
    assert (wrong["line"], wrong["namespace"], wrong["status"], len(wrong["errors"])) == (8, "team", "invalid", 1)
    assert main(["validate", str(folder), "--output", "junit"]) == 1
    root = ElementTree.fromstring(capsys.readouterr().out)
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("8", "2", "0")
    assert len(root.findall(".//failure")) == 2


def test_unknown_kinds_are_errors_unless_they_are_ignored(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "only.yaml"
    path.write_text("apiVersion: foo.example/v1\nkind: Foo\nmetadata: {name: a}\n")
    assert main(["validate", str(path)]) == 1
    assert "Foo a: foo.example/v1 Foo is not known" in capsys.readouterr().out
    assert main(["validate", str(path), "--ignore-missing-schemas"]) == 0
    assert "Foo a: skipped: foo.example" in capsys.readouterr().out


def test_warnings_count_with_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations: {container.apparmor.security.beta.kubernetes.io/c: unconfined}\n"
        "spec: {containers: [{name: c, image: nginx}]}\n"
    )
    assert main(["validate", str(path)]) == 0
    assert "pod.yaml:1: Pod a: warning: " in capsys.readouterr().out
    assert main(["validate", str(path), "--strict"]) == 1


@pytest.mark.parametrize(("text", "line"), [("a: [1\n", 1), ("kind: A\napiVersion: v1\n---\nb: 1\n c: 2\n", 5)])
def test_what_cannot_be_read_is_an_error_of_its_own(
    tmp_path: Path, text: str, line: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    assert main(["validate", str(path)]) == 2
    assert capsys.readouterr().out.startswith(f"{path}:{line}: not YAML")
    assert main(["validate", str(tmp_path / "nothing.yaml")]) == 2


def test_a_document_that_is_no_object_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("image: nginx\n")
    assert main(["validate", str(path)]) == 1
    assert "values.yaml:1: not a Kubernetes object" in capsys.readouterr().out


def test_documents_have_the_line_of_their_first_field() -> None:
    assert list(split_documents("# one\n\na: 1\n---\n# two\n---\n  \nb: 2\n--- # three\nc: 3")) == [
        (3, "a: 1\n"),
        (8, "b: 2\n"),
        (10, "c: 3"),
    ]


def test_the_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = b"apiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {name: A}\r\n---\r\napiVersion: v1\r\nkind: Nothing\r\nmetadata: {name: b}\r\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["validate", "-"]) == 1
    found = capsys.readouterr().out
    assert "-:1: ConfigMap A: " in found
    assert "-:5: Nothing b: " in found


def test_variants_of_a_class_are_no_updates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: slow}}\nprovisioner: {}\n"
    for name, provisioner in (("a", "example.com/a"), ("b", "example.com/b"), ("c", "[]")):
        (tmp_path / f"{name}.yaml").write_text(text.format(provisioner))
    assert main(["validate", str(tmp_path)]) == 1
    found = capsys.readouterr().out
    assert "immutable" not in found
    assert [line.partition(":")[0].rpartition("/")[2] for line in found.splitlines() if "StorageClass" in line] == ["c.yaml"]


def test_files_of_kustomize_helm_and_other_programs_are_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    files = {
        "base/kustomization.yaml": "resources: [map.yaml]\nconfigMapGenerator: [{name: g, files: [key=data.json, more.yaml]}]\n",
        "base/map.yaml": config_map,
        "base/data.json": "[1]",
        "base/more.yaml": "apiVersion: v1\n",
        "over/kustomization.yml": (
            "resources: [../base]\nopenapi: {path: schema.json}\npatchesStrategicMerge: [old.yaml]\n"
            "patches:\n- path: new.yaml\n- patch: |-\n    - {op: remove, path: /a}\n  target: {kind: ConfigMap}\n"
        ),
        "over/old.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
        "over/new.yaml": "- {op: remove, path: /a}\n",
        "over/schema.json": '{"kind": "x"}',
        "chart/Chart.yaml": "apiVersion: v2\nname: web\n",
        "chart/values.yaml": "kind: x\n",
        "chart/templates/tests/a.yaml": "metadata: {name: {{ .Release.Name }}}\n",
        "chart/crds/a.yaml": config_map,
        "scaffold/kustomization.yaml": (
            "resources: [web.yaml]\npatches:\n#- path: patches/webhook.yaml\n# - old_patch.yaml\n# see the path: web.yaml\n"
        ),
        "scaffold/patches/webhook.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
        "scaffold/old_patch.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
        "scaffold/web.yaml": config_map,
        "kind.yaml": "apiVersion: kind.x-k8s.io/v1alpha4\nkind: Cluster\nnodes: []\n",
        "ci.yml": "jobs: {}\n",
        "broken/kustomization.yaml": "{",
        ".github/a.yaml": "{",
        "web/node_modules/a/package.json": "{",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert main(["validate", str(tmp_path), "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    by_status = {one["file"].removeprefix(f"{tmp_path}/"): one["status"] for one in found["results"]}
    assert [file for file, status in by_status.items() if status == "valid"] == [
        "base/map.yaml",
        "chart/crds/a.yaml",
        "scaffold/web.yaml",
    ]
    assert by_status.keys() == files.keys() - {".github/a.yaml", "web/node_modules/a/package.json"}
    assert main(["validate", str(tmp_path / "ci.yml")]) == 1
    assert "ci.yml:1: not a Kubernetes object" in capsys.readouterr().out
    assert main(["validate", str(tmp_path / "kind.yaml")]) == 1
    assert "kind.x-k8s.io/v1alpha4 Cluster is not known" in capsys.readouterr().out


HOSTILE = 'apiVersion: v1\nkind: "Config\\e[31mMap\\n::error::a"\nmetadata: {name: "a\\e]0;b\\a\\r\\n::warning::c\\u202e", namespace: d}\n'


def test_manifests_do_not_control_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a\x1b[2J\n::error::.yaml").write_text(HOSTILE)
    assert main(["validate", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].isprintable()
    assert r"Config\x1b[31mMap\n::error::a" in lines[0]


def test_reports_of_hostile_manifests_are_xml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a\x1b[2J.yaml").write_text(HOSTILE)
    assert main(["validate", "--output", "junit", str(tmp_path)]) == 1
    (suite,) = ElementTree.fromstring(capsys.readouterr().out)
    assert (suite.get("failures"), suite[0].get("name", "").partition("\n")[0]) == ("1", "Config?[31mMap")
