"""Runs `fakekube check` on the programs of this folder, with each defect and without.

    python tests/check/newcomers/matrix.py [--correct] [--only services,…] [--go FOLDER] [--keep FOLDER] [--first-seed 0] [--times 1]

Each program has a switch for its defects: DEFECT=NAME in its environment. One of the rules of a defect has to fail. A correct program
must have no failure and no warning in any rule, with all classes. `--go`: the folder with the built programs of `go/`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent

#: Program → sample and command; {go} is the folder of the built programs in Go.
PROGRAMS = {
    "services": ("services.yaml", ["node", "services.mjs"]),
    "inline": ("inline.yaml", ["perl", "inline.pl"]),
    "world": ("widget.yaml", [sys.executable, "world.py"]),
    "namespaces": ("namespaces.yaml", [sys.executable, "namespaces.py"]),
    "pods": ("pods.yaml", [sys.executable, "pods_raw.py"]),
    "official": ("widget.yaml", [sys.executable, "official.py"]),
    "dyn": ("widget.yaml", ["{go}/dyn"]),
    "rt": ("widget.yaml", ["{go}/rt"]),
    "seals": ("inline.yaml", [sys.executable, "seals.py"]),
    "stamps": ("inline.yaml", [sys.executable, "stamps.py"]),
    "boards": ("widget.yaml", [sys.executable, "boards.py"]),
    "labels": ("widget.yaml", [sys.executable, "labels.py"]),
    "copies": ("inline.yaml", ["bash", "copies.sh"]),
    "tickets": ("inline.yaml", [sys.executable, "tickets.py"]),
    "held": ("inline.yaml", ["node", "ssa.mjs"]),
    "elected": ("inline.yaml", [sys.executable, "elected.py"]),
    "phases": ("widget.yaml", [sys.executable, "phases.py"]),
    "typed": ("inline.yaml", ["{go}/typed"]),
    "approver": ("approvals.yaml", [sys.executable, "approver.py"]),
    "scaler": ("scales.yaml", [sys.executable, "scaler.py"]),
    "registrar": ("volumes.yaml", [sys.executable, "registrar.py"]),
    "tainter": ("nodes.yaml", ["node", "tainter.mjs"]),
    "raw": ("budgets.yaml", ["{go}/raw"]),
    "orders": ("orders.yaml", [sys.executable, "orders.py"]),
    "sweep": ("inline.yaml", ["bash", "sweep.sh"]),
    "guards": ("widget.yaml", ["java", "-XX:TieredStopAtLevel=1", "java/Guards.java"]),
    "duo": ("orders.yaml", ["{go}/duo"]),
    "vaults": ("widget.yaml", [sys.executable, "vaults.py"]),
    "shares": ("inline.yaml", ["node", "shares.mjs"]),
    "quotas": ("namespaces.yaml", ["{go}/quotas"]),
    "ledger": ("mirrored.yaml", [sys.executable, "ledger.py"]),
    "tenants": ("tenants.yaml", ["node", "tenants.mjs"]),
    "fleet": ("mirrored.yaml", ["{go}/fleet"]),
    "sites": ("sites.yaml", [sys.executable, "sites.py"]),
    "batches": ("batches.yaml", ["node", "batches.mjs"]),
    "desk": ("desk.yaml", [sys.executable, "desk.py"]),
    "shelves": ("shelves.yaml", [sys.executable, "shelves.py"]),
    "reloads": ("reloads.yaml", ["{go}/reloads"]),
}

#: Program, defect, and the rules of which one has to fail.
DEFECTS = (
    ("services", "token-once", "A1"),
    ("services", "no-timeout", "W7"),
    ("services", "after-half", "R1"),
    ("services", "relist-always", "W5"),
    ("services", "keeps-expired", "W1,W2"),
    ("services", "exits-on-reset", "W8"),
    ("services", "gone-dies", "W1"),
    ("services", "flat", "W6,R4"),
    ("services", "one-page", "P2"),
    ("services", "no-deletes", "W12,S3"),
    ("services", "number", "V1"),
    ("services", "utf8", "W8"),
    ("services", "splits", "W8"),
    ("services", "first-only", "W8,W5"),
    ("services", "gives-up", "R2"),
    ("services", "retry-flat", "R2"),
    ("services", "conflict-loops", "C6"),
    ("services", "takes-over", "C5"),
    ("services", "blind-put", "C2"),
    ("services", "drops-labels", "C3"),
    ("services", "fatal-404", "C6"),
    ("services", "polls", "N3"),
    ("inline", "dies-500", "R2"),
    ("inline", "ignores-after", "R1"),
    ("inline", "flat-writes", "R2"),
    ("inline", "adopts", "C5"),
    ("inline", "rebuilds", "C3,C4"),
    ("inline", "no-version", "C2"),
    ("inline", "one-try", "C1"),
    ("inline", "force-mark", "C2"),
    ("inline", "stale-mark", "C1"),
    ("inline", "no-pause", "W6"),
    ("inline", "one-page", "P2"),
    ("inline", "waits", "W7"),
    ("inline", "keeps-410", "W1,W2"),
    ("inline", "error-exits", "W4"),
    ("inline", "version-of-list", "W5"),
    ("world", "resends", "R3"),
    ("world", "forgets", "R2,R1"),
    ("world", "steady", "R2"),
    ("world", "no-timeout", "W7"),
    ("world", "same-revision", "W1"),
    ("world", "watch-once", "W5"),
    ("world", "dies-401", "A1"),
    ("world", "hot", "W6"),
    ("namespaces", "manager-pid", "C7"),
    ("namespaces", "timid", "C7"),
    ("namespaces", "no-idle", "W7"),
    ("namespaces", "relist-on-error", "R4"),
    ("namespaces", "dies-500", "W4,R2"),
    ("namespaces", "no-delay", "W6"),
    ("namespaces", "steady", "W6"),
    ("namespaces", "ghosts", "W12,S3"),
    ("namespaces", "newest-item", "W11"),
    ("namespaces", "ascii", "W8"),
    ("namespaces", "one-a-chunk", "W8,W5"),
    ("namespaces", "reset-kills", "W8"),
    ("namespaces", "bookmark-object", "W10"),
    ("namespaces", "drops-work", "R2,S3"),
    ("namespaces", "hot-work", "R2"),
    ("namespaces", "applies-labels", "C7"),
    ("pods", "sleeps", "W7"),
    ("pods", "text-lines", "W8"),
    ("pods", "added-only", "W5"),
    ("pods", "again", "W5"),
    ("pods", "410-is-fatal", "W1"),
    ("pods", "429-soon", "R1"),
    ("pods", "trouble-ends", "W8"),
    ("pods", "same-pause", "W6"),
    ("pods", "404-again", "C6"),
    ("pods", "three-tries", "R2"),
    ("pods", "whole-labels", "C3"),
    ("pods", "merges", "C3"),
    ("dyn", "ignores-tombstones", "W12,S3"),
    ("dyn", "max-two", "R2"),
    ("dyn", "immediate", "R2"),
    ("dyn", "adopts", "C5"),
    ("dyn", "creates", "C6"),
    ("dyn", "retries-conflict", "C1"),
    ("dyn", "exits-404", "C6"),
    ("dyn", "leads-on", "L1"),
    ("rt", "clears-finalizers", "C4"),
    ("rt", "unguarded", "C4"),
    ("rt", "no-owner-check", "C5"),
    ("rt", "conflict-exits", "C1,C6"),
    ("rt", "marks-first", "S2"),
    ("official", "no-resume", "W5"),
    ("official", "status-fatal", "R2"),
    ("official", "keeps-gone", "W12,S3"),
    ("official", "waits", "W7"),
    ("official", "no-jitter", "R2,R4"),
    ("official", "ignores-failure", "R2,S3"),
    ("official", "same-second", "R2"),
    ("official", "hasty", "R1"),
    ("official", "exists-fatal", "C6"),
    ("official", "takes", "C5"),
    ("official", "typed", "C3"),
    ("official", "not-found", "C6"),
    ("seals", "short-lines", "W9"),
    ("seals", "any-bookmark", "W14"),
    ("seals", "no-fallback", "W14"),
    ("seals", "own-answer", "C2"),
    ("stamps", "unicode-lines", "W8,C3"),
    ("stamps", "http-410", "W2"),
    ("stamps", "same-again", "C1"),
    ("stamps", "from-now", "W11"),
    ("stamps", "index-whole", "C2"),
    ("boards", "no-second-look", "D1"),
    ("boards", "by-name", "C5"),
    ("boards", "no-force", "C7"),
    ("boards", "only-mine", "C3"),
    ("labels", "permanent", "R2,R1"),
    ("labels", "generates", "R3,S2,W13"),
    ("labels", "any-owner", "C5"),
    ("labels", "gone-again", "C6"),
    ("labels", "whole-object", "C3"),
    ("copies", "stops", "R2,W8"),
    ("copies", "even", "W6,R2"),
    ("copies", "gives-up", "R2"),
    ("copies", "half-lines", "W8"),
    ("tickets", "revision-again", "P2"),
    ("tickets", "old-token", "P1"),
    ("tickets", "part-is-all", "P2"),
    ("tickets", "counts", "P2"),
    ("tickets", "there-is-fatal", "C6"),
    ("held", "by-name", "C5"),
    ("held", "blind-finalizers", "C4"),
    ("held", "not-forced", "C7"),
    ("held", "new-manager", "C7"),
    ("elected", "reads-clock", "L1"),
    ("elected", "own-duration", "L1"),
    ("elected", "overwrites", "L1"),
    ("elected", "leads-on", "L1"),
    ("elected", "works-anyway", "L1"),
    ("phases", "remembers-names", "C5"),
    ("phases", "new-times", "N3,W13"),
    ("phases", "sole-condition", "C3"),
    ("phases", "kept-body", "C1"),
    ("typed", "shared-object", "C1,R2"),
    ("typed", "no-tombstones", "W12,S3"),
    ("typed", "no-expectations", "C8"),
    ("typed", "blind-list", "C4"),
    ("approver", "any-version", "C2,C3"),
    ("approver", "only-verdict", "C3"),
    ("approver", "at-once", "R2"),
    ("approver", "keeps-missing", "W12,S3"),
    ("scaler", "three-only", "P2"),
    ("scaler", "old-scale", "C1"),
    ("scaler", "must-exist", "C6"),
    ("scaler", "always", "N3"),
    ("registrar", "clears", "C4"),
    ("registrar", "blind-index", "C4"),
    ("registrar", "by-name", "C5"),
    ("registrar", "drops-deletion", "S3,R2"),
    ("tainter", "whole-list", "C2,C3"),
    ("tainter", "bookmarks-too", "W10"),
    ("tainter", "no-timer", "W7"),
    ("tainter", "milliseconds", "R1"),
    ("raw", "from-now", "W11"),
    ("raw", "takes", "C5"),
    ("raw", "revision-only", "W12,S3,W1"),
    ("raw", "no-jitter", "R2,R4"),
    ("orders", "old-revision", "W1,W2"),
    ("orders", "hurries", "W6"),
    ("orders", "keeps-ghosts", "W12,S3"),
    ("orders", "any-bookmark", "W14"),
    ("orders", "lets-go", "R2,S3"),
    ("orders", "even-pauses", "R2"),
    ("orders", "swallows-500", "R2"),
    ("orders", "sole-finalizer", "C4"),
    ("orders", "trusts-cache", "C8,S1"),
    ("orders", "creates-again", "R3"),
    ("orders", "deletes-by-name", "C5"),
    ("orders", "clears-finalizers", "C4"),
    ("orders", "does-not-force", "C7"),
    ("orders", "impatient", "R1"),
    ("orders", "relists-at-once", "R4"),
    ("orders", "endless", "W7"),
    ("sweep", "first-page", "P2"),
    ("sweep", "list-is-fatal", "R2"),
    ("sweep", "there-is-fatal", "C6"),
    ("sweep", "by-name", "C5"),
    ("sweep", "no-finalizers", "C4"),
    ("sweep", "unguarded", "C2,C4"),
    ("sweep", "keeps-trying", "R2"),
    ("sweep", "ignores-after", "R1"),
    ("guards", "keeps-revision", "W1,W2"),
    ("guards", "500-ends", "W4,R2"),
    ("guards", "always-a-second", "W6,R2"),
    ("guards", "forgets-gone", "W12,S3"),
    ("guards", "no-guard", "W7"),
    ("guards", "drops-rest", "W8"),
    ("guards", "revision-of-list", "W5"),
    ("guards", "no-retry-after", "R1"),
    ("guards", "at-once", "R2"),
    ("guards", "drops-failed", "R2,S3"),
    ("guards", "any-owner", "C5"),
    ("guards", "stale-status", "C1"),
    ("duo", "not-forced", "C7"),
    ("duo", "pid-manager", "C7"),
    ("duo", "forgets-failed", "R2,S3"),
    ("vaults", "expired-again", "W1,W2"),
    ("vaults", "forever", "W7"),
    ("vaults", "iter-lines", "W8"),
    ("vaults", "five-times", "R2"),
    ("vaults", "any-uid", "C5"),
    ("vaults", "own-shape", "C3"),
    ("vaults", "sole", "C3"),
    ("shares", "no-limit", "W7"),
    ("shares", "drops-refused", "R2"),
    ("shares", "soon-again", "R2"),
    ("shares", "keeps", "W12,S3"),
    ("shares", "as-number", "V1"),
    ("shares", "unhandled-500", "W4,R2"),
    ("shares", "believes", "C5"),
    ("shares", "own-notes", "C3"),
    ("shares", "last-wins", "C2"),
    ("quotas", "max-six", "R2"),
    ("quotas", "each-second", "R2"),
    ("quotas", "asks", "C7"),
    ("quotas", "drops", "C3"),
    ("quotas", "ignores", "R2"),
    ("quotas", "new-manager", "C7"),
    ("quotas", "only-new", "W12,S3"),
    ("ledger", "thread-per-event", "S3"),
    ("ledger", "drops-burst", "S3"),
    ("ledger", "key-no-namespace", "C5"),
    ("ledger", "page-selector", "P2"),
    ("ledger", "list-selector", "W11"),
    ("ledger", "retry-after-date", "R1"),
    ("ledger", "apply-partial", "C7"),
    ("ledger", "writer-old-token", "A1"),
    ("ledger", "head-of-line", "R6"),
    ("ledger", "denied-spins", "R6"),
    ("ledger", "status-no-code", "N1"),
    ("ledger", "401-spins", "A1"),
    ("ledger", "inconsistent-revision", "P1"),
    ("tenants", "observed-too-new", "S3"),
    ("tenants", "initial-cut-resume", "W14"),
    ("tenants", "stream-ghosts", "W12"),
    ("tenants", "terminating-child-spin", "C6"),
    ("tenants", "cond-index", "C3"),
    ("tenants", "cleanup-ignored", "S3"),
    ("tenants", "finalizer-late", "S2"),
    ("fleet", "empty-holder-stuck", "L1"),
    ("fleet", "lease-gone-leads", "L1"),
    ("fleet", "null-renew", "L1"),
    ("fleet", "works-after-loss", "L1"),
    ("fleet", "lists-each", "N3"),
    ("fleet", "minor-plus", "N1"),
    ("sites", "label-once", "S3"),
    ("sites", "half-is-enough", "R7"),
    ("sites", "remembers-failures", "R2"),
    ("sites", "fivefold", "R2"),
    ("sites", "generation-only", "S3"),
    ("sites", "always-now", "N3"),
    ("sites", "done-by-name", "C5"),
    ("sites", "forgets-bookmarks", "W10"),
    ("sites", "manager-of-process", "C7"),
    ("sites", "asks-nicely", "C7"),
    ("sites", "endless", "W7"),
    ("sites", "own-pace", "R1"),
    ("sites", "worker-ends", "R2"),
    ("sites", "first-token", "A1"),
    ("batches", "what-came", "R7"),
    ("batches", "no-idle", "W7"),
    ("batches", "slower-and-slower", "R2,W5,W6"),
    ("batches", "zero-after-gone", "W1,W11,W12"),
    ("batches", "text-pieces", "W8"),
    ("batches", "one-line", "R6"),
    ("batches", "about-a-second", "R2"),
    ("batches", "only-living", "C4,S2"),
    ("batches", "waits-for-ever", "S3"),
    ("batches", "waits-for-goodbyes", "S3,W12"),
    ("batches", "owner-by-name", "C5"),
    ("batches", "unguarded-finalizers", "C4"),
    ("batches", "sends-again", "R3"),
    ("batches", "note-once", "S3"),
    ("batches", "puts-its-own", "C3"),
    ("desk", "leads-on", "L1"),
    ("desk", "wall-clock", "L1"),
    ("desk", "my-duration", "L1"),
    ("desk", "lease-unguarded", "L1"),
    ("desk", "six-times", "R2"),
    ("desk", "half-page", "R7"),
    ("desk", "so-far", "P1"),
    ("desk", "errors-are-news", "W4,W1"),
    ("desk", "makes-it-again", "C6"),
    ("desk", "newest-revision", "C2"),
    ("desk", "no-revision", "C2"),
    ("desk", "room-once", "S3"),
    ("desk", "known-fields", "C3"),
    ("desk", "only-taken", "C3"),
    ("desk", "shrugs", "R2"),
    ("desk", "token-of-start", "A1"),
    ("shelves", "gone-only", "W1,W2"),
    ("shelves", "keeps-unlisted", "W12,S3"),
    ("shelves", "adds-only", "S3"),
    ("shelves", "print-once", "S3"),
    ("shelves", "adopts-owned", "C5"),
    ("shelves", "unguarded-books", "C2"),
    ("shelves", "place-forgotten", "S3"),
    ("shelves", "expects-before", "R2"),
    ("shelves", "expects-unknown", "R2,R3"),
    ("shelves", "no-expectations", "C8"),
    ("shelves", "status-another-time", "C1"),
    ("shelves", "starts-at-once", "S1"),
    ("shelves", "no-timeout", "W7"),
    ("shelves", "bookmark-only", "W5"),
    ("shelves", "string-order", "V1"),
    ("shelves", "works-for-dying", "C4"),
    ("shelves", "empty-while-listing", "W12"),
    ("reloads", "forgets-first", "R2"),
    ("reloads", "looks-often", "N3"),
    ("reloads", "cache-mutated", "R2,C1"),
    ("reloads", "puts-unguarded", "C2"),
    ("reloads", "without", "S1"),
)


#: Defects that cost others something and lose nothing: a warning is right.
SUSPECTED = frozenset(
    {
        ("services", "relist-always"),
        ("inline", "rebuilds"),
        ("orders", "relists-at-once"),
        ("vaults", "own-shape"),
        ("shares", "own-notes"),
        ("fleet", "lists-each"),
        ("sites", "always-now"),
        ("batches", "puts-its-own"),
        ("shelves", "print-once"),
    }
)


def check(program: str, defect: str, options: list[str], go: str) -> dict[str, tuple[str, str]]:
    """Returns the verdicts and reasons by rule."""
    sample, command = PROGRAMS[program]
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "DEFECT")}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        checking = [sys.executable, "-m", "fakekube", "check", *options, "--sample", str(HERE / sample), "--report", str(report)]
        client = [str(HERE / part) if (HERE / part).exists() else part.replace("{go}", go) for part in command]
        done = subprocess.run(
            [*checking, "--", *client],
            capture_output=True,
            text=True,
            check=False,
            env={**environment, **({"DEFECT": defect} if defect else {})},
        )
        if not report.exists():
            return {"baseline": ("no report", done.stderr[-300:])}
        rows = json.loads(report.read_text())["rules"]
    return {row["id"]: (row["verdict"], (row["evidence"] or [""])[0]) for row in rows}


def run(program: str, defect: str, rules: str, options: list[str], go: str) -> bool:
    """Runs a check and prints a line; returns whether the verdicts are right."""
    begun = time.monotonic()
    selected = ["--rules", rules] if defect else ["--all"]
    found = check(program, defect, [*selected, *options, *(["--idle", "20"] if rules == "W7" else [])], go)
    blamed = {rule: one for rule, one in found.items() if one[0] in ("fail", "warn", "no report")}
    word = "warn" if (program, defect) in SUSPECTED else "fail"
    right = any(one[0] == word for one in found.values()) if defect else not blamed
    shown = "; ".join(f"{rule} {one[0]}: {one[1][:180]}" for rule, one in (blamed if blamed or not defect else found).items())
    took = f"{time.monotonic() - begun:.0f} s, load {os.getloadavg()[0]:.0f}"
    print(f"{'right' if right else 'WRONG'} {program} {defect or 'correct'} {took} {shown}", flush=True)
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--correct", action="store_true", help="the programs without defects")
    parser.add_argument("--only", default="", help="programs, separated by commas")
    parser.add_argument("--go", default="", help="the folder with the built programs in Go; without it they are left out")
    parser.add_argument("--keep", default="", help="a folder for the traces")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--times", type=int, default=1)
    options = parser.parse_args()
    only = [part for part in options.only.split(",") if part]
    rows = [(name, "", "") for name in PROGRAMS] if options.correct else list(DEFECTS)
    chosen = [
        row for row in rows if (not only or row[0] in only) and (options.go or not PROGRAMS[row[0]][1][0].startswith("{go}"))
    ]
    results = []
    for seed in range(options.first_seed, options.first_seed + options.times):
        for name, defect, rules in chosen:
            kept = ["--keep", f"{options.keep}/{name}-{defect or 'correct'}-{seed}"] if options.keep else []
            results.append(run(name, defect, rules, ["--seed", str(seed), *kept], options.go))
    print(f"{sum(results)} of {len(results)} right")
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
