"""The images sample-apiserver and etcd: an extension API server of Kubernetes' tests, and the store that it waits for.

The group wardle.example.com has flunders (v1alpha1 and v1beta1), which refer to a flunder or a fischer, and fischers, which
forbid names of flunders.

Specified by: k8s.io/sample-apiserver (pkg/apis/wardle, pkg/registry/wardle, pkg/admission/plugin/banflunder, pkg/cmd/server).
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from fakekube.apimachinery.errors import status
from fakekube.apimachinery.errors.field import invalid
from fakekube.apiserver.admission import Attributes, Operation, Plugin
from fakekube.apiserver.extension_server import Group
from fakekube.base.objects import Object
from fakekube.net.certificates import credentials
from fakekube.nodes.images.extension_apiserver import serve
from fakekube.nodes.images.programs import flags, wait
from fakekube.nodes.images.servers import Answer, Request, as_json, fetch, listen_http, tls_context
from fakekube.nodes.runtime.program import Program
from fakekube.nodes.runtime.scheduling import sleep

GROUP: Final = "wardle.example.com"
_BETA: Final = f"{GROUP}/v1beta1"
#: Type of a reference → the field of v1beta1 that has it.
_REFERENCES: Final = {"Flunder": "flunderReference", "Fischer": "fischerReference"}


# --- The kinds --------------------------------------------------------------------------------------------------------


def _internal(obj: Object) -> Object:
    """Returns the spec of a flunder in the internal version, whose fields are those of v1beta1."""
    spec = obj.get("spec") or {}
    if obj["apiVersion"] == _BETA:
        return {name: spec[name] for name in (*_REFERENCES.values(), "referenceType") if spec.get(name)}
    kind = spec.get("referenceType") or ("Flunder" if spec.get("reference") else "")
    if kind not in _REFERENCES:
        return {}
    return {"referenceType": kind, **({_REFERENCES[kind]: spec["reference"]} if spec.get("reference") else {})}


def _convert(obj: Object, wanted: str) -> Object:
    """Converts a flunder between its versions."""
    found, spec = {**obj, "apiVersion": wanted}, _internal(obj)
    if wanted != _BETA:
        kind = spec.get("referenceType", "")
        spec = {"referenceType": kind} if kind in _REFERENCES else {}
        if spec and (reference := _internal(obj).get(_REFERENCES[kind])):
            spec["reference"] = reference
    return {**found, "spec": spec}


class _Flunders(Plugin):
    """Sets the defaults of flunders, checks them, and refuses names that a fischer forbids."""

    name = "BanFlunder"
    operations = frozenset({Operation.CREATE, Operation.UPDATE})
    resources = frozenset({(GROUP, "flunders")})
    dynamic = True

    def admit(self, attributes: Attributes) -> None:
        """Sets the reference type, and drops what the internal version has no place for."""
        obj = attributes.object
        assert obj is not None
        obj["spec"] = _convert(obj, obj["apiVersion"])["spec"]
        if attributes.operation is Operation.CREATE:
            fischers = attributes.context.services.list(GROUP, "fischers")
            if any(attributes.name in (one.get("disallowedFlunders") or ()) for one in fischers):
                text = "this name may not be used, please change the resource name"
                raise status.forbidden(GROUP, "flunders", attributes.name, text)

    def validate(self, attributes: Attributes) -> None:
        """Checks the references of a new flunder."""
        assert attributes.object is not None
        found = _problems(_internal(attributes.object)) if attributes.operation is Operation.CREATE else []
        if found:
            errors = [invalid(f"spec.{field}", value, text) for field, value, text in found]
            raise status.invalid(GROUP, "Flunder", attributes.name, errors)


def _problems(spec: Object) -> list[tuple[str, str, str]]:
    """Returns field, value and error of what is wrong in a spec (ValidateFlunderSpec)."""
    flunder, fischer, kind = (spec.get(name, "") for name in ("flunderReference", "fischerReference", "referenceType"))
    checks = (
        (flunder and fischer, "fischerReference", fischer, "cannot be set with flunderReference at the same time"),
        (flunder and kind != "Flunder", "flunderReference", flunder, "cannot be set if referenceType is not Flunder"),
        (fischer and kind != "Fischer", "fischerReference", fischer, "cannot be set if referenceType is not Fischer"),
        (not fischer and kind == "Fischer", "fischerReference", "", "cannot be empty if referenceType is Fischer"),
        (not flunder and kind == "Flunder", "flunderReference", "", "cannot be empty if referenceType is Flunder"),
    )
    found = [(field, value, text) for wrong, field, value, text in checks if wrong][:1]
    if kind not in ("", *_REFERENCES):
        found.append(("referenceType", kind, "must be Flunder or Fischer"))
    return found


def _definition(plural: str, kind: str, scope: str, versions: dict[str, Object]) -> Object:
    """Returns the definition of a kind; the first version is that of the storage.

    Args:
        versions: version → the schemas of the fields.
    """
    served = [
        {
            "name": version,
            "served": True,
            "storage": not number,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            "additionalPrinterColumns": [{"name": "Created At", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
        }
        for number, (version, properties) in enumerate(versions.items())
    ]
    webhook = {"clientConfig": {"url": "https://localhost"}, "conversionReviewVersions": ["v1"]}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec: Object = {"group": GROUP, "names": names, "scope": scope, "versions": served}
    spec["conversion"] = {"strategy": "Webhook", "webhook": webhook} if len(versions) > 1 else {"strategy": "None"}
    return {"metadata": {"name": f"{plural}.{GROUP}"}, "spec": spec, "status": {"acceptedNames": names}}


def _fields(*names: str) -> Object:
    """Returns the schemas of a flunder whose spec has these fields."""
    spec: Object = {"type": "object", "default": {}, "properties": {name: {"type": "string"} for name in names}}
    return {"spec": spec, "status": {"type": "object", "default": {}}}


def _group() -> Group:
    alpha, beta = _fields("reference", "referenceType"), _fields("flunderReference", "fischerReference", "referenceType")
    fischer = {"disallowedFlunders": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}}
    definitions = [
        _definition("flunders", "Flunder", "Namespaced", {"v1alpha1": alpha, "v1beta1": beta}),
        _definition("fischers", "Fischer", "Cluster", {"v1alpha1": fischer}),
    ]
    return Group(definitions, _convert, [_Flunders()])


# --- The programs -----------------------------------------------------------------------------------------------------

#: Flags of every API server that need no effect in a container: the API server of the cluster decides, and nothing is on disk.
_WITHOUT_EFFECT: Final = (
    "audit-log-maxage audit-log-maxbackup audit-log-maxsize audit-log-path audit-policy-file authentication-kubeconfig"
    " authorization-kubeconfig bind-address cert-dir emulated-version etcd-prefix feature-gates kubeconfig"
)
_PATIENCE: Final = 20
_HTTPS: Final = 443


async def sample_apiserver(program: Program) -> int:
    """Serves wardle.example.com, once its etcd answers."""
    defaults = dict.fromkeys(_WITHOUT_EFFECT.split(), "")
    defaults |= {"etcd-servers": "", "secure-port": str(_HTTPS), "tls-cert-file": "", "tls-private-key-file": ""}
    given, _ = flags(program, defaults, first=0)
    if not given["etcd-servers"]:
        return await program.complain("--etcd-servers must be specified")
    if not await _wait_for_etcd(program, given["etcd-servers"].split(",")):
        return await program.complain("unable to create storage backend: context deadline exceeded")
    context = credentials("localhost").context
    if given["tls-cert-file"]:
        context = tls_context(program, given["tls-cert-file"], given["tls-private-key-file"])
    return await serve(program, _group(), int(given["secure-port"]), context)


async def _wait_for_etcd(program: Program, urls: list[str]) -> bool:
    """Waits until one of these answers. Returns False if none does in time."""
    for _ in range(_PATIENCE):
        for url in urls:
            try:
                if fetch(program, f"{url}/health")[0] == 200:
                    return True
            except (OSError, TimeoutError):
                continue
        await sleep(1.0)
    return False


_ETCD_FLAGS: Final = (
    "name data-dir listen-client-urls advertise-client-urls listen-peer-urls initial-advertise-peer-urls initial-cluster"
    " initial-cluster-token initial-cluster-state log-level logger snapshot-count quota-backend-bytes"
)
_ETCD_VERSION: Final = {"etcdserver": "3.6.8", "etcdcluster": "3.6.0", "storage": "3.6.0"}
_ETCD_PAGES: Final[dict[str, Any]] = {"/health": {"health": "true", "reason": ""}, "/version": _ETCD_VERSION}


async def etcd(program: Program) -> int:
    """Serves /health and /version at the port for clients. It stores nothing."""
    given, _ = flags(program, dict.fromkeys(_ETCD_FLAGS.split(), ""), first=0)
    url = (given["listen-client-urls"] or "http://localhost:2379").split(",")[0]

    def handle(request: Request) -> Answer:
        if request.path not in _ETCD_PAGES:
            return Answer("404 page not found\n", 404)
        return Answer(as_json(_ETCD_PAGES[request.path]), headers={"Content-Type": "application/json"})

    with listen_http(program, urlsplit(url).port or 2379, handle):
        return await wait(program)
