"""The rules of Jobs and CronJobs, each shown by an edit of an object that is valid."""

from __future__ import annotations

import functools
from typing import Any

from tests.differential.rule_tables import State, tell

# fmt: off
tell_of = functools.partial(tell, module="rules_batch")

POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], "initContainers": [{"name": "i", "image": "i"}]}
JOB: dict[str, Any] = {"metadata": {}, "spec": {"completions": 4, "parallelism": 2, "template": {"spec": POD}}}
INDEXED = {"spec.completionMode": "Indexed", "spec.backoffLimitPerIndex": 1}
MANY = {**INDEXED, "spec.completions": 100_001}
LONG = "x" * 64
MANUAL = {"spec.manualSelector": True, "spec.selector": {"matchLabels": {"a": "b"}}, "spec.template.metadata.labels": {"a": "b"}}


def failing(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"spec.podFailurePolicy.rules": list(rules), **more}


def succeeding(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**INDEXED, "spec.successPolicy.rules": list(rules), **more}


def codes(**more: Any) -> dict[str, Any]:
    return {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2], **more}}


CREATE: list[dict[str, Any]] = [
    {},
    {"spec.template.spec.restartPolicy": "Always"},
    {"spec.template.spec.restartPolicy": None},
    {"spec.template.spec.restartPolicy": "Nope"},
    *({f"spec.{name}": -1} for name in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes")),
    *({**INDEXED, f"spec.{name}": -1} for name in ("backoffLimitPerIndex", "maxFailedIndexes")),
    {"spec.backoffLimitPerIndex": 1},
    {"spec.maxFailedIndexes": 1},
    {"spec.completionMode": "Indexed", "spec.maxFailedIndexes": 1},
    {"spec.completionMode": "Nope"},
    {"spec.completionMode": ""},
    {**INDEXED, "spec.completions": None},
    {**INDEXED, "spec.parallelism": 100_000},
    {**INDEXED, "spec.parallelism": 100_001},
    {**INDEXED, "spec.maxFailedIndexes": 4},
    {**INDEXED, "spec.maxFailedIndexes": 5},
    {**INDEXED, "spec.completions": 100_000, "spec.maxFailedIndexes": 100_000},
    {**INDEXED, "spec.completions": 100_001, "spec.maxFailedIndexes": 100_001},
    MANY,
    {**MANY, "spec.maxFailedIndexes": 10_000, "spec.parallelism": 10_000},
    {**MANY, "spec.maxFailedIndexes": 10_001, "spec.parallelism": 10_001},
    {"spec.completionMode": "Indexed", "spec.completions": 100_001, "spec.parallelism": 10_001},
    {"spec.completionMode": "Indexed", "spec.completions": 100_001, "spec.parallelism": 10_000},
    {"spec.completionMode": "Indexed", "spec.completions": 100_000, "spec.parallelism": 10_001},
    {"metadata.name": "a" * 62, "spec.completionMode": "Indexed"},
    {"metadata.name": "a" * 61, "spec.completionMode": "Indexed", "spec.completions": 11},
    {"metadata.name": "a" * 61, "spec.completionMode": "Indexed", "spec.completions": 10},
    {"metadata.name": "a.b", "spec.completionMode": "Indexed"},
    {"metadata.name": "a.b"},
    {"spec.managedBy": ""},
    {"spec.managedBy": "plain"},
    {"spec.managedBy": "/x"},
    {"spec.managedBy": "UP.per/x"},
    {"spec.managedBy": "a.b/ x"},
    {"spec.managedBy": f"a.b/{LONG}"},
    {"spec.managedBy": "a.b/" + "x" * 59},
    {"spec.podReplacementPolicy": "Nope"},
    {"spec.podReplacementPolicy": "TerminatingOrFailed"},
    failing(codes(), **{"spec.podReplacementPolicy": "TerminatingOrFailed"}),
    failing(codes(), **{"spec.template.spec.restartPolicy": "OnFailure"}),
    failing(),
    failing(*[codes()] * 20),
    failing(*[codes()] * 21),
    failing({"action": "Count"}),
    failing({"action": "Nope", "onExitCodes": {"operator": "In", "values": [1]}}),
    failing({"onExitCodes": {"operator": "In", "values": [1]}}),
    failing({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}),
    failing({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}, **INDEXED),
    failing({**codes(), "onPodConditions": [{"type": "X", "status": "True"}]}),
    failing({"action": "Ignore", "onPodConditions": []}),
    failing({"action": "Ignore", "onPodConditions": [{"type": "X"}]}),
    failing({"action": "Ignore", "onPodConditions": [{"type": "X", "status": "Nope"}]}),
    failing({"action": "Ignore", "onPodConditions": [{"type": "no type", "status": "Unknown"}]}),
    failing({"action": "Ignore", "onPodConditions": [{"type": "", "status": ""}]}),
    failing({"action": "Ignore", "onPodConditions": [{"type": "X", "status": "False"}] * 20}),
    failing({"action": "Ignore", "onPodConditions": [{"type": "X", "status": "False"}] * 21}),
    failing(codes(operator="")),
    failing(codes(operator="Nope")),
    failing(codes(values=[])),
    failing(codes(values=[0, 1])),
    failing(codes(operator="NotIn", values=[0, 1])),
    failing(codes(values=[1, 1])),
    failing(codes(values=[3, 2])),
    failing(codes(values=list(range(1, 256)))),
    failing(codes(values=list(range(1, 257)))),
    failing(codes(containerName="c")),
    failing(codes(containerName="i")),
    failing(codes(containerName="other")),
    {"spec.successPolicy.rules": [{"succeededCount": 1}]},
    succeeding(),
    succeeding(*[{"succeededCount": 1}] * 20),
    succeeding(*[{"succeededCount": 1}] * 21),
    succeeding({}),
    succeeding({"succeededCount": -1}),
    succeeding({"succeededCount": 4}),
    succeeding({"succeededCount": 5}),
    *(succeeding({"succeededIndexes": text}) for text in ("0,1", "0-3", "x", "1-2-3", "2-1", "1-1", "1,1", "2,1", "4", "", "0-", "-1", "1,", "0-4", "0-x")),
    succeeding({"succeededIndexes": "0,1", "succeededCount": 2}),
    succeeding({"succeededIndexes": "0,1", "succeededCount": 3}),
    succeeding({"succeededIndexes": "0," * 32_769}),
    {"spec.selector": {"matchLabels": {"a": "b"}}},
    {"spec.manualSelector": True},
    {"spec.manualSelector": True, "spec.selector": {"matchLabels": {"a": "b"}}},
    MANUAL,
    {**MANUAL, "spec.selector": {"matchExpressions": [{"key": "a", "operator": "Nope"}]}},
    {"spec.template.metadata.labels": {"job-name": "other"}},
    {"spec.template.metadata.labels": {"batch.kubernetes.io/controller-uid": "other", "controller-uid": "other"}},
    {"metadata.name": "A_b"},
    {"metadata.name": "a" * 64},
    {"metadata.name": "a.b.c"},
]

CONDITION = {"type": "X", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastProbeTime": "2026-01-01T00:00:00Z"}
START, END, EARLY = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2025-01-01T00:00:00Z"


def holding(*kinds: str, **more: Any) -> dict[str, Any]:
    fields = {f"status.{name}": value for name, value in more.items()}
    return {"status.conditions": [{**CONDITION, "type": kind} for kind in kinds], **fields}


COMPLETE = holding("SuccessCriteriaMet", "Complete", startTime=START, completionTime=END)
FAILED = holding("FailureTarget", "Failed", startTime=START)

STATUS: list[dict[str, Any]] = [
    *({f"status.{name}": -1} for name in ("active", "succeeded", "failed", "ready", "terminating")),
    {"status.ready": 1, "status.active": 1},
    {"status.ready": 2, "status.active": 1},
    {"status.uncountedTerminatedPods": {"succeeded": ["a", "a"], "failed": ["", "a"]}},
    {"status.uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b"]}},
    COMPLETE,
    FAILED,
    holding("SuccessCriteriaMet", "Complete", "Failed", "FailureTarget", startTime=START, completionTime=END),
    holding("Complete", "Failed", startTime=START, completionTime=END),
    holding("SuccessCriteriaMet", "Complete", "FailureTarget", startTime=START, completionTime=END),
    holding("SuccessCriteriaMet", "Failed", "FailureTarget", startTime=START),
    holding("SuccessCriteriaMet", "FailureTarget"),
    holding("SuccessCriteriaMet", "Failed", startTime=START),
    holding("SuccessCriteriaMet"),
    holding("Failed", startTime=START),
    holding("Failed"),
    holding("Complete", startTime=START, completionTime=END),
    holding("SuccessCriteriaMet", "Complete", startTime=START),
    holding("SuccessCriteriaMet", "Complete"),
    holding("SuccessCriteriaMet", "Complete", completionTime=END),
    holding("SuccessCriteriaMet", "Complete", startTime=END, completionTime=START),
    holding("SuccessCriteriaMet", "Complete", startTime=START, completionTime=START),
    {"status.completionTime": END},
    {"status.completionTime": END, "status.startTime": START},
    {"status.completionTime": START, "status.startTime": END},
    {**COMPLETE, "status.active": 1},
    {**FAILED, "status.active": 1},
    {**COMPLETE, "status.terminating": 1},
    {**FAILED, "status.terminating": 1},
    {**COMPLETE, "status.uncountedTerminatedPods": {"succeeded": ["a"]}},
    {**FAILED, "status.uncountedTerminatedPods": {"failed": ["a"]}},
    {**COMPLETE, "status.uncountedTerminatedPods": {}},
    {"status.completedIndexes": "0"},
    {"status.failedIndexes": "0"},
    {"status.failedIndexes": ""},
    {"status.conditions": [{"type": "", "status": ""}]},
    {"status.startTime": START},
]

INDEXES = [
    *({"status.completedIndexes": text} for text in ("0,2", "4", "x", "1-0", "1-2-3", "1,0", "")),
    *({"status.failedIndexes": text} for text in ("0,2", "4", "x", "1-0", "1-2-3", "1,0", "")),
    *({"status.completedIndexes": done, "status.failedIndexes": lost} for done, lost in (("0,2", "1,3"), ("0,2", "2,3"), ("0-2", "1"), ("2", "0-3"), ("x,1", "1"), ("0-1", "2-3"), ("1-3", "0-1"))),
    {"status.failed": 1},
    holding("Failed", failedIndexes="0", startTime=START),
    {"spec.completions": 2, "status.succeeded": 2},
]

SUSPENDED = {"type": "Suspended", "status": "True"}
TEMPLATE = "spec.template.spec"

STATES = [
    State(status_update=STATUS),
    State(base=INDEXED, status_update=INDEXES),
    State(base={"spec.completionMode": "Indexed"}, status_update=[{"status.failedIndexes": "1"}, {"status.failedIndexes": ""}]),
    State(base={"spec.suspend": True, "spec.completions": 0}, status_update=[holding("SuccessCriteriaMet", "Complete", completionTime=END), {**holding("FailureTarget", "Failed")}]),
    State(base={"spec.completionMode": "Indexed", "spec.successPolicy.rules": [{"succeededCount": 1}]}, status_update=[holding("Complete", startTime=START, completionTime=END), COMPLETE]),
    State(
        status={**COMPLETE, "status.succeeded": 3, "status.failed": 2},
        status_update=[
            {"status.conditions": []},
            {"status.conditions[0].status": "False"},
            {"status.conditions[1].status": "False"},
            {"status.conditions[1].status": "Unknown"},
            {"status.succeeded": 2},
            {"status.failed": 1},
            {"status.completionTime": START},
            {"status.completionTime": None},
            {"status.startTime": EARLY},
            {"status.startTime": None},
            {"status.active": 1},
            {"status.terminating": 1},
            {"status.uncountedTerminatedPods": {"succeeded": ["a"]}},
            {"status.ready": 1},
            {"status.conditions[2]": {**CONDITION, "type": "FailureTarget"}},
            {"status.conditions[2]": {**CONDITION, "type": "Failed"}},
        ],
        update=[{"metadata.labels.a": "b"}, {"spec.suspend": True}, {"spec.activeDeadlineSeconds": 4}],
    ),
    State(
        status={**FAILED, "status.failed": 2},
        status_update=[
            {"status.conditions": []},
            {"status.conditions[0].status": "False"},
            {"status.conditions[1].status": "False"},
            {"status.failed": 1},
            {"status.active": 1},
            {"status.startTime": None},
            {"status.conditions[2]": {**CONDITION, "type": "SuccessCriteriaMet"}},
            {"status.conditions[2]": {**CONDITION, "type": "Complete"}, "status.completionTime": END},
        ],
    ),
    State(status=holding("SuccessCriteriaMet", startTime=START), status_update=[{"status.conditions": []}, {"status.conditions[0].status": "False"}, {"status.startTime": EARLY}, {"status.startTime": None}]),
    State(
        base={"spec.completionMode": "Indexed", "spec.completions": 2},
        status={"status.succeeded": 2, "status.failed": 1, "status.completedIndexes": "0,1"},
        status_update=[{"status.succeeded": 1}, {"status.failed": 0}, {"status.completedIndexes": "9"}],
        update=[{"spec.completions": 3}, {"spec.completions": 3, "spec.parallelism": 3}, {"spec.completions": None}, {"spec.parallelism": 0, "spec.completions": 0}],
    ),
    State(
        base={"spec.suspend": True},
        status={"status.startTime": START, "status.conditions": [{**CONDITION, **SUSPENDED}]},
        status_update=[{"status.startTime": END}, {"status.startTime": END, "status.conditions[0].status": "False"}, {"status.startTime": None}],
        update=[
            {f"{TEMPLATE}.nodeSelector": {"a": "b"}},
            {f"{TEMPLATE}.tolerations": [{"operator": "Exists"}]},
            {f"{TEMPLATE}.schedulingGates": [{"name": "a.b/c"}]},
            {f"{TEMPLATE}.affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
            {f"{TEMPLATE}.affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
            {"spec.template.metadata.labels.more": "b"},
            {"spec.template.metadata.annotations.more": "b"},
            {f"{TEMPLATE}.containers[0].resources": {"requests": {"cpu": "1"}}},
            {f"{TEMPLATE}.initContainers[0].resources": {"limits": {"cpu": "1"}}},
            {f"{TEMPLATE}.containers[0].image": "other"},
            {f"{TEMPLATE}.containers[1]": {"name": "d", "image": "i"}},
            {f"{TEMPLATE}.containers[0].name": "other", f"{TEMPLATE}.containers[0].resources": {"requests": {"cpu": "1"}}},
            {"spec.suspend": False, f"{TEMPLATE}.nodeSelector": {"a": "b"}},
        ],
    ),
    State(base={"spec.suspend": True}, status={"status.startTime": START, "status.active": 1}, update=[{f"{TEMPLATE}.nodeSelector": {"a": "b"}}]),
    State(
        base={"spec.podFailurePolicy.rules": [codes()], **INDEXED, "spec.managedBy": "a.b/c"},
        update=[
            {"spec.completions": 5},
            {"spec.completions": 5, "spec.parallelism": 5},
            {"spec.parallelism": 5},
            {"spec.completionMode": "NonIndexed"},
            {"spec.completionMode": None},
            {"spec.backoffLimitPerIndex": 2},
            {"spec.backoffLimitPerIndex": None},
            {"spec.backoffLimit": 2},
            {"spec.maxFailedIndexes": 2},
            {"spec.podFailurePolicy.rules": []},
            {"spec.podFailurePolicy": None},
            {"spec.successPolicy.rules": [{"succeededCount": 1}]},
            {"spec.managedBy": "a.b/d"},
            {"spec.managedBy": None},
            {"spec.selector.matchLabels.a": "b"},
            {"spec.selector": None},
            {"spec.manualSelector": True},
            {"spec.template.metadata.labels": {}},
            {"spec.template.metadata.labels[job-name]": "other"},
            {f"{TEMPLATE}.containers[0].image": "other"},
            {f"{TEMPLATE}.nodeSelector": {"a": "b"}},
            {"spec.podReplacementPolicy": "TerminatingOrFailed"},
            {"spec.ttlSecondsAfterFinished": -1, "spec.suspend": True},
            {"spec.parallelism": -1},
        ],
    ),
]

tell_of("jobs", "batch/v1/jobs", JOB, create=CREATE)
tell_of("jobs_status", "batch/v1/jobs", JOB, states=STATES)

CRON: dict[str, Any] = {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": POD}}}}}
SCHEDULES = (
    "",
    "x",
    "* * * *",
    "* * * * * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * 32 * *",
    "* * * 13 * ",
    "* * * jan-mar *",
    "* * * * sun",
    "* * * * 7",
    "* * * * 8",
    "1-2-3 * * * *",
    "1/2/3 * * * *",
    "5-2 * * * *",
    "*/0 * * * *",
    "*/60 * * * *",
    "-1 * * * *",
    "a * * * *",
    "* * * foo *",
    "1,2 * * * *",
    "1,,2 * * * *",
    "? * ? * ?",
    "@daily",
    "@hourly",
    "@yearly",
    "@never",
    "@every 1h",
    "@every 1x",
    "@every",
    "@every 0s",
    "TZ=UTC * * * * *",
    "CRON_TZ=UTC * * * * *",
    "TZ=Nope/Zone * * * * *",
    "TZ=UTC",
    "TZ=",
    "TZ=../x * * * * *",
    "0 0 31 2 *",
    "10/5 * * * *",
    "10-20/5 * * * *",
    "*/-5 * * * *",
    "999999999999999999999 * * * *",
    "* * * * mon-fri",
    "1-a * * * *",
    "CRON_TZ= * * * * *",
    "TZ=Local * * * * *",
)
ZONES = ("", "Etc/UTC", "local", "Local", "UTC", "Nope/Zone", "../etc", "a/./b", "-a/b", "A b", "Europe/Berlin", "Etc/GMT+12", "a" * 15)

tell_of(
    "cronjobs",
    "batch/v1/cronjobs",
    CRON,
    create=[
        *({"spec.schedule": schedule} for schedule in SCHEDULES),
        *({"spec.timeZone": zone} for zone in ZONES),
        {"spec.schedule": "TZ=UTC * * * * *", "spec.timeZone": "Etc/UTC"},
        {"spec.concurrencyPolicy": "Nope"},
        *({f"spec.{name}": -1} for name in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")),
        {"metadata.name": "a" * 52},
        {"metadata.name": "a" * 53},
        {"metadata.name": "a.b"},
        {"spec.jobTemplate.spec.manualSelector": True},
        {"spec.jobTemplate.spec.manualSelector": False},
        {"spec.jobTemplate.spec.selector": {"matchLabels": {"a": "b"}}},
        {"spec.jobTemplate.spec.template.spec.restartPolicy": "Always"},
        {"spec.jobTemplate.spec.parallelism": -1},
        {"spec.jobTemplate.spec.completionMode": "Indexed"},
        {"spec.jobTemplate.spec.completionMode": "Indexed", "spec.jobTemplate.spec.completions": 100_001, "spec.jobTemplate.spec.parallelism": 10_001},
        {"spec.jobTemplate.metadata.labels": {"no key": "x"}},
        {"spec.jobTemplate": None},
        {"spec.schedule": None},
    ],
    states=[
        State(
            update=[
                {"spec.schedule": "TZ=UTC * * * * *"},
                {"spec.schedule": "x"},
                {"spec.timeZone": "Nope"},
                {"spec.timeZone": ""},
                {"spec.concurrencyPolicy": "Nope"},
                {"spec.jobTemplate.spec.template.spec.containers[0].image": ""},
                {"spec.successfulJobsHistoryLimit": -1},
                {"spec.jobTemplate.spec.completionMode": "Indexed", "spec.jobTemplate.spec.completions": 100_001, "spec.jobTemplate.spec.parallelism": 10_001},
            ],
            status_update=[{"status.active": [{"name": ""}]}, {"status.lastScheduleTime": "2026-01-01T00:00:00Z"}, {"spec.schedule": "x"}],
        )
    ],
)
