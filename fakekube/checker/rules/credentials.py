"""Rules about credentials that change while the client runs (A1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakekube.apimachinery.errors import status
from fakekube.checker.provocations import answer_with
from fakekube.checker.rule import Rule
from fakekube.checker.verdict import NotExercised, Verdict
from fakekube.checker.waits import require_resumption

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fakekube.checker.trial import Trial
    from fakekube.powers.exchange import Exchange


#: Why the rule does not apply to a client whose requests do not have the token.
_NOT_READ = "the client does not send the token of its tokenFile"


class RotatedToken(Rule):
    """The token file is replaced, and the old token expires."""

    id = "A1"
    name = "rotated"
    provocation = "the token file is written anew and the old token expires"
    steps = ("W5",)
    obligation = "the client reads a token file again within a minute, or after a 401"
    advice = "read tokenFile again when it is a minute old, and at once after a 401"
    source = "kubernetes#68164; client-go transport/token_source.go"
    decisive = True
    token_file = True  # with TLS, because client-go sends no token without it
    expected_seconds = 40.0  # 5 for a client that reads the file each time, 70 for one that does so once a minute

    #: How many seconds a client may use a token that it has read.
    MINUTE = 60.0
    #: The token is rotated up to `TIMES` times, as long as the client has used the new one within `SOON` seconds.
    TIMES, SOON = 3, 5.0

    def __init__(self) -> None:
        self.expired: set[str] = set()
        self.expired_at: float | None = None
        """When the last token expired, in seconds of the trial."""

    def cluster_arguments(self) -> Mapping[str, Any]:
        return {"tls": True}

    def explain_before(self, trial: Trial, happened: str) -> str:
        if not trial.trace.count_since(-1):
            return f"the client sends no request over TLS: {happened}"
        return happened if _sends_token(trial) else f"{_NOT_READ}: {happened}"

    def provoke(self, trial: Trial) -> None:
        path = _token_path(trial)
        if not _sends_token(trial):
            raise NotExercised(_NOT_READ)
        if trial.baseline.streams:
            require_resumption(trial)
        expired = self.expired

        def check(exchange: Exchange) -> tuple[int, Any] | None:
            if exchange.resource == "leases":  # a leader that cannot renew has to end
                return None
            return answer_with(status.unauthorized()) if _token(exchange.headers) in expired else None

        trial.faults.on("*").intercept(check, label="the token has expired")
        trial.faults.on("*", path="*").intercept(check, label="the token has expired")
        self._create_account(trial)
        for _ in range(self.TIMES):
            begun = trial.now
            self._rotate(trial, path)
            trial.stimulate()
            if not trial.await_reaction(trial.copies[-1], self.MINUTE + 45.0) or trial.now - begun > self.SOON:
                return

    def _rotate(self, trial: Trial, path: Path) -> None:
        """Writes a new token into the file, makes the old ones expire, and ends the watches."""
        old = path.read_text(encoding="utf-8").strip()
        path.write_text(self._new_token(trial), encoding="utf-8")
        self.expired.add(old)
        self.expired_at = trial.now
        trial.faults.on("watch").end(label="ended").remove()

    @staticmethod
    def _create_account(trial: Trial) -> None:
        """Creates the service account of the new tokens, with the role cluster-admin."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "check-client", "namespace": "default"}}
        trial.cluster.create(account)
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        subject = {"kind": "ServiceAccount", "name": "check-client", "namespace": "default"}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "check-client"},
        }
        trial.cluster.create({**binding, "roleRef": role, "subjects": [subject]})

    @staticmethod
    def _new_token(trial: Trial) -> str:
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
        made = trial.cluster.call("POST", "/api/v1/namespaces/default/serviceaccounts/check-client/token", request)
        return str(made["status"]["token"])

    def find_failure(self, trial: Trial) -> Verdict | None:
        """Judges whether the client still sends the old token more than a minute after the file was replaced."""
        if self.expired_at is None:
            return None
        late = self.expired_at + self.MINUTE + 10.0
        calls = trial.trace.since(trial.provoked_at)
        if not calls or calls[-1].at < late or _token(calls[-1].headers) not in self.expired:
            return None
        return Verdict.failure(
            f"still sends the expired token {calls[-1].at - self.expired_at:.0f} s after the token file was replaced",
            *trial.excerpt(),
        )

    def judge_trace(self, trial: Trial) -> Verdict:
        refused = sum(call.status == 401 for call in trial.trace.since(trial.provoked_at))
        return Verdict.success(f"after {refused} answers of 401")


def _token_path(trial: Trial) -> Path:
    return trial.folder / "token"


def _sends_token(trial: Trial) -> bool:
    """Reports whether a request of the client has the token of its file."""
    token = _token_path(trial).read_text(encoding="utf-8").strip()
    return any(_token(call.headers) == token for call in trial.trace.since())


def _token(headers: Any) -> str:
    named = {name.lower(): value for name, value in headers.items()}
    return str(named.get("authorization", "")).removeprefix("Bearer ").strip()


RULES = (RotatedToken,)
