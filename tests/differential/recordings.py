"""The recordings in `fixtures/recorded`: what each was played to, and how it is read, written and played.

A recording is the exchanges of the scenarios of one module with the reference, kube-apiserver of its minor, which was started
with the flags that stand beside it.
"""

from __future__ import annotations

import functools
import gzip
import json
import traceback
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fakekube import Cluster
from fakekube.apimachinery import data
from fakekube.base.clock import Clock
from fakekube.cluster import TOKEN
from tests.differential import certificates
from tests.differential.client import Client, Exchange
from tests.differential.comparison import Score, differences
from tests.differential.normaliser import normalise
from tests.differential.pacing import paced_by
from tests.differential.registry import Scenario, scenarios_of
from tests.differential.transports import HOST, PORT, HttpTransport, InProcessTransport, Transport

PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / "fixtures" / "recorded"

#: Stands for the path of a request that a scenario could not make.
STOPPED = "scenario stopped"

Transcripts = dict[str, list[Exchange]]
"""By scenario."""
Open = Callable[[], Transport]
"""Opens a way to a server for one scenario."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One file of `fixtures/recorded`."""

    name: str
    module: str = ""
    """The scenarios (`registry.scenarios_of`), if they are not called as the file is."""
    word: str = ""
    """Only scenarios with this word in their names are played."""
    features: frozenset[str] = frozenset()
    """What the server has and most have not (`registry.Scenario.needs`)."""
    flags: str = ""
    """Of kube-apiserver, when it is recorded."""
    profile: str = "apiserver"
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    compaction_interval: float | None = None
    """Seconds; of fakekube, beside `profile` and `feature_gates`."""
    version: str = "1.36"
    """The minor of the reference, and of fakekube."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Other options of fakekube's Cluster: what `flags` say to kube-apiserver."""
    everything: bool = False
    """The stories are drawn from the schemas of a server with all gates and APIs."""

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.json.gz"

    def read(self) -> Transcripts:
        """What was recorded. Raises OSError."""
        with gzip.open(self.path, "rt") as file:
            transcripts: Transcripts = json.load(file)
        return transcripts

    def write(self, transcripts: Transcripts) -> None:
        """Replace what was recorded; the same transcripts give the same bytes. Raises ValueError if a scenario did not come to its end."""
        stopped = [
            f"{name}: {one['body']}" for name, them in transcripts.items() for one in them if one["request"]["path"] == STOPPED
        ]
        if stopped:
            raise ValueError(f"{self.name} is not recorded: {stopped}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.GzipFile(self.path, "wb", mtime=0) as file:
            file.write(json.dumps(transcripts, separators=(",", ":")).encode())

    def scenarios(self, word: str = "") -> dict[str, Scenario]:
        """The scenarios that belong to this recording and have the word in their names."""
        found = scenarios_of(self.module or self.name, self.version, self.everything or "AllAlpha" in self.feature_gates)
        return {n: s for n, s in found.items() if word in n and self.word in n and (not s.needs or s.needs in self.features)}

    def _clock(self) -> Clock:
        """Returns a clock of real time, because of the certificates in scenarios; of a fixed time for those with addresses."""
        return Clock.standing_at(_CORE_TIME) if self.module == "rules_core" else Clock()

    @contextmanager
    def cluster(self) -> Iterator[Transport]:
        """A fresh cluster of ours, as the recording wants it, with its clock held; its controllers work, if it has any."""
        if "certificates" in self.features:
            folder = _certificates()
            with Cluster(profile=self.profile, version=self.version, **_trusting(folder)) as cluster:
                yield HttpTransport(cluster.url.replace("://", f"://{TOKEN}@"), folder)
            return
        cluster = Cluster(
            profile=self.profile,
            version=self.version,
            feature_gates=self.feature_gates,
            compaction_interval=self.compaction_interval,
            seed=zlib.crc32(self.name.encode()),  # an allocated address is not, by chance, one that the scenario sends itself
            clock=self._clock(),
            **self.options,
        )
        cluster.clock.hold()
        cluster._settings.too_large_resource_version_wait = _REVISION_WAIT
        if self.profile == "cluster":
            cluster.start()
        try:
            yield InProcessTransport(cluster)
        finally:
            cluster.stop()


#: The time for scenarios that send addresses: times in bodies are equal in all runs, and so are the addresses that are drawn for them.
_CORE_TIME = datetime(2026, 11, 1, tzinfo=UTC)

#: Seconds of real time that a read of a future revision waits in a cluster of this process; 3 in the reference.
_REVISION_WAIT = 0.3


@functools.cache
def _certificates() -> Path:
    """A folder that `certificates.make` filled."""
    folder = certificates.temporary_folder("recorded-")
    certificates.make(folder)
    return folder


def _trusting(folder: Path) -> dict[str, Any]:
    """The flags of `certificates`, but for the front proxy's own certificate, which no scenario needs."""
    return {
        "tls": True,
        "authorization_mode": ("RBAC",),
        "client_ca_file": folder / "clients.crt",
        "requestheader_client_ca_file": folder / "front.crt",
        "requestheader_allowed_names": ("front-proxy",),
        "requestheader_username_headers": ("X-Remote-User",),
        "requestheader_group_headers": ("X-Remote-Group",),
        "requestheader_uid_headers": ("X-Remote-Uid",),
        "requestheader_extra_headers_prefix": ("X-Remote-Extra-",),
    }


_COMPACTS: dict[str, Any] = {
    "word": "expired",
    "features": frozenset({"compaction"}),
    "flags": "--etcd-compaction-interval=5s",
    "compaction_interval": 5.0,
}
_CONTROLLED: dict[str, Any] = {"word": "controlled", "features": frozenset({"controllers"}), "profile": "cluster"}

#: Modules of tables (`rule_tables`): `scenarios/rules_….py`.
_RULES = ("batch", "pods", "core", "groups", "actions", "extensions", "edits")

GATES = {
    "CoordinatedLeaderElection": True,
    "CrossNamespaceVolumeDataSource": True,
    "DRAListTypeAttributes": True,
    "DRANodeAllocatableResources": True,
    "InPlacePodLevelResourcesVerticalScaling": False,
    "InPlacePodVerticalScalingInitContainers": False,
    "StrictIPCIDRValidation": False,
    "TaintTolerationComparisonOperators": True,
    "TokenRequestServiceAccountUIDValidation": False,
    "WatchList": False,
}


def _gate_flag(gates: Mapping[str, bool]) -> str:
    return f"--feature-gates={','.join(f'{gate}={json.dumps(on)}' for gate, on in gates.items())}"


def _with_gates(
    name: str,
    module: str,
    minor: str,
    gates: Mapping[str, bool],
    config: str,
    *,
    word: str = "",
    flags: Sequence[str] = (),
    **options: Any,
) -> Recording:
    """A recording of a minor with feature gates and a runtime config, and other `flags`, which `options` say to our cluster."""
    return Recording(
        name,
        module,
        word,
        flags=" ".join((*([_gate_flag(gates)] if gates else []), f"--runtime-config={config}", *flags)),
        version=minor,
        feature_gates=gates,
        options={"runtime_config": config, **options},
    )


def _of_declared_rules() -> Iterator[Recording]:
    """The recordings of rules that types of 1.37 declare, with the gate and without it."""
    for name, gates in (("declared", {}), ("by-hand", {"DeclarativeValidationBeta": False})):
        yield _with_gates(f"v1.37/rules/{name}", "rules_declared", "1.37", gates, "api/all=true")


def _of_node_features() -> Iterator[Recording]:
    """The recordings of rules of gates that nodes declare or kubelets need, with the gates and without them."""
    gates = (
        "AtomicWriteVolumeUserFields",
        "CSIVolumeHealth",
        "DRADeviceCompatibilityGroups",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAPartitionableDevicesType",
        "DRAResourcePoolStatus",
        "InPlacePodVerticalScalingMemoryBackedVolumes",
    )
    flags = ["--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction"]
    options = {"authorization_mode": ("RBAC", "Node"), "enable_admission_plugins": "NodeRestriction"}
    by_hand = {"DRADerivedAttributes": True, "DeclarativeValidationBeta": False}
    for name, on, word in (
        ("node-features", dict.fromkeys(gates, True), ""),
        ("node-features-off", {}, ""),
        ("derived-attributes-by-hand", by_hand, "requests_for_devices"),
    ):
        config = ",".join(f"resource.k8s.io/{version}=true" for version in ("v1alpha3", "v1beta1", "v1beta2"))
        yield _with_gates(f"v1.37/rules/{name}", "rules_node_features", "1.37", on, config, word=word, flags=flags, **options)


def _of_values() -> Iterator[Recording]:
    """The recordings of values at the edges, also with other gates."""
    yield Recording("rules/values", "rules_values")
    yield Recording("v1.37/rules/values", "rules_values", version="1.37")
    yield Recording("v1.35/rules/schemas", "rules_values", "metadata_in_schemas", version="1.35")
    yield Recording("rules/schemas", "rules_schemas")
    yield Recording("v1.37/rules/schemas", "rules_schemas", version="1.37")
    on = ("CSIVolumeHealth", "InPlacePodVerticalScalingSchedulerPreemption", "StatefulSetRecreateStrategy")
    off = ("MatchLabelKeysInPodTopologySpreadSelectorMerge", "StrictIPCIDRValidation")
    gates = {**dict.fromkeys(on, True), **dict.fromkeys(off, False)}
    yield Recording("v1.37/rules/values-gates", "rules_values", version="1.37", flags=_gate_flag(gates), feature_gates=gates)


def _of_older_gates() -> Iterator[Recording]:
    """The recordings of gates that are locked in later minors."""
    off = {
        **dict.fromkeys(("JobManagedBy", "DRAResourceClaimDeviceStatus", "AggregatedDiscoveryRemoveBetaType"), False),
        "UserNamespacesPodSecurityStandards": True,
    }
    selectors = dict.fromkeys(("AuthorizeWithSelectors", "AuthorizeNodeWithSelectors"), False)
    for minor, gates in (
        ("1.33", {**selectors, "JobPodReplacementPolicy": False, "ListFromCacheSnapshot": True, "ImageVolume": True}),
        ("1.34", {"ListFromCacheSnapshot": False, "DRADeviceBindingConditions": True, "ImageVolume": True}),
    ):
        yield _with_gates(
            f"v{minor}/rules/older-gates",
            "rules_older_gates",
            minor,
            {**off, **gates},
            "api/all=true",
            flags=["--authorization-mode=Node"],
            authorization_mode=("RBAC", "Node"),
        )


def _of_flags() -> Iterator[Recording]:
    """The recordings of `rules_flags`, each with the flags of some of its scenarios."""
    ranges, on, off = "10.0.0.0/28,fd00::/124", "NamespaceAutoProvision,NamespaceExists", "NamespaceLifecycle"
    yield Recording(
        "v1.37/rules/small-ranges", "rules_flags", "services", version="1.37", flags=f"--service-cluster-ip-range={ranges}",
        options={"service_cluster_ip_range": ranges},
    )  # fmt: skip
    yield Recording(
        "v1.37/rules/service-updates", "rules_service_updates", version="1.37", flags=f"--service-cluster-ip-range={_RANGES}",
        options={"service_cluster_ip_range": _RANGES},
    )  # fmt: skip
    yield Recording(
        "v1.37/rules/namespaces", "rules_flags", "namespaces", version="1.37",
        flags=f"--enable-admission-plugins={on} --disable-admission-plugins={off}",
        options={"enable_admission_plugins": on, "disable_admission_plugins": off},
    )  # fmt: skip
    everything = {"AllAlpha": True, "AllBeta": True}
    yield _with_gates("v1.37/rules/alpha-versions", "rules_flags", "1.37", everything, "api/all=true", word="alpha")
    generic = {"GenericWorkload": True}
    yield _with_gates(
        "v1.36/rules/generic-workloads", "rules_flags", "1.36", generic, "scheduling.k8s.io/v1alpha2=true", word="workloads"
    )


def _of_workloads(minor: str, served: str, *gates: str) -> Iterator[Recording]:
    """The recordings of workloads of a minor, which serves them in that version."""
    on = dict.fromkeys((*gates, "DRAWorkloadResourceClaims", "GenericWorkload", "TopologyAwareWorkloadScheduling"), True)
    for name, word in (("workloads", ""), ("podgroups", served)):
        yield _with_gates(f"v{minor}/rules/{name}", f"rules_{name}", minor, on, f"scheduling.k8s.io/{served}=true", word=word)
    if "CompositePodGroup" in on:
        composites = f"scheduling.k8s.io/{_COMPOSITES}=true"
        yield _with_gates(f"v{minor}/rules/composites", "rules_podgroups", minor, on, composites, word=_COMPOSITES)


#: The version that has composite groups.
_COMPOSITES = "v1alpha3"


_SHARDED = {"ShardedListAndWatch": True}
_RANGES = "10.0.0.0/24,fd00::/108"
OPTIONAL_PLUGINS = "AlwaysPullImages,DenyServiceExternalIPs,ExtendedResourceToleration,LimitPodHardAntiAffinityTopology,PodNodeSelector,PodTolerationRestriction"
CONFIGURED_PLUGINS = "EventRateLimit,PodNodeSelector,PodTolerationRestriction"
CONFIGURATION = "tests/differential/admission.yaml"
_PLUGINS = "NodeRestriction,OwnerReferencesPermissionEnforcement,PodTolerationRestriction"

RECORDINGS = {
    recording.name: recording
    for recording in (
        *map(Recording, (
            "lists", "watches", "writes", "deletion", "options", "patches", "apply", "validation", "custom_resources", "definitions",
            "cel", "negotiation", "discovery", "access", "identities", "webhooks", "policies", "aggregation", "corners", "seams", "quotas", "corridors",
        )),
        *(Recording(f"rules/{name}", f"rules_{name}") for name in _RULES),
        Recording("rules/metadata", "rules_metadata"),
        Recording("rules/admission", "rules_admission", flags=f"--enable-admission-plugins={_PLUGINS}", options={"enable_admission_plugins": _PLUGINS}),
        Recording("v1.37/rules/boundaries", "rules_boundaries", version="1.37"),
        Recording("rules/plugins", "rules_plugins", flags=f"--enable-admission-plugins={OPTIONAL_PLUGINS}", options={"enable_admission_plugins": OPTIONAL_PLUGINS}),
        Recording("rules/dual-stack", "rules_core", word="services", flags=f"--service-cluster-ip-range={_RANGES}", options={"service_cluster_ip_range": _RANGES}),
        Recording("rules/gates", "rules_gates", flags=_gate_flag(GATES), feature_gates=GATES),
        *(Recording(f"v1.37/rules/{name}", f"rules_{name}", version="1.37") for name in _RULES if name != "extensions"),
        Recording(
            "rules/configured", "rules_configured", flags=f"--enable-admission-plugins={CONFIGURED_PLUGINS} --admission-control-config-file={CONFIGURATION}",
            options={"enable_admission_plugins": CONFIGURED_PLUGINS, "admission_control_config_file": PROJECT / CONFIGURATION},
        ),
        Recording("v1.37/rules/branches", "rules_branches", version="1.37"),
        *(Recording(f"rules/{name}", f"rules_{name}") for name in ("requests", "paths")),
        Recording("v1.37/rules/requests", "rules_requests", version="1.37"),
        *_of_values(),
        *_of_flags(),
        *(Recording(f"v1.37/rules/{name}", f"rules_{name}", version="1.37") for name in ("newer", "paths", "bounds", "operands", "refusals")),
        *(Recording(f"v{minor}/rules/minors", "rules_minors", version=minor) for minor in data.RELEASES),
        *(Recording(f"v{minor}/rules/differing", "rules_differing", version=minor) for minor in ("1.35", "1.36")),
        *(
            Recording(f"v{minor}/rules/binaries", "rules_binaries", version=minor, flags="--feature-gates=CBORServingAndStorage=true", feature_gates={"CBORServingAndStorage": True})
            for minor in ("1.36", "1.37")
        ),
        _with_gates("v1.37/rules/alpha", "rules_alpha", "1.37", {"AllAlpha": True, "AllBeta": True}, "api/all=true"),
        *(_with_gates(f"v{minor}/rules/priorities", "rules_alpha", minor, {}, "api/all=true", word="priorities") for minor in ("1.34", "1.35", "1.36")),
        _with_gates("v1.37/rules/halves", "rules_halves", "1.37", {"AllAlpha": True, "AllBeta": True}, "api/all=true"),
        Recording("v1.34/rules/halves", "rules_halves", "halves_of", version="1.34"),
        _with_gates("v1.37/rules/crossings", "rules_crossings", "1.37", {"AllAlpha": True, "AllBeta": True}, "api/all=true"),
        _with_gates("v1.37/rules/metadata-all", "rules_metadata_all", "1.37", {"AllAlpha": True, "AllBeta": True}, "api/all=true"),
        _with_gates("v1.37/rules/storageversions", "rules_storageversions", "1.37", {}, "api/all=true"),
        *_of_declared_rules(),
        *_of_node_features(),
        Recording("v1.33/rules/differences", "rules_differences", version="1.33"),
        *_of_older_gates(),
        _with_gates(
            "v1.35/rules/workloads", "rules_first_workloads", "1.35", dict.fromkeys(("GenericWorkload", "GangScheduling"), True),
            "scheduling.k8s.io/v1alpha1=true",
        ),
        _with_gates(
            "v1.35/rules/pod-certificates", "rules_alpha", "1.35", {"PodCertificateRequest": True}, "certificates.k8s.io/v1beta1=true",
            word="pod_certificate_requests",
        ),
        *_of_workloads("1.36", "v1alpha2", "GangScheduling", "WorkloadAwarePreemption"),
        *_of_workloads("1.37", "v1beta1", "CompositePodGroup", "PodGroupPreemptionPolicy"),
        *(
            _with_gates(
                f"v{minor}/rules/jobs", "rules_jobs", minor, dict.fromkeys(("GenericWorkload", "WorkloadWithJob"), True), f"scheduling.k8s.io/{served}=true", word=word
            )
            for minor, served, word in (("1.36", "v1alpha2", "parallelism"), ("1.37", "v1beta1", "scheduling"))
        ),
        *(Recording(f"v1.37/{name}", name, version="1.37") for name in ("quotas", "corridors")),
        Recording("random-open", "random:open:250"),
        Recording(
            "cbor/negotiation", "negotiation", flags="--feature-gates=CBORServingAndStorage=true",
            feature_gates={"CBORServingAndStorage": True},
        ),
        *(
            Recording(f"v{minor}/sharding", "sharding", version=minor, flags=_gate_flag(_SHARDED), feature_gates=_SHARDED)
            for minor in ("1.36", "1.37")
        ),
        Recording("compacting/lists", "lists", **_COMPACTS),
        Recording("compacting/watches", "watches", **_COMPACTS),
        Recording("controlled/identities", "identities", **_CONTROLLED),
        Recording("controlled/policies", "policies", **_CONTROLLED),
        Recording("certified/identities", "identities", "certificates", frozenset({"certificates"})),
    )
}  # fmt: skip


def play(scenario: Scenario, transport: Transport, features: frozenset[str], identity: str = "") -> list[Exchange]:
    """The exchanges of one scenario with one server; `identity` is that of its client."""
    with paced_by(transport.pace):
        client = Client(transport, features, identity)
        try:
            scenario.play(client)
        except Exception:  # a scenario that trips over an odd answer still shows what it saw
            problem = traceback.format_exc(limit=2).splitlines()[-1]
            request = {"method": "-", "path": STOPPED, "query": None, "body": None}
            client.transcript.append({"request": request, "status": 0, "headers": {}, "body": problem})
        finally:
            if not isinstance(transport, InProcessTransport):  # whose cluster is thrown away
                client.delete(f"/api/v1/namespaces/{client.ns}", silent=True)
            client.close()
    text = json.dumps(client.transcript).replace(client.id, "0" * 8)
    if (client.host, client.port) != (HOST, PORT):
        text = text.replace(f"{client.host}:{client.port}", f"{HOST}:{PORT}")
    transcript: list[Exchange] = json.loads(text)
    return transcript


def play_to_server(
    recording: Recording, scenarios: Mapping[str, Scenario], url: str, jobs: int = 4, certificates: Path = Path()
) -> Transcripts:
    """Play scenarios to a server behind a socket, several at once; `certificates` is a folder of client certificates."""
    with ThreadPoolExecutor(jobs) as pool:
        futures = {n: pool.submit(play, s, HttpTransport(url, certificates), recording.features) for n, s in scenarios.items()}
        return {name: future.result() for name, future in futures.items()}


def play_in_process(recording: Recording, scenarios: Mapping[str, Scenario], jobs: int = 8) -> Transcripts:
    """Play each scenario to a fresh cluster in this process; several at once, because some requests wait in real time."""

    def played(name: str) -> list[Exchange]:
        with recording.cluster() as transport:
            # The client is the same in all runs, and so are the addresses that the cluster draws for its requests.
            return play(scenarios[name], transport, recording.features, f"{zlib.crc32(name.encode()):08x}")

    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(scenarios, pool.map(played, scenarios), strict=True))


def mark_unstable(first: Transcripts, second: Transcripts) -> int:
    """Mark the exchanges that a server answers differently from one play to the next, with what differs: they are not compared."""
    count = 0
    for name, exchanges in first.items():
        for exchange, one, other in zip(exchanges, normalise(exchanges), normalise(second[name]), strict=False):
            if found := differences(one, other):
                exchange["unstable"] = f"the reference answers differently when it is asked again: {found[0]}"
                count += 1
    return count


def score(recorded: Transcripts, answered: Transcripts) -> Score:
    """Compare what was answered with what was recorded."""
    result = Score()
    for name, exchanges in recorded.items():
        result.add(name, exchanges, answered.get(name, []))
    return result


def score_in_process(recording: Recording, recorded: Transcripts) -> Score:
    """The score of fakekube. Each scenario is played once: an exchange that may differ is marked in the recording."""
    known = recording.scenarios()
    scenarios = {name: known[name] for name in recorded if name in known}
    return score(recorded, play_in_process(recording, scenarios))
