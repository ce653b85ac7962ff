"""StorageVersions: their names, and what servers say in their status."""

from __future__ import annotations

from typing import Any

from tests.differential.rule_tables import Edit, State, tell

# fmt: off

SERVERS = "status.storageVersions"
SERVER: dict[str, Any] = {"apiServerID": "a", "encodingVersion": "v1", "decodableVersions": ["v1", "apps/v2"], "servedVersions": ["v1"]}
CONDITION: dict[str, Any] = {"type": "AllEncodingVersionsEqual", "status": "True", "reason": "R", "message": "M", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def of_servers(*servers: dict[str, Any], common: str | None = "v1") -> Edit:
    return {SERVERS: list(servers), "status.commonEncodingVersion": common}


tell("storage_versions", "internal.apiserver.k8s.io/v1alpha1/*storageversions", {"metadata": {"name": "{ns}.pods"}, "spec": {}}, create=[
    *({"metadata.name": name} for name in ("pods", "a.pods", "A_.pods", "a.B_", ".pods", "a.", "a..b", "a.1b", f"a.{'b' * 64}")),
    {"status": {"storageVersions": [SERVER]}},
], states=[State(status=of_servers(SERVER), update=[{"metadata.labels": {"a": "b"}}, {"status": {}}, {"metadata.annotations": {"A_ b": "c"}}, {"metadata.resourceVersion": None}], status_update=[
    of_servers(SERVER, common=None), of_servers(SERVER, common="v2"), of_servers(common="v1"), of_servers(common=None), of_servers(SERVER, SERVER), of_servers(SERVER, {**SERVER, "apiServerID": "b"}),
    *(of_servers(SERVER, {**SERVER, "apiServerID": "b", "encodingVersion": "apps/v2"}, common=common) for common in ("v1", None)),
    *(of_servers({**SERVER, "apiServerID": name}) for name in ("", "A_", "a.b")),
    *(of_servers({**SERVER, "encodingVersion": version}, common=version) for version in ("", "apps/v2", "v3", "a/b/c", "/v1", "A_/v1", "a/", "a/V1", "1v")),
    *(of_servers({**SERVER, "decodableVersions": versions}) for versions in (None, [], ["v2"], ["v1", "", "a/b/c", "A_/B_", "a/v1"])),
    *(of_servers({**SERVER, "servedVersions": versions}) for versions in ([], ["v2"], ["apps/v2", "v1"], ["", "a/b/c"])), of_servers({**SERVER, "servedVersions": ["v1"], "decodableVersions": ["v2", "v3"]}),
    *({"status.conditions": conditions} for conditions in (
        [CONDITION], [CONDITION] * 2, [CONDITION, {**CONDITION, "type": "B"}, CONDITION], [{}], [{**CONDITION, "type": "A b"}], [{**CONDITION, "status": "Maybe"}], [{**CONDITION, "status": "a b"}],
        [{**CONDITION, "reason": ""}], [{**CONDITION, "message": ""}],
    )),
    {"metadata.labels": {"a": "b"}, **of_servers(SERVER)},
])], module="rules_storageversions")
