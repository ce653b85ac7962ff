"""Rules about discovery: definitions that are installed late or deleted, unavailable groups, another minor (D1 to D3)."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery import data
from fakekube.checker.client_run import ClientEnded
from fakekube.checker.judges import judge_process
from fakekube.checker.rule import Rule
from fakekube.checker.sample import new_token
from fakekube.checker.verdict import NotExercised, Outcome, Verdict
from fakekube.checker.waits import require_resumption
from fakekube.checker.writes import remove
from fakekube.controllers.client import ApiError, UnknownResource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakekube.base.objects import Object
    from fakekube.checker.trial import Baseline, Trial

#: How many seconds a client runs without the definitions at least.
_WITHOUT = 4.0
#: How many requests for a deleted resource are awaited before it is installed again, and for how many seconds.
_REFUSALS, _LONGEST_PAUSE = 2, 10.0


class Definitions(Rule):
    """The base class of the provocations of D1."""

    id = "D1"
    obligation = 'a missing kind may be installed later: repeat discovery after "no match" and 404'
    advice = "drop the cached discovery when a kind or a path is not found, and try again with backoff"
    source = "kubernetes#47977; client-go restmapper (DeferredDiscoveryRESTMapper)"
    expected_seconds = 12.0

    def require(self, baseline: Baseline) -> None:
        if not baseline.sample.definitions:
            raise NotExercised("the sample has no definitions")


class LateDefinitions(Definitions):
    """The client starts before the definitions of the sample are installed."""

    name = "late"
    decisive = True
    provocation = "the definitions are installed after the client has started"
    fast = True
    at_start = True

    def prepare(self, trial: Trial) -> None:
        remove_definitions(trial)

    ended_without: str = ""
    """How the client ended before the definitions were installed; "" if it did not."""

    def provoke(self, trial: Trial) -> None:
        """Installs the definitions; starts a client again that has ended without them, as whatever runs it would do."""
        try:
            trial.wait(_WITHOUT)
        except ClientEnded:
            if not trial.session.starter.restartable:
                raise
            self.ended_without, trial.ended = trial.ended, ""
            trial.kill_client()
        install_definitions(trial)
        if self.ended_without:
            trial.start_client()

    def judge_trace(self, trial: Trial) -> Verdict:
        text = f"{self.ended_without}; it works when it is started again" if self.ended_without else ""
        return Verdict.success(*filter(None, [text]))


class ReinstalledDefinitions(Definitions):
    """The definitions of the sample are deleted and installed again."""

    name = "again"
    decisive = True
    provocation = "the definitions are deleted and installed again"
    fast = False
    steps = ("W5",)
    expected_seconds = 14.0

    installed: int = -1

    def cluster_arguments(self) -> Mapping[str, Any]:
        # While a definition is missing, the garbage collector would delete the children that a client still creates.
        return {"profile": "apiserver"}

    def provoke(self, trial: Trial) -> None:
        require_resumption(trial)
        for subject in trial.copies:
            subject.deleted = True
        remove_definitions(trial)
        trial.faults.on("watch").end(label="ended").remove()
        trial.wait(_WITHOUT)
        self._await_refusals(trial)
        trial.compact()  # otherwise a paginated list from an old revision would return deleted objects
        install_definitions(trial)
        self.installed = trial.trace.mark()

    @staticmethod
    def _await_refusals(trial: Trial) -> None:
        """Waits until the client has been told several times that the resources do not exist, unless its pauses are long."""
        names = {definition["metadata"]["name"] for definition in trial.sample.definitions}

        def count_refused() -> int:
            return sum(call.status == 404 and call.collection in names for call in trial.trace.since(trial.provoked_at))

        trial.await_until(lambda: count_refused() >= _REFUSALS, _LONGEST_PAUSE)

    def judge(self, trial: Trial) -> Verdict:
        """Returns a failure only for a client that ends, or that does not ask again."""
        verdict = super().judge(trial)
        if verdict.outcome is Outcome.FAIL and not self._asks(trial):
            name = trial.sample.definitions[0]["metadata"]["name"]
            return Verdict.failure(
                f"has not asked for {name} or for discovery since it was installed again", *trial.excerpt(), by_time=True
            )
        return verdict if trial.ended else verdict.as_warning()

    def _asks(self, trial: Trial) -> bool:
        """Reports whether the client has listed or watched custom resources, or asked for discovery, since the definitions were
        installed again."""
        names = {definition["metadata"]["name"] for definition in trial.sample.definitions}
        calls = trial.trace.since(self.installed)
        return any(not call.resource or (call.collection in names and (call.is_list or call.is_watch)) for call in calls)


class ChangedDefinitions(ReinstalledDefinitions):
    """The base class of provocations in which the definitions of the sample are installed again, and differ."""

    decisive = False
    steps = ("W5",)
    expected_seconds = Definitions.expected_seconds
    converges = False

    token: str = ""
    """The token of the copy that fits the changed definitions."""

    def provoke(self, trial: Trial) -> None:
        require_resumption(trial)
        remove_definitions(trial)
        trial.faults.on("watch").end(label="ended").remove()
        changed = [copy.deepcopy(definition) for definition in trial.sample.definitions]
        for definition in changed:
            self.change(definition)
        trial.load_prerequisites(changed)
        self.token = new_token(trial.random)
        for obj in trial.sample.copies(self.token):
            self.change_copy(obj)
            with suppress(ApiError, UnknownResource):
                trial.cluster.create(obj)
        trial.wait(_WITHOUT)

    def change(self, definition: Object) -> None:
        """Changes a definition before it is installed again."""
        raise NotImplementedError

    def change_copy(self, obj: Object) -> None:
        """Changes an object of a copy so that it fits the new definition."""

    def judge(self, trial: Trial) -> Verdict:
        """Judges the process only: how an operator handles such objects is not specified."""
        return judge_process(trial) or Verdict.success()


class ChangedScope(ChangedDefinitions):
    """The definitions of the sample are installed again with another scope."""

    name = "scope"
    provocation = "the definitions come back with another scope"

    def change(self, definition: Object) -> None:
        definition["spec"]["scope"] = "Cluster" if definition["spec"].get("scope") == "Namespaced" else "Namespaced"

    def change_copy(self, obj: Object) -> None:
        if obj["metadata"].pop("namespace", None) is None:
            obj["metadata"]["namespace"] = "default"

    def judge(self, trial: Trial) -> Verdict:
        """Judges only whether a client survives: another scope is an incompatible change of the API, and no client has to handle
        its objects."""
        if trial.ended and any(call.has_delivered(self.token) for call in trial.trace.since(trial.provoked_at)):
            return Verdict.not_exercised(
                "the client ended at an object of the other scope, which it is not written for", trial.ended
            )
        return super().judge(trial)


class ChangedPlural(ChangedDefinitions):
    """The kinds of the sample are installed again under other plural names."""

    name = "plural"
    provocation = "the kinds come back under another plural"

    def change(self, definition: Object) -> None:
        names = definition["spec"]["names"]
        names["plural"] = f"other{names['plural']}"
        names["shortNames"] = []
        definition["metadata"]["name"] = f"{names['plural']}.{definition['spec']['group']}"


def remove_definitions(trial: Trial) -> None:
    """Deletes the definitions of the sample and all their objects, regardless of finalizers."""
    for definition in trial.sample.definitions:
        name = definition["metadata"]["name"]
        for obj in _objects(trial, name):
            try:
                remove(trial, name, obj)
            except ApiError as error:
                if error.code != 404:
                    raise
        trial.cluster.delete("customresourcedefinitions", name)
        trial.cluster.wait_for("customresourcedefinitions", name, gone=True, timeout=20.0)


def _objects(trial: Trial, resource: str) -> list[dict[str, Any]]:
    try:
        return trial.cluster.list(resource)
    except ApiError:
        return []


def install_definitions(trial: Trial) -> None:
    """Creates the definitions of the sample."""
    trial.load_prerequisites(trial.sample.definitions)


class UnavailableGroup(Rule):
    """The server of an aggregated group does not answer."""

    id = "D2"
    name = "dead"
    provocation = "an APIService whose server does not answer"
    fast = True
    obligation = "one unavailable group does not make discovery fail: the client uses the others"
    advice = "use the groups that discovery returned (ErrGroupDiscoveryFailed of client-go), and skip stale groups"
    source = "Kubernetes API concepts, aggregated discovery (freshness Stale); client-go discovery"
    at_start = True
    expected_seconds = 5.0

    GROUP, VERSION = "dead.check.fakekube.dev", "v1"

    def require(self, baseline: Baseline) -> None:
        if not any(call.path.startswith("/apis") and not call.resource for call in baseline.trial.trace):
            raise NotExercised("the client does not ask for discovery")

    def prepare(self, trial: Trial) -> None:
        service = {"name": "dead", "namespace": "default", "port": 443}
        spec = {"group": self.GROUP, "version": self.VERSION, "groupPriorityMinimum": 100, "versionPriority": 100}
        trial.cluster.create(
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"{self.VERSION}.{self.GROUP}"},
                "spec": {**spec, "service": service, "insecureSkipTLSVerify": True},
            }
        )

    def judge_trace(self, trial: Trial) -> Verdict:
        asked = [call for call in trial.trace.since() if call.path.rstrip("/") in ("/apis", f"/apis/{self.GROUP}/{self.VERSION}")]
        return Verdict.success() if asked else Verdict.not_exercised("the client does not ask for discovery")


class Upgrade(Rule):
    """The API server is replaced by one of the next minor, which has the same objects and the same address."""

    id = "D3"
    name = "minor"
    provocation = "the API server is replaced by one of the next minor"
    distorts = True  # what a server sends while it stops is not recorded
    obligation = "a client survives an upgrade of the API server: it connects again, and repeats discovery if a version is gone"
    advice = "use versions of groups that both minors serve, retry refused connections, and list again after a 410"
    source = "Kubernetes docs, version skew policy and deprecation policy; KEP-4330 (compatibility versions)"
    steps = ("W1", "W8", "R2")
    watches = True
    expected_seconds = 6.0

    def cluster_arguments(self) -> Mapping[str, Any]:
        return {"version": _SECOND_NEWEST}

    def provoke(self, trial: Trial) -> None:
        trial.upgrade(data.NEWEST)
        trial.await_until(lambda: bool(trial.trace.open_watches()), trial.reaction_timeout)

    def judge_trace(self, trial: Trial) -> Verdict:
        return Verdict.success(f"from {_SECOND_NEWEST} to {data.NEWEST}")


#: The minor before the newest one.
_SECOND_NEWEST = list(data.RELEASES)[-2]


RULES = (LateDefinitions, ReinstalledDefinitions, ChangedScope, ChangedPlural, UnavailableGroup, Upgrade)
