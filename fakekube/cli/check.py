"""The command `fakekube check`: runs a check, prints the report, and writes it in the forms that are asked for.

Exit codes: 0 all is well, 1 a rule is broken (or suspected, with --strict), 2 the command line is invalid, 3 the client did not
finish its baseline run, 4 too little was exercised.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fakekube.cli.arguments import UsageError

if TYPE_CHECKING:
    from fakekube.checker.report import Report
    from fakekube.cli.arguments import Options


def check(options: Options) -> int:
    """Checks a client and prints the report; returns the exit code. Raises UsageError."""
    from fakekube.checker import BaselineFailed, UnknownRule
    from fakekube.checker import check as check_client
    from fakekube.checker.report import github_annotation
    from fakekube.cluster.testing.manifests import ManifestError

    if shutil.which(options.rest[0]) is None:
        problem = "is not executable" if Path(options.rest[0]).exists() else "no such command"
        raise UsageError(f"{options.rest[0]}: {problem}")
    started = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends all clients, as Ctrl-C does

    def progress(line: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {line}", file=sys.stderr, flush=True)

    try:
        report = check_client(
            options.rest,
            sample=options.sample,
            rules=options.rules,
            excluded=options.excluded,
            again=options.again,
            legality=options.legality,
            idle=options.idle,
            seconds=options.seconds,
            expect=options.expect,
            seed=options.seed,
            profile=_profile(options),
            version=options.version or None,
            timeout=options.timeout,
            accept=options.accept,
            require=options.require,
            min_exercised=options.min_exercised,
            strict=options.strict,
            allow_timeout=options.allow_timeout,
            keep=options.keep,
            traces=_is_page(options.report),
            progress=progress,
        )
    except (UnknownRule, ManifestError, ValueError) as problem:
        raise UsageError(str(problem)) from None
    except OSError as problem:
        raise UsageError(f"{problem.filename or options.rest[0]}: {problem.strerror}") from None
    except BaselineFailed as problem:
        print(f"fakekube: {problem}", file=sys.stderr)
        if os.environ.get("GITHUB_ACTIONS"):
            _print(github_annotation("error", "no baseline run", str(problem)))
        return 3
    except KeyboardInterrupt:
        return 130
    _print(str(report))
    try:
        _write(report, options)
    except OSError as problem:
        raise UsageError(f"{problem.filename}: {problem.strerror}") from None
    return report.exit_code


def _is_page(path: Path | None) -> bool:
    """Reports whether a report is to be written as a page."""
    return path is not None and path.suffix in (".html", ".htm")


def _profile(options: Options) -> str:
    """Returns the profiles: those of the command line, and fast in CI environments if it names neither a depth nor rules."""
    named = map(str.strip, options.profile.split(","))
    chosen = options.rules is not None or options.again is not None or options.legality == "A,B,C"
    if os.environ.get("CI") and not chosen and {"fast", "full"}.isdisjoint(named):
        return f"fast,{options.profile}"
    return options.profile


def _write(report: Report, options: Options) -> None:
    """Writes the report to the files of the command line, whose folders are made, and where GitHub expects it.

    Raises OSError for a file of the command line.
    """
    from fakekube.checker.report import github_annotations

    for path in filter(None, (options.report, options.junit, options.sarif, options.summary)):
        path.parent.mkdir(parents=True, exist_ok=True)
    if options.report is not None:
        (report.write_html if _is_page(options.report) else report.write_json)(options.report)
    if options.junit is not None:
        report.write_junit(options.junit)
    if options.sarif is not None:
        report.write_sarif(options.sarif)
    if options.summary is not None:
        report.write_summary(options.summary)
    if of_job := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            report.write_summary(of_job)
        except OSError as problem:  # in a container of a job the variable may name a file of the host
            print(f"fakekube: $GITHUB_STEP_SUMMARY: {of_job}: {problem.strerror}", file=sys.stderr)
    if os.environ.get("GITHUB_ACTIONS"):
        _print("\n".join(github_annotations(report)))


def _print(text: str) -> None:
    """Prints a text; lone surrogates, which clients may send, are printed as escapes."""
    print(text.encode(errors="backslashreplace").decode())
