"""The defects of the client and the operator in this folder, each with the rule that has to find it.

A defect is named after its rule: `W1-same-revision` breaks rule W1. `--defect ID` switches one on; without it the programs behave
as client-go does. The programs call `active(ID)` where a defect changes their behavior.
"""

from __future__ import annotations

from dataclasses import dataclass

#: The programs that can have a defect.
BOTH = ("client", "controller")
CLIENT = ("client",)
CONTROLLER = ("controller",)


@dataclass(frozen=True, slots=True)
class Defect:
    """`options`: the options of the program that the defect needs; `commands`: the programs with the defect; `verdict`: the
    expected one."""

    id: str
    text: str
    commands: tuple[str, ...] = BOTH
    options: tuple[str, ...] = ()
    verdict: str = "fail"

    @property
    def rule(self) -> str:
        return self.id.partition("-")[0]


#: Lists instead of initial events, in small pages.
PAGES = ("--lists", "--page", "3")

DEFECTS = {
    defect.id: defect
    for defect in (
        Defect("W1-same-revision", "watches again at the revision that has expired"),
        Defect("W1-stop", "stops watching after a 410, the process lives on"),
        Defect("W1-crash", "the process ends after a 410"),
        Defect("W1-once", "the process ends at its second 410"),
        Defect("W2-same-revision", "repeats a watch that was refused with 410 at the same revision"),
        Defect("W2-stop", "stops watching when a watch is refused with 410"),
        Defect("W2-crash", "the process ends when a watch is refused with 410"),
        Defect("W3-endless", "watches for ever at a revision whose watches end empty, never lists"),
        Defect("W4-object", "takes the Status of an ERROR event for an object, and its stream for a healthy one"),
        Defect("W4-stop", "stops watching after an ERROR event"),
        Defect("W4-crash", "the process ends after an ERROR event"),
        Defect("W4-hot", "watches again at once after an ERROR event"),
        Defect("W5-stop", "stops watching when the server ends a stream"),
        Defect("W5-relist", "lists everything again whenever the server ends a stream", verdict="warn"),
        Defect("W5-first-revision", "resumes at the revision of its list instead of the last event's"),
        Defect("W6-hot", "opens a stream that was closed at once again without any delay"),
        Defect("W6-flat", "waits 50 ms before it opens such a stream again, however often"),
        Defect("W7-forever", "waits without limit on a stream that says nothing"),
        Defect("W8-crash", "the process ends when a stream is cut within an event"),
        Defect("W8-skip", "goes on after the event that was cut, without it"),
        Defect("W8-chunks", "takes each piece that it reads for a whole event", CONTROLLER),
        Defect("W8-characters", "decodes each piece that it reads by itself"),
        Defect("W8-first", "takes the first event of what it reads at once, without the others"),
        Defect("W8-replaces", "puts U+FFFD for what it cannot decode of a piece", CONTROLLER),
        Defect("W9-limit", "refuses lines beyond 64 KiB"),
        Defect("W9-limit-4m", "refuses lines beyond 4 MiB"),
        Defect("W10-crash", "the process ends at a bookmark, whose spec is missing"),
        Defect("W10-object", "takes a bookmark for a new object", CONTROLLER),
        Defect("W10-closes", "closes its watch after a bookmark, and lists"),
        Defect("W10-rely", "remembers only the revisions of bookmarks"),
        Defect("W11-items", "starts its watch at the greatest revision of the listed items", options=("--lists",)),
        Defect("W11-last", "starts its watch at the revision of the last listed item", options=("--lists",)),
        Defect("W11-other", "starts its watch at the revision of another resource", options=("--lists",)),
        Defect("W12-ghosts", "keeps objects that a new list no longer has", CONTROLLER),
        Defect("W13-twice", "creates a child for each ADDED event", CONTROLLER),
        Defect("W14-wait", "asks for initial events again and again when they are refused"),
        Defect("W14-crash", "the process ends when initial events are refused"),
        Defect("W14-any", "takes any bookmark for the end of the initial events"),
        Defect("W15-endless", "repeats a list whose revision is too large", options=("--lists",)),
        Defect("W15-crash", "the process ends when the revision of its list is too large", options=("--lists",)),
        Defect("W16-sweep", "deletes children whose owner its cache does not have", CONTROLLER),
        Defect("P1-crash", "the process ends when a continue token has expired", options=PAGES),
        Defect("P1-same-token", "repeats a page whose token has expired", options=PAGES),
        Defect("P1-part", "takes the pages before an expired token for the whole list", options=PAGES),
        Defect("P2-keeps-revision", "sends the resourceVersion along with a continue token", options=PAGES),
        Defect("P2-short", "takes a page with fewer items than its limit for the last", options=PAGES),
        Defect("P2-empty", "takes a page without items for the last", options=PAGES),
        Defect("P2-remaining", "takes a page without remainingItemCount for the last", options=PAGES),
        Defect("R1-ignore", "tries again at once, whatever Retry-After says"),
        Defect("R1-second", "waits a second, whatever Retry-After says"),
        Defect("R1-stop", "stops for good when it is told to retry later"),
        Defect("R1-text", "the process ends when a refusal is a text and no Status"),
        Defect("R1-five", "the process ends when it is refused five times in a row"),
        Defect("R2-none", "tries again at once after a server error"),
        Defect("R2-flat", "tries again each 200 ms after a server error"),
        Defect("R2-stop", "stops for good after a server error"),
        Defect("R2-page", "the process ends at a page of HTML"),
        Defect("R2-dropped", "tries again at once when a connection drops"),
        Defect("R2-remembers", "never forgets the failures of a key", CONTROLLER),
        Defect("R2-fivefold", "waits five times as long after each failure of a stream"),
        Defect("R2-swallows", "goes on to the status when it could not write a child", CONTROLLER),
        Defect("R7-half", "takes the items before the break for the whole list", options=("--lists",)),
        Defect("R3-resend-create", "sends a create again whose connection broke", CONTROLLER),
        Defect("R3-resend-timeout", "sends a create again that was answered with 504", CONTROLLER),
        Defect("R4-no-jitter", "reconnects exactly a second after each drop"),
        Defect("R1-date", "the process ends at a date in Retry-After"),
        Defect(
            "R6-blocks", "repeats what is denied for one object until it succeeds, before it looks at another one", CONTROLLER
        ),
        Defect("R6-invalid", "repeats what is refused as invalid with equal pauses", CONTROLLER),
        Defect("R6-spins", "repeats what is denied without any delay", CONTROLLER),
        Defect("C1-same-body", "repeats an update that conflicted with the same body", CONTROLLER),
        Defect("C1-spin", "repeats it so without any delay", CONTROLLER),
        Defect("C1-at-once", "sends it again five times at once, before it reads the object", CONTROLLER, verdict="warn"),
        Defect("C1-stop", "never looks again at an object whose update conflicted", CONTROLLER),
        Defect("C2-no-revision", "patches all that it has read, without a resourceVersion", CONTROLLER),
        Defect("C2-newest", "puts the newest resourceVersion on an old body", CONTROLLER),
        Defect("C3-empty", "writes back what it has read without empty values", CONTROLLER),
        Defect("C3-fields", "writes back only the fields of spec that it knows", CONTROLLER),
        Defect("C3-metadata", "writes back only labels and annotations of its own", CONTROLLER),
        Defect("C3-owners", "writes its own owner references over those of a child", CONTROLLER, verdict="warn"),
        Defect("C4-replaces", "sets the finalizers to its own", CONTROLLER),
        Defect("C4-cached", "patches the finalizers that it has read, and its own, without resourceVersion", CONTROLLER),
        Defect("C4-clears", "removes all finalizers when it is done", CONTROLLER),
        Defect("C4-index", "removes the first finalizer, whichever it is", CONTROLLER),
        Defect("C5-by-name", "deletes children by name without their uid", CONTROLLER),
        Defect("C5-adopts", "takes over an object of the child's name that belongs to another", CONTROLLER),
        Defect("C5-exists", "takes 409 for a create as done, whose object it may be", CONTROLLER, verdict="warn"),
        Defect("C5-owner-name", "takes children of an owner of the same name for its own", CONTROLLER),
        Defect("C6-terminating", "creates a child again and again whose predecessor still exists", CONTROLLER),
        Defect("C6-gone", "repeats a delete that is answered with 404", CONTROLLER),
        Defect("C6-exists", "repeats a create that is answered with 409", CONTROLLER),
        Defect("C6-crash", "the process ends when what it writes is gone", CONTROLLER),
        Defect("C7-no-force", "applies without force, and repeats it after a conflict", CONTROLLER),
        Defect("C7-manager", "applies under another manager each time it starts", CONTROLLER),
        Defect("C7-part", "applies only what has changed", CONTROLLER),
        Defect("C8-blind", "creates a child whenever its cache has none", CONTROLLER),
        Defect("V1-float", "keeps revisions as 64 bit floating point numbers"),
        Defect("V1-next", "resumes after the next revision, which it computes"),
        Defect("V1-older", "compares revisions as floating point numbers, and drops what is not greater"),
        Defect("V1-int64", "refuses revisions beyond 64 bits"),
        Defect("V1-digits", "compares revisions as strings, and drops what is not greater"),
        Defect("D1-once", "asks discovery once, and never again for what was not there", CONTROLLER),
        Defect("D1-stuck", "stops watching for good when its path answers 404", CONTROLLER),
        Defect("D1-crash", "the process ends when its kind is not there", CONTROLLER),
        Defect("D2-crash", "the process ends when a group of discovery does not answer", CONTROLLER),
        Defect("D2-empty", "finds nothing when a group of discovery does not answer", CONTROLLER),
        Defect("A1-once", "reads its token once"),
        Defect("A1-twice", "reads its token again a single time"),
        Defect("A1-crash", "the process ends at a 401"),
        Defect("L1-renew-time", "takes a lease over whose renewTime lies behind its own clock", CONTROLLER),
        Defect("L1-ahead", "takes no lease over whose renewTime lies ahead of its own clock", CONTROLLER),
        Defect("L1-own-duration", "takes a lease over after its own duration, not the record's", CONTROLLER),
        Defect("L1-keeps-leading", "leads on when it cannot renew its lease", CONTROLLER),
        Defect("L1-no-revision", "patches the lease without its resourceVersion", CONTROLLER),
        Defect("N1-event-type", "the process ends at an event of an unknown type"),
        Defect("N1-gzip", "the process ends at a compressed answer"),
        Defect("N1-warning", "the process ends at an answer with a Warning header", CONTROLLER),
        Defect("N1-status", "the process ends at a Status with a field that it does not know"),
        Defect("N2-agent", "sends the User-Agent of its HTTP library"),
        Defect("N2-none", "sends no User-Agent"),
        Defect("N3-polls", "lists each second instead of watching", verdict="warn"),
        Defect("N3-twice", "keeps each watch open twice", verdict="warn"),
        Defect("N3-leaks", "never closes a connection", CONTROLLER, verdict="warn"),
        Defect("N3-gets", "reads each object every second", CONTROLLER),
        Defect("N3-writes", "writes what has not changed every second", CONTROLLER),
        Defect("N3-invalid", "writes a status without the resourceVersion that the API asks for", CONTROLLER, verdict="warn"),
        Defect("N3-needless", "writes what has not changed whenever it looks at an object", CONTROLLER, verdict="warn"),
        Defect("S1-restart", "creates after a start what its first list lacks", CONTROLLER),
        Defect("S2-marker", "marks an object as done before its child exists, and believes the mark", CONTROLLER),
        Defect("S2-first", "makes children for objects that it has not marked yet, without a look at what exists", CONTROLLER),
        Defect("S3-new", "sees in a new list what is new and what is gone, and not what has changed", CONTROLLER),
        Defect("S3-once", "writes a text into the status once, and never again", CONTROLLER),
        Defect("S3-waits", "waits without limit for the event of a child that it has created", CONTROLLER),
        Defect("S3-made-once", "never changes the content of a child again", CONTROLLER, verdict="warn"),
        Defect(
            "S3-remembers", "compares a child with what it has written last, and not with the child", CONTROLLER, verdict="warn"
        ),
        Defect("S3-keeps", "keeps in a child what a field has brought that is gone", CONTROLLER, verdict="warn"),
        Defect("S3-edges", "acts on events, not on what there is", CONTROLLER),
    )
}

_active = ""


def activate(name: str) -> None:
    """Switches a defect on, for this process."""
    global _active  # noqa: PLW0603
    if name and name not in DEFECTS:
        raise SystemExit(f"unknown defect {name}; known are {', '.join(DEFECTS)}")
    _active = name


def active(*names: str) -> bool:
    return _active in names
