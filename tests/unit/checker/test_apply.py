"""How another manager applies what a client applies (C7)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import fakekube
from fakekube.checker.rules import apply
from fakekube.checker.rules.apply import AppliedByOthers, _is_conflict_of_managers, apply_as_other, judge_alternating_applies

PATH = "/apis/apps/v1/namespaces/default/deployments/web"
SECRET = "/api/v1/namespaces/default/secrets/web"
QUOTA = "/api/v1/namespaces/default/resourcequotas/web"


def deployment(value: str) -> dict[str, Any]:
    container = {"name": "main", "image": "web:1", "env": [{"name": "TEXT", "value": value}, {"name": "LAST"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def secret(value: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "data": {"text": value}}


def quota(pods: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "web"}, "spec": {"hard": {"pods": pods}}}


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [(PATH, deployment("old"), deployment("new")), (SECRET, secret("b2xk"), secret("bmV3")), (QUOTA, quota("5"), quota("6"))],
    ids=["a name of an item makes another item", "data in base64", "quantities"],
)
def test_another_manager_owns_a_text_that_the_client_applies(path: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    with fakekube.Cluster(profile="apiserver") as cluster:
        cluster.apply(before, field_manager="client")
        trial: Any = SimpleNamespace(cluster=cluster)
        exchange: Any = SimpleNamespace(body=after, path=path, subresource="", name="web", namespace="default")
        assert apply_as_other(trial, exchange, AppliedByOthers.MANAGER)
        with pytest.raises(fakekube.ApiError, match=f'conflict with "{AppliedByOthers.MANAGER}"'):
            cluster.apply(after, field_manager="client", force=False)


@pytest.mark.parametrize(
    ("code", "details", "expected"),
    [
        (409, {"causes": [{"reason": "FieldManagerConflict", "field": ".data.text"}]}, True),
        (409, {"name": "motd", "kind": "configmaps"}, False),  # it has an old resourceVersion
        (409, None, False),
        (422, {"causes": [{"reason": "FieldManagerConflict"}]}, False),
    ],
)
def test_an_apply_with_an_old_revision_has_no_conflict_of_managers(code: int, details: Any, expected: bool) -> None:
    exchange = SimpleNamespace(content_type="application/apply-patch+yaml")
    call: Any = SimpleNamespace(verb="patch", exchange=exchange, status=code, answer={"details": details})
    assert _is_conflict_of_managers(call) is expected


def test_another_manager_changes_no_default_of_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    with fakekube.Cluster(profile="apiserver") as cluster:
        sent = deployment("old")
        child = cluster.apply(sent, field_manager="client")
        resource = "deployments.apps"
        for name, value in {"applied_resources": [resource], "children_of": [child], "is_apply": True}.items():
            monkeypatch.setattr(apply, name, lambda *_, value=value: value)
        call = SimpleNamespace(resource=resource, name="web", succeeded=True, body=sent)
        trace = SimpleNamespace(mark=lambda: 0, since=lambda: [call])
        baseline = SimpleNamespace(seconds_to_react=lambda times: 0.0)
        trial: Any = SimpleNamespace(cluster=cluster, trace=trace, baseline=baseline, wait=lambda seconds: None)
        copy: Any = None
        AppliedByOthers()._change_children(trial, copy)
        with pytest.raises(fakekube.ApiError, match=f'conflict with "{AppliedByOthers.MANAGER}"'):
            cluster.apply(sent, field_manager="client", force=False)


TEXT, NAME = {"data": {"text": "a"}}, {"data": {"name": "b"}}


@pytest.mark.parametrize(
    ("bodies", "broken"),
    [
        pytest.param([TEXT, NAME] * 3, True, id="a part in turn"),
        pytest.param([{"data": {"text": "a", "name": "b"}}, TEXT] * 3, False, id="a field that comes and goes"),
        pytest.param([TEXT, NAME] * 2, False, id="changed twice"),
        pytest.param([TEXT, TEXT, NAME] * 3, False, id="repeated"),
    ],
)
def test_applies_that_remove_what_the_other_has_brought_never_end(bodies: list[Any], broken: bool) -> None:
    exchange = SimpleNamespace(content_type="application/apply-patch+yaml")
    calls = [SimpleNamespace(verb="patch", succeeded=True, path=PATH, query={}, body=body, exchange=exchange) for body in bodies]
    trial: Any = SimpleNamespace(trace=SimpleNamespace(since=lambda: calls), excerpt=list)
    found = judge_alternating_applies(trial)
    assert (found is not None) is broken
    assert found is None or "with data.text and without it in turn" in found.evidence[0]
