"""Scenarios: the library, goals over objects and requests, budgets, and what a file may say."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

from fakekube.cli import main
from fakekube.cli import scenario as command_line
from fakekube.cluster.scenarios.game import play, play_solution
from fakekube.cluster.scenarios.scenario import ScenarioError, find_scenario, library, read_scenario

HEAD = "apiVersion: fakekube.dev/v1\nkind: Scenario\nmetadata: {name: own}\n"


def scenario(spec: str) -> bytes:
    return (HEAD + "spec:\n  profile: apiserver\n  title: own\n" + spec).encode()


@pytest.mark.parametrize("name", library())
def test_a_scenario_is_unsolved_at_first_and_its_solution_passes(name: str) -> None:
    with play(find_scenario(name)) as game:
        assert not game.judge()
        assert game.data()["score"] == 0
        result = play_solution(game)
    assert result["passed"], result
    assert (result["scenario"], result["score"]) == (name, 1)


def test_the_library_has_fifteen_incidents_with_hints() -> None:
    found = [find_scenario(name) for name in library()]
    assert len(found) == 15
    assert all(task.hints for one in found for task in one.tasks)


TWO_TASKS = """\
  load:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "1"}}
  tasks:
  - title: changed
    goal:
      objects: [{resource: configmaps, namespace: default, name: a, cel: "object.data.x == '2'"}]
      requests: [{where: {verb: delete, resource: configmaps}, none: true, text: nothing is deleted}]
  - title: gone
    goal: {objects: [{resource: configmaps, namespace: default, name: b, exists: true}]}
"""


def test_the_score_is_the_share_of_tasks_that_passed() -> None:
    step = "  solution:\n  - patch: {resource: configmaps, namespace: default, name: a, patch: {data: {x: '2'}}}\n"
    with play(read_scenario(scenario(TWO_TASKS + step), "a file")) as game:
        result = play_solution(game)
    assert (result["passed"], result["score"]) == (False, 0.5)
    assert [task["passed"] for task in result["tasks"]] == [True, False]
    assert result["tasks"][1]["failed"] == ["configmaps default b: there is no such object"]


def test_a_request_that_must_not_be_fails_a_task_that_had_passed() -> None:
    steps = (
        "  solution:\n  - patch: {resource: configmaps, namespace: default, name: a, patch: {data: {x: '2'}}}\n"
        "  - delete: {resource: configmaps, namespace: default, name: a}\n"
    )
    with play(read_scenario(scenario(TWO_TASKS + steps), "a file")) as game:
        result = play_solution(game)
    assert result["score"] == 0
    assert result["tasks"][0]["failed"] == ["nothing is deleted: 1 request, none is allowed"]


def test_budgets_count_time_and_requests() -> None:
    text = """\
  tasks:
  - title: late
    goal: {objects: [{resource: configmaps, namespace: default, name: a, exists: true}]}
    budget: {seconds: 10}
  - title: many
    goal: {objects: [{resource: configmaps, namespace: default, name: a, exists: true}]}
    budget: {requests: 1}
  solution:
  - advance: 11
  - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
"""
    with play(read_scenario(scenario(text), "a file")) as game:
        result = play_solution(game)
    assert [task["failed"][0].partition(",")[2] for task in result["tasks"]] == [" the budget is 10", " the budget is 1"]


def test_faults_are_armed_at_their_time() -> None:
    text = """\
  faults:
  - {on: {verbs: create, resource: configmaps}, do: {status: {code: 503}}, at: 60}
  tasks:
  - title: never
    goal: {objects: [{resource: configmaps, count: 9}]}
"""
    with play(read_scenario(scenario(text), "a file")) as game:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
        assert len(game.cluster.faults) == 0
        game.cluster.create(body)
        game.cluster.clock.advance(seconds=61)
        assert [one["do"] for one in game.cluster.describe_faults()] == [{"status": {"code": 503}}]


def test_a_solution_sends_a_step_again_while_the_server_is_unavailable() -> None:
    text = """\
  faults: [{on: {verbs: create, resource: configmaps}, do: {status: {code: 503}}, times: 2}]
  tasks:
  - title: there
    goal:
      objects: [{resource: configmaps, namespace: default, name: a, exists: true}]
      requests: [{where: {verb: create, resource: configmaps}, count: 3}]
  solution:
  - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
"""
    with play(read_scenario(scenario(text), "a file")) as game:
        assert play_solution(game)["passed"]


def test_a_solution_sends_a_step_again_whose_answer_was_lost() -> None:
    text = """\
  faults:
  - {on: {verbs: create, resource: configmaps}, do: {lose: {}}, times: 1}
  - {on: {verbs: delete, resource: configmaps}, do: {lose: {}}, times: 1}
  - {on: {verbs: patch, resource: secrets}, do: {lose: {}}, times: 1}
  tasks:
  - title: there
    goal:
      requests:
      - {where: {verb: create, resource: configmaps}, count: 2}
      - {where: {verb: delete, resource: configmaps}, count: 2}
      - {where: {verb: patch, resource: secrets}, count: 2}
  solution:
  - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
  - delete: {resource: configmaps, namespace: default, name: a}
  - create: {apiVersion: v1, kind: Secret, metadata: {name: stuck, finalizers: [example.com/held]}}
  - delete: {resource: secrets, namespace: default, name: stuck}
  - patch: {resource: secrets, namespace: default, name: stuck, patch: {metadata: {finalizers: []}}}
"""
    with play(read_scenario(scenario(text), "a file")) as game:
        assert play_solution(game)["passed"]


def test_requests_that_are_excepted_do_not_count() -> None:
    text = """\
  load: [{apiVersion: v1, kind: Namespace, metadata: {name: shop}}]
  tasks:
  - title: inside
    goal: {requests: [{where: {verb: delete}, except: {namespace: shop}, none: true}, {where: {verb: [create, delete]}, count: 2}]}
  solution:
  - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}
  - delete: {resource: configmaps, namespace: shop, name: a}
  - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
  - delete: {resource: configmaps, name: a}
"""
    found = read_scenario(scenario(text), "a file")
    with play(dataclasses.replace(found, solution=found.solution[:2])) as game:
        assert play_solution(game)["passed"]
    with play(found) as game:
        (task,) = play_solution(game)["tasks"]
    assert task["failed"] == ["verb delete, but not namespace shop: 1 request, none is allowed"]


def test_several_kinds_of_requests_can_be_excepted() -> None:
    text = """\
  tasks:
  - title: only these
    goal:
      requests:
      - {where: {verb: "create,delete"}, except: [{resource: configmaps, verb: delete}, {resource: secrets}], none: true}
      - {where: {resource: secrets}}
  solution:
  - create: {apiVersion: v1, kind: Secret, metadata: {name: a}}
  - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
"""
    found = read_scenario(scenario(text), "a file")
    with play(dataclasses.replace(found, solution=found.solution[:1])) as game:
        assert play_solution(game)["passed"]
    with play(found) as game:
        (task,) = play_solution(game)["tasks"]
    assert task["failed"] == [
        "verb create,delete, but not resource configmaps, verb delete or resource secrets: 1 request, none is allowed"
    ]


def test_a_goal_names_a_resource_that_does_not_exist() -> None:
    text = "  tasks: [{title: a, goal: {objects: [{resource: widgets.example.com, cel: 'true'}]}}]\n"
    with play(read_scenario(scenario(text), "a file")) as game:
        assert not game.judge()
        assert game.results[0].failed == ["widgets.example.com: there is no such resource"]


ONE_TASK = "  tasks:\n  - title: a\n    goal: {objects: [{resource: pods, count: 1}]}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pods: [{on: {labels: {app: a}}, do: {logs: [a]}}]", "own: spec.pods[0]: 'do' is an object"),
        (
            "faults: [{on: {}, do: {gone: {}}}, {on: {verb: get}, do: {gone: {}}, at: 60}]",
            "own: spec.faults[1]: member 'on' must be",
        ),
    ],
)
def test_what_cannot_be_set_up_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as caught, play(read_scenario(scenario(f"{ONE_TASK}  {text}\n"), "a file")):
        pass
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("  tasks: []\n", "spec.tasks has no task"),
        ("  task: []\n", "spec has an unknown member 'task'"),
        ("  tasks: [{title: a, goal: {}}]\n", "neither objects nor requests"),
        ("  tasks: [{title: a, goal: {objects: [{resource: pods}]}}]\n", "must have cel, exists or count"),
        ("  tasks: [{title: a, goal: {objects: [{resource: pods, cel: 'object.('}]}}]\n", "cel: compilation failed"),
        ("  tasks: [{goal: {objects: [{resource: pods, count: 1}]}}]\n", "'title' is missing"),
        ("  tasks: [{title: a, goal: {requests: [{where: {verbs: get}}]}}]\n", "unknown member 'verbs'"),
        ("  tasks: [{title: a, goal: {objects: [{resource: pods, exists: 'no'}]}}]\n", "exists must be true or false"),
        ("  tasks: [{title: a, goal: {objects: [{resource: pods, count: x}]}}]\n", "count must be a number"),
        (f"{ONE_TASK}    budget: {{seconds: soon}}\n", "spec.tasks[0].budget.seconds must be a number"),
        (f"{ONE_TASK}  advance: 1m\n", "spec.advance must be a number"),
        (f"{ONE_TASK}  pods: [{{on: {{app: a}}}}]\n", "spec.pods[0].do is missing"),
        (f"{ONE_TASK}  faults: [{{on: {{}}, do: {{gone: {{}}}}, time: 1}}]\n", "spec.faults[0] has an unknown member 'time'"),
        (f"{ONE_TASK}  faults: [{{on: {{}}, do: {{gone: {{}}}}, at: 1s}}]\n", "spec.faults[0].at must be a number"),
        (f"{ONE_TASK}    hints: look\n", "spec.tasks[0].hints must be a list"),
        (f"{ONE_TASK}    hints: [1]\n", "spec.tasks[0].hints[0] must be a string"),
        (f"{ONE_TASK}  missingImages: nginx\n", "spec.missingImages must be a list"),
        (f"{ONE_TASK}  load: [1]\n", "spec.load[0] must be an object, YAML text or a path"),
        (f"{ONE_TASK}  nodes: 1.5\n", "spec.nodes must be an integer"),
        (f"{ONE_TASK}  solution: [{{wait: 1}}]\n", "spec.solution[0] has an unknown member 'wait'"),
        (f"{ONE_TASK}  solution: [{{advance: soon}}]\n", "spec.solution[0].advance must be a number"),
        (f"{ONE_TASK}  solution: [{{kubectl: [get, pods]}}]\n", "spec.solution[0].kubectl must be a string"),
        (f"{ONE_TASK}  solution: [{{patch: {{resource: pods, name: a}}}}]\n", "spec.solution[0].patch.patch is missing"),
        (
            f"{ONE_TASK}  solution: [{{patch: {{resource: pods, name: a, patch: {{}}, type: put}}}}]\n",
            "type must be one of apply",
        ),
        (f"{ONE_TASK}  solution: [{{delete: {{resource: pods, name: a, force: true}}}}]\n", "unknown member 'force'"),
        ("  tasks: [{title: a, goal: {objects: [{resource: pods, exists: false, cel: 'true'}]}}]\n", "have no meaning"),
        ("  tasks: [{title: a, goal: {objects: [{resource: pods, name: a, labelSelector: a, count: 1}]}}]\n", "both name and"),
        (
            "  tasks: [{title: a, goal: {objects: [{resource: pods, labelSelector: '=', count: 1}]}}]\n",
            "labelSelector: found '='",
        ),
        ("  tasks: [{title: a, goal: {requests: [{where: {verb: remove}}]}}]\n", "where.verb: there is no verb remove"),
        ("  tasks: [{title: a, goal: {requests: [{where: {}}]}}]\n", "where must have one of"),
        ("  tasks: [{title: a, goal: {requests: [{where: {resource: 'a,b'}}]}}]\n", "where.resource: 'a,b' is more than one"),
        ("  tasks: [{title: a, goal: {requests: [{where: {verb: get}, except: [1]}]}}]\n", "except must be"),
        ("  tasks: [{title: a, goal: {requests: [{where: {status: '404'}}]}}]\n", "where.status must be a number"),
        ("  tasks: [{title: a, goal: {requests: [{where: {verb: get}, except: {names: a}}]}}]\n", "except has an unknown member"),
        ("  tasks: [{title: a, goal: {requests: [{where: {verb: get}, none: true, count: 1}]}}]\n", "both count and none"),
    ],
)
def test_what_is_no_scenario_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match="a file") as caught:
        read_scenario(scenario(text), "a file")
    assert problem in str(caught.value)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenario", "list"]) == 0
    assert "crash-loop " in capsys.readouterr().out
    assert main(["scenario", "test", "rbac-denied"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True
    path = tmp_path / "own.yaml"
    path.write_bytes(scenario(TWO_TASKS))
    assert main(["scenario", "test", str(path)]) == 1
    assert json.loads(capsys.readouterr().out)["score"] == 0
    assert main(["scenario", "nothing"]) == 2
    assert "the library has crash-loop" in capsys.readouterr().err


def test_hints_are_shown_one_at_a_time_when_the_player_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TWO_TASKS.replace("  - title: gone\n", "    hints: [one, two]\n  - title: gone\n    hints: [three]\n")
    with play(read_scenario(scenario(text), "a file")) as game:
        command_line._introduce(game, "kubeconfig", with_hints=False)
        assert "hint" not in capsys.readouterr().err
        command_line._introduce(game, "kubeconfig", with_hints=True)
        assert "   hint: two\n" in capsys.readouterr().err
        hints = command_line._hints(game)
        assert next(hints) == "hint for 'changed': one"
        game.results[0].passed = True
        assert list(hints) == ["hint for 'gone': three"]
    parent, child = os.openpty()
    try:
        monkeypatch.setattr("sys.stdin", os.fdopen(child, "r", closefd=False))
        assert not command_line._is_enter_pressed()
        os.write(parent, b"\n")
        assert command_line._is_enter_pressed()
    finally:
        os.close(parent)
        os.close(child)
