"""Certificate signing requests: who approves, who signs, who refuses."""

from __future__ import annotations

from tests.differential.life.recordings import scenario
from tests.differential.life.world import World

#: Requests for the subjects that the names tell, made once; their keys are nowhere.
JANE = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIY01JR0NBZ0VBTUNBeER6QU5CZ05WQkFvTUJuUmxZVzB0WVRFTk1Bc0dBMVVFQXd3RWFtRnVaVEJaTUJNRwpCeXFHU000OUFnRUdDQ3FHU000OUF3RUhBMElBQkhLVzN1UXBPaE9BWVpBclBYN2JpOS9MUnpNaVZ4RjhWSzBwCk1vUnQ4RkNIZ3dDQXBVZUQxRkpnN01aUVJGUE9MRG1XemVIcERZQTE5bXI2dStaOWNnU2dBREFLQmdncWhrak8KUFFRREFnTkpBREJHQWlFQWpPVkdFNkEwNGJDNXpweHpJc3lsUW13OXptZXFxZGVmMjZNM3Z5UWlsNGNDSVFDeQpZNkVpSERFaTdJTWFlZFF0UE1mMlk3K25mdG9MK0lkaTNiUEFxS3B2RWc9PQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
KUBELET = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIcU1JR1NBZ0VBTURBeEZUQVRCZ05WQkFvTURITjVjM1JsYlRwdWIyUmxjekVYTUJVR0ExVUVBd3dPYzNsegpkR1Z0T201dlpHVTZiakV3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVI2VnpSQk1ya0hUQ0dBCm1ZelBFYlRlTmhwL01qQkNJLzhvY3lqbjNZV1o4ZEhYbjFIbHlwYjIzaW1yK1ZIRjN1NmpEcUVTU2oyTnc3Z00KN3VTWUVMT1VvQUF3Q2dZSUtvWkl6ajBFQXdJRFJ3QXdSQUlnTlNxSE55aHlWK2oxTDN6NTZ0NE1sYU5YdTd4ZQpZY2hlTWIzNmFMZkc4azRDSUZSWXh1bWhGVGRsT0hTSFVQUHl2TVV5VGlkemVGdkozRWk3bWoxR0NtQngKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="
SERVING = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQkVUQ0J1QUlCQURBd01SVXdFd1lEVlFRS0RBeHplWE4wWlcwNmJtOWtaWE14RnpBVkJnTlZCQU1NRG5ONQpjM1JsYlRwdWIyUmxPbTR4TUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFWUFhUDVheXhYam1JCjluR3NNNU9Sbm85SE9FYmRmcjhEeCtPS2FOcG4vakdRZ1JiVVl4b3I5bk9kS2RIS3UzWlQ3Y09VZDN6UXc0STYKOW5zZ3hOb3ZtS0FtTUNRR0NTcUdTSWIzRFFFSkRqRVhNQlV3RXdZRFZSMFJCQXd3Q29JQ2JqR0hCQW9BQUFjdwpDZ1lJS29aSXpqMEVBd0lEU0FBd1JRSWdTQ1pTaS9ORFlpTDB3UFpyMml5d1ZlZlFIc3h1YXdSbGZ1NnZoVktnCmFESUNJUURNakQ2U2pmQjFyTms5VjVkQ0NNcnhteXY2VFh5WHBpSEhIcHJ4bC9nQnJnPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="


def ask(w: World, name: str, request: str, signer: str, usages: list[str], **spec: object) -> None:
    w.make(
        {
            "kind": "CertificateSigningRequest",
            "metadata": {"name": w.name(name)},
            "spec": {"request": request, "signerName": signer, "usages": usages, **spec},
        }
    )


def decide(w: World, name: str, type_: str = "Approved") -> None:
    now = w.read("certificatesigningrequests", w.name(name)) or {}
    now["status"] = {
        **now.get("status", {}),
        "conditions": [{"type": type_, "status": "True", "reason": "ByHand", "message": "decided"}],
    }
    w.must(w.put(w.at("certificatesigningrequests", w.name(name)) + "/approval", now))


@scenario
def of_a_client(w: World) -> None:
    """Approved, a client's request is signed; denied, it is not; before that nothing happens."""
    for name in ("yes", "no", "open"):
        ask(w, name, JANE, "kubernetes.io/kube-apiserver-client", ["client auth"], expirationSeconds=3600)
    w.settle()
    decide(w, "yes")
    decide(w, "no", "Denied")
    w.until(lambda: (w.read("certificatesigningrequests", w.name("yes")) or {})["status"].get("certificate"))
    w.settle()
    w.dump("certificatesigningrequests", mask=("request", "username", "uid", "groups"))


@scenario
def of_a_kubelet(w: World) -> None:
    """A kubelet's client request is approved by the controller; a serving request is not, and signed once approved."""
    ask(w, "client", KUBELET, "kubernetes.io/kube-apiserver-client-kubelet", ["digital signature", "client auth"])
    ask(w, "serving", SERVING, "kubernetes.io/kubelet-serving", ["digital signature", "server auth"])
    w.until(lambda: (w.read("certificatesigningrequests", w.name("client")) or {})["status"].get("certificate"))
    w.settle()
    w.dump("certificatesigningrequests", mask=("request", "username", "uid", "groups"), label="asked")
    decide(w, "serving")
    w.settle()
    w.dump("certificatesigningrequests", mask=("request", "username", "uid", "groups"), label="approved")


@scenario
def refused(w: World) -> None:
    """What the signer cannot accept fails with a reason; a signer that nobody plays never answers."""
    ask(w, "usage", JANE, "kubernetes.io/kube-apiserver-client", ["server auth"])
    ask(w, "subject", JANE, "kubernetes.io/kubelet-serving", ["digital signature", "server auth"])
    ask(w, "foreign", JANE, "example.com/signer", ["client auth"])
    for name in ("usage", "subject", "foreign"):
        decide(w, name)
    w.settle()
    w.dump("certificatesigningrequests", mask=("request", "username", "uid", "groups"))
