"""Jobs that are scheduled as workloads: the rules of `spec.scheduling` (1.37), and groups that hold the parallelism of a job (1.36)."""

from __future__ import annotations

import functools
from typing import Any

from tests.differential.client import MERGE, Client
from tests.differential.definitions import DRY
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.rule_tables import State, each, tell

# fmt: off

tell_of = functools.partial(tell, module="rules_jobs")

Edit = dict[str, Any]
SPEC: Edit = {"parallelism": 2, "template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}}
JOB: Edit = {"spec": SPEC}
CRON_JOB: Edit = {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": SPEC}}}


def gang(count: int | None = None) -> Edit:
    """The policy of a gang."""
    return {"gang": {} if count is None else {"minCount": count}}


def of_scheduling(path: str) -> list[Edit]:
    """Edits of a configuration."""
    return [
        *each(path, None, {}, {"schedulingPolicy": {"basic": {}}, "disruptionMode": {"all": {}}}, {"disruptionMode": {"all": {}}}, {"schedulingPolicy": {}, "disruptionMode": {"all": {}}}, {"schedulingPolicy": gang(), "disruptionMode": {"all": {}}}),
        *each(f"{path}.schedulingPolicy", None, {}, {"basic": {}}, {"basic": {}, **gang(1)}, gang(), gang(0), gang(-1), gang(1), gang(2), gang(3)),
        *each(f"{path}.schedulingConstraints", {}, {"topology": [{}]}, {"topology": [{"key": "a/b/c"}]}, {"topology": [{"key": "a"}]}, {"topology": [{"key": "a"}, {"key": "b"}]}),
        *each(f"{path}.disruptionMode", {}, {"single": {}}, {"single": {}, "all": {}}, {"all": {}}),
        *each(f"{path}.resourceClaims", [{}], [{"name": "a", "resourceClaimName": ""}], [{"name": "A_"}], [{"name": "a", "resourceClaimName": "A_"}], [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "B_"}], [{"name": "a", "resourceClaimName": "b"}] * 2, [{"name": f"a{n}", "resourceClaimName": "b"} for n in range(5)]),
    ]


for kind, base, scheduling in (("jobs", JOB, "spec.scheduling"), ("cronjobs", CRON_JOB, "spec.jobTemplate.spec.scheduling")):
    spec = scheduling.rpartition(".")[0]
    states = [{"schedulingPolicy": {"basic": {}}}, {"schedulingPolicy": gang(2), "disruptionMode": {"all": {}}, "schedulingConstraints": {"topology": [{"key": "a"}]}, "resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}]
    tell_of(f"scheduling_of_{kind}", f"batch/v1/{kind}", base, create=[
        *of_scheduling(scheduling), {scheduling: {"schedulingPolicy": gang(0)}, f"{spec}.parallelism": -1}, {scheduling: {"schedulingPolicy": gang(1)}, f"{spec}.parallelism": None}, {scheduling: {"schedulingPolicy": gang(2)}, f"{spec}.parallelism": 0},
        {scheduling: {"schedulingPolicy": {}}, f"{spec}.template.spec.restartPolicy": "Always"}, {scheduling: {"nope": 1}},
    ], states=[
        State(update=[*each(scheduling, {}, {"schedulingPolicy": gang(2)}), {f"{spec}.parallelism": 1}]),
        *(State(base={scheduling: state}, update=[*of_scheduling(scheduling), {f"{spec}.parallelism": 1}, {f"{spec}.parallelism": 3}, {"metadata.labels": {"a": "b"}}]) for state in ({}, *states)),
    ])

# fmt: on


@scenario
def parallelism_of_gangs(client: Client) -> None:
    """A job whose template names a group, or that controls one, keeps its parallelism while the group is a gang."""
    jobs = f"/apis/batch/v1/namespaces/{client.ns}/jobs"
    groups = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{client.ns}/podgroups"
    template = {"spec": {**SPEC["template"]["spec"], "schedulingGroup": {"podGroupName": "g"}}}
    policies: dict[str, Edit] = {"gang": {"gang": {"minCount": 2}}, "basic": {"basic": {}}}
    for policy, value in policies.items():
        client.post(groups, {"metadata": {"name": f"g-{policy}"}, "spec": {"schedulingPolicy": value}})
        named = {"spec": {**template["spec"], "schedulingGroup": {"podGroupName": f"g-{policy}"}}}
        client.post(jobs, {"metadata": {"name": f"named-{policy}"}, "spec": {**SPEC, "template": named}})
        owner = client.post(jobs, {"metadata": {"name": f"owner-{policy}"}, "spec": SPEC})
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": f"owner-{policy}", "uid": owner.uid, "controller": True}
        client.post(
            groups, {"metadata": {"name": f"owned-{policy}", "ownerReferences": [reference]}, "spec": {"schedulingPolicy": value}}
        )
    client.post(jobs, {"metadata": {"name": "lost"}, "spec": {**SPEC, "template": template}})
    more = {"spec": {"parallelism": 3}}
    until(lambda: client.patch(f"{jobs}/owner-gang", more, MERGE, DRY, silent=True).status != 200, 5)
    for name in ("named-gang", "named-basic", "owner-gang", "owner-basic", "lost"):
        for change in (more, {"spec": {"parallelism": 2}}, {"metadata": {"labels": {"a": "b"}}}):
            client.patch(f"{jobs}/{name}", change, MERGE, DRY)
