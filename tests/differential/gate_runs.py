"""Feature gates drawn by chance, on and off: the reference, started with them, against fakekube with the same.

    python -m tests.differential.gate_runs --oracle /tmp/oracle137 --minor 1.37 --seed 7 [--count 3] [NAMES…] [-v 30]

Each seed draws a value of `--runtime-config`, and turns about a third of the gates that the minor has; dependent gates only
where the others let them. NAMES are modules of `scenarios/` or `MODE:SEED:COUNT`; by default the tables of rules, and random
stories of all kinds. `--gates A=true,B=false` (`--gates none`) and `--config api/all=true` replace what is drawn. The status is 1 if
anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shlex
import sys
from collections.abc import Mapping

from fakekube.apimachinery import data, features
from tests.benchmarks.sides import theirs
from tests.differential import recordings
from tests.differential.recordings import Recording

#: Gates that stay: programs that read etcd or watch need them as they are, or the server does not start without more flags.
_KEPT = (
    "AllAlpha", "AllBeta", "KMSv1", "WatchListClient", "ClientsPreferCBOR", "ClientsAllowCBOR", "InformerResourceVersion", "AtomicFIFO",
    "UnlockWhileProcessingFIFO", "InOrderInformers", "InOrderInformersBatchProcess", "StorageVersionAPI", "APIServerIdentity",
    "APIServingWithRoutine", "CoordinatedLeaderElection",
)  # fmt: skip
_CONFIGS = ("", "api/all=true", "api/beta=true", "api/all=true")
_SHARE = 0.35
_TOKEN = "admin-token"
#: So many stories are told to the reference at once.
_JOBS = 6
_TABLES = (
    "minors",
    "newer",
    "alpha",
    "gates",
    "workloads",
    "podgroups",
    "pods",
    "core",
    "groups",
    "batch",
    "actions",
    "edits",
    "boundaries",
    "branches",
)
_MODES = ("gated:{}:74", "edits:{}:140", "subresources:{}:60", "applies:{}:40", "merges:{}:30", "tables:{}:40", "pods:{}:20")


def draw_gates(minor: str, seed: str) -> tuple[dict[str, bool], str]:
    """Returns the gates of a seed, and its `--runtime-config`."""
    rng = random.Random(f"{minor}.{seed}")
    config = rng.choice(_CONFIGS)
    default = features.emulation(minor).gates
    names = [name for name in data.minor(minor).features if name not in _KEPT and not default.spec(name).locked]
    gates: dict[str, bool] = {}
    for name in rng.sample(names, round(len(names) * _SHARE)):
        trial = {**gates, name: not default.spec(name).default}
        with contextlib.suppress(features.FeatureGateError):
            features.FeatureGates(minor, minor, trial)
            gates = trial
    # Their admission plugins never become ready where the APIs are not served.
    needs_apis = any(gates.get(name) for name in ("MutatingAdmissionPolicy", "GenericWorkload"))
    return gates, "api/all=true" if needs_apis else config


def serve_command(oracle: str, gates: Mapping[str, bool], config: str) -> str:
    """Returns the command of a reference with gates, for `sides.theirs`."""
    words = [oracle, "serve", "--dir", "{dir}", "--port", "{port}", "--"]
    words += [f"--feature-gates={','.join(f'{name}={json.dumps(on)}' for name, on in gates.items())}"] if gates else []
    words += [f"--runtime-config={config}"] if config else []
    return shlex.join(words)


def main() -> int:
    """The command; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--minor", default=list(data.RELEASES)[-1])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1, help="so many seeds, one after the other")
    parser.add_argument("--gates", default="")
    parser.add_argument("--config", default=None)
    parser.add_argument("-k", dest="word", default="")
    parser.add_argument("-v", dest="verbose", type=int, default=100)
    options = parser.parse_intermixed_args()
    data.find_spec = lambda *_: None  # no descriptions of kubernetes-validate
    wrong = 0
    for seed in range(options.seed, options.seed + options.count):
        gates, config = draw_gates(options.minor, str(seed))
        if options.gates:
            gates = {name: on == "true" for name, _, on in (one.partition("=") for one in options.gates.split(",")) if on}
        config = config if options.config is None else options.config
        print(f"{options.minor} {seed}: {','.join(f'{n}={json.dumps(v)}' for n, v in gates.items())} {config}", flush=True)
        names = options.names or [f"rules_{name}" for name in _TABLES] + [mode.format(f"g{seed}") for mode in _MODES]
        with theirs(serve_command(options.oracle, gates, config), _TOKEN) as side:
            url = side.url.replace("://", f"://{_TOKEN}@")
            for name in names:
                recording = Recording(
                    name, name, version=options.minor, feature_gates=gates, everything=True, options={"runtime_config": config}
                )
                found = recording.scenarios(options.word)
                wanted = recordings.play_to_server(recording, found, url, _JOBS)
                result = recordings.score_in_process(recording, wanted)
                print(f"{options.minor} {seed} {name}: {result.report(options.verbose)}", flush=True)
                wrong += len(result.differences)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
