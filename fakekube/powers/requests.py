"""What was asked of a cluster, as a sequence that a test narrows and waits for.

    cluster.requests.where(verb="patch", resource="pods/status", agent="my-operator").wait(1)

Invariant: a view holds no exchanges; every look reads the recorder's ring anew.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from fakekube.powers.exchange import Exchange
from fakekube.powers.matching import Criteria, ResourceName, verbs_of

if TYPE_CHECKING:
    from fakekube.powers.recorder import Recorder

__all__ = ["Requests"]

#: Exchanges that an error message shows.
_SHOWN = 10


class Requests(Sequence[Exchange]):
    """See the module. Exchanges stand in the order of their beginning; those in flight are among them."""

    def __init__(self, recorder: Recorder, criteria: tuple[Criteria, ...] = (), *, own: bool = False, after: int = -1) -> None:
        self._recorder = recorder
        self._criteria = criteria
        self._own = own
        self._after = after

    # ------------------------------------------------------------ narrowing

    def where(
        self,
        *,
        verb: str | Iterable[str] | None = None,
        resource: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        status: int | None = None,
        own: bool = False,
    ) -> Requests:
        """The exchanges that also meet these criteria.

        Args:
            verb: such as "patch" or "get,list".
            resource: as `faults.on` names it, such as "pods/status" or "deployments.apps".
            namespace, name, user: as they are.
            agent: a prefix of the User-Agent.
            status: the code of the answer.
            own: also those of the cluster's own controllers and of clients in the same process.

        Raises ValueError for a verb that does not exist.
        """
        criteria = Criteria(
            None if verb is None else verbs_of(verb),
            None if resource is None else ResourceName.of(resource, self._recorder.resolve),
            namespace,
            name,
            user,
            agent,
            status,
        )
        return Requests(self._recorder, (*self._criteria, criteria), own=own or self._own, after=self._after)

    def mark(self) -> int:
        """A mark behind the newest exchange, for `since`."""
        return self._recorder.newest

    def since(self, mark: int) -> Requests:
        """The exchanges that began after a mark."""
        return Requests(self._recorder, self._criteria, own=self._own, after=max(mark, self._after))

    # ------------------------------------------------------------ looking

    def _found(self) -> list[Exchange]:
        return [one for one in self._candidates() if all(criteria.matches(one) for criteria in self._criteria)]

    def _candidates(self) -> list[Exchange]:
        return [one for one in self._recorder.kept() if one.number > self._after and (self._own or not one.own)]

    def __len__(self) -> int:
        return len(self._found())

    @overload
    def __getitem__(self, index: int) -> Exchange: ...

    @overload
    def __getitem__(self, index: slice) -> list[Exchange]: ...

    def __getitem__(self, index: int | slice) -> Exchange | list[Exchange]:
        return self._found()[index]

    def __iter__(self) -> Iterator[Exchange]:
        return iter(self._found())

    @property
    def one(self) -> Exchange:
        """The only exchange. Raises AssertionError, which shows near misses, if there is none or more than one."""
        found = self._found()
        if len(found) != 1:
            raise AssertionError(f"{len(found)} requests with {self}, not one{self._near(found)}")
        return found[0]

    @property
    def last(self) -> Exchange:
        """The newest exchange. Raises AssertionError, which shows near misses, if there is none."""
        found = self._found()
        if not found:
            raise AssertionError(f"no request with {self}{self._near(found)}")
        return found[-1]

    def none(self) -> None:
        """Raises AssertionError, which shows them, if there are any."""
        found = self._found()
        if found:
            raise AssertionError(f"{len(found)} requests with {self}:{_lines(found)}")

    def in_order(self, *verbs: str) -> None:
        """Raises AssertionError, which shows the requests, unless there are requests with these verbs in this order;
        others may lie between them."""
        left = iter(verbs)
        wanted = next(left, None)
        found = self._found()
        for one in found:
            if one.verb == wanted:
                wanted = next(left, None)
        if wanted is not None:
            missing = ", ".join((wanted, *left))
            raise AssertionError(f"no {missing} after the others of {', '.join(verbs)} with {self}:{_lines(found)}")

    def save(self, path: Path | str) -> None:
        """Writes the exchanges to a file, one a line, as JSON with the members of `GET /fakekube/v1/requests`. Raises
        OSError."""
        from fakekube.powers.shown import json_line, shown

        Path(path).write_bytes(b"".join(json_line(shown(one)) for one in self._found()))

    # ------------------------------------------------------------ waiting

    def wait(self, count: int = 1, timeout: float = 5.0) -> Requests:
        """Wait until so many of the requests are answered, or are watches that are open; returns this view.

        `timeout` is in real seconds. Raises TimeoutError, which shows near misses.
        """
        end = time.monotonic() + timeout
        with self._recorder.waiting():
            while True:
                seen = self._recorder.changes
                found = [one for one in self._found() if one.status is not None]
                if len(found) >= count:
                    return self
                if not self._recorder.wait_for_change(seen, end - time.monotonic()):
                    raise TimeoutError(f"{len(found)} of {count} requests with {self} after {timeout} s{self._near(found)}")

    def keep_frames(self) -> None:
        """Have watches that begin from now on keep all that they deliver (`Exchange.frames`)."""
        self._recorder.keep_frames = True

    def clear(self) -> None:
        """Forget all exchanges of the cluster."""
        self._recorder.clear()

    # ------------------------------------------------------------ words

    def __str__(self) -> str:
        return "; ".join(map(str, self._criteria)) or "no criteria"

    def _near(self, found: list[Exchange]) -> str:
        return f":{_lines(found)}" if found else self.nearest(*self._criteria)

    def __repr__(self) -> str:
        return f"<Requests {self}:{_lines(self._found())}>"

    def nearest(self, *criteria: Criteria) -> str:
        """Which of the exchanges miss the fewest of some criteria, in words."""
        missing = [([miss for one in criteria for miss in one.misses(exchange)], exchange) for exchange in self._candidates()]
        if not missing:
            return "; nothing was asked"
        least = min(len(misses) for misses, _ in missing)
        nearest = [f"{one} (other {', '.join(misses)})" for misses, one in missing if len(misses) == least]
        return "; the nearest are:" + "".join(f"\n  {line}" for line in nearest[-_SHOWN:])


def _lines(found: list[Exchange]) -> str:
    return "".join(f"\n  {one}" for one in found[-_SHOWN:])
