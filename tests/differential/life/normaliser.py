"""What differs between any two runs of a scenario about a living cluster, replaced by labels.

Replaced are uids by what they belong to, generated suffixes by their rank among their like, times (told apart only from
those before the object's creation), addresses and ports that the scenario did not give, tokens, certificates, and minutes in
the names of CronJobs' jobs. Lists without a promised order are sorted. Left out is what the reference does by chance, and what
kwok, which plays the kubelets there, writes otherwise than a kubelet or not at all.
"""

from __future__ import annotations

import collections
import json
import re
from typing import Any

_ID = re.compile(r"d-[0-9a-f]{8}")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_IP = re.compile(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b")
_SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_TOKEN_VOLUME = re.compile("kube-api-access-" + _SUFFIX)
_MINUTE = re.compile(r"(?<=-)(?!0{8})[1-9]\d{7}(?!\w)")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*-----END CERTIFICATE-----\s*", re.S)
#: Lists in which the real server promises no order.
_SETS = {"conditions", "endpoints", "subsets", "addresses", "notReadyAddresses", "finalizers", "rules"}
#: Events of a server that has just started, and of two writers that met by chance.
_UNRELATED = {"ClusterIPNotAllocated"}
_CHANCE = re.compile("the object has been modified; please apply|skip schedule deleting pod|is being deleted, cannot be assigned")
_TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"
#: Kinds whose pods get random names.
_MAKERS = {"ReplicaSet", "ReplicationController", "DaemonSet", "Job"}
_NODE_INFO = {"architecture", "operatingSystem"}


def seen_by_all(status: dict[str, Any]) -> dict[str, Any]:
    """A pod's status without what a kubelet writes and kwok does not, or otherwise."""

    def container(c: dict[str, Any]) -> dict[str, Any]:
        state = {
            k: {"exitCode": v.get("exitCode"), "reason": v.get("reason")}
            if k == "terminated"
            else {"reason": v.get("reason")}
            if k == "waiting"
            else {}
            for k, v in (c.get("state") or {}).items()
        }
        return {
            "name": c.get("name"),
            "image": c.get("image"),
            "ready": c.get("ready"),
            "restartCount": c.get("restartCount"),
            "state": state,
        }

    out = {
        k: [container(c) for c in v or ()] if k.endswith("ontainerStatuses") else v
        for k, v in status.items()
        if k not in ("observedGeneration", "ephemeralContainerStatuses")
    }
    out["conditions"] = [
        {k: v for k, v in c.items() if k not in ("lastProbeTime", "observedGeneration")}
        for c in status.get("conditions") or ()
        if c["type"] != "PodReadyToStartContainers"
    ]
    return out


class Normaliser:
    """Replaces what differs between any two runs in the dumps of one scenario."""

    def __init__(self, play: dict[str, Any]) -> None:
        self.sent = play["sent"]
        self.id = play["id"]
        self.known: dict[str, list[str]] = {}
        self.generated: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        self.refused: re.Pattern[str] | None = None

    def context(self, known: dict[str, list[str]], objects: list[dict[str, Any]]) -> None:
        self.known.update(known)
        for obj in objects:
            meta = obj["metadata"]
            self.known[meta["uid"]] = [obj.get("kind") or "", meta["name"], meta.get("generateName", "")]
        for _, name, prefix in self.known.values():
            if prefix and re.fullmatch(re.escape(prefix[:58]) + _SUFFIX, name):
                self.generated[name] = prefix[:58].removesuffix("-") + "-~"
        self.long = sorted(self.generated, key=len, reverse=True)
        makers = {name for kind, name, _ in self.known.values() if kind in _MAKERS}
        self.refused = (
            re.compile(rf"\b({'|'.join(re.escape(m) for m in sorted(makers, key=len, reverse=True))})-{_SUFFIX}(?![\w-])")
            if makers
            else None
        )

    def text(self, text: str, born: str = "") -> str:
        has_dash = "-" in text  # as have uids, times, random names and minutes; most texts need only be looked at
        if has_dash:
            text = _UID.sub(self._uid, text)
        if has_dash or text in self.generated:
            for name in self.long:
                if name in text:
                    text = text.replace(name, self.shown.get(name) or self.generated[name])
        if self.refused and has_dash:  # names of what was never made
            text = self.refused.sub(r"\1-~", text)
        text = text.replace(self.id, "0" * 8)
        if has_dash:
            text = _TOKEN_VOLUME.sub("kube-api-access-<random>", text)
            text = _TIME.sub(
                lambda m: (
                    ("<microtime>" if m[1] else "<time>") if not born or m[0][:19] >= born[:19] else "<time before creation>"
                ),
                text,
            )
        if "." in text:
            text = _IP.sub(lambda m: m[0] if m[0] in self.sent or m[0] in ("0.0.0.0", "127.0.0.1") else "<ip>", text)
        if has_dash:
            text = _MINUTE.sub("<minute>", text)
        if "BEGIN CERTIFICATE-" in text:
            text = _PEM.sub("<certificate>", text)
        return text

    def _uid(self, found: re.Match[str]) -> str:
        if found[0] in self.known:
            kind, name, _ = self.known[found[0]]
            return f"<uid {kind} {self.shown.get(name) or self.generated.get(name) or name}>"
        return found[0] if found[0] in self.sent else "<uid>"

    def object(self, obj: dict[str, Any], kind: str, managers: bool, mask: tuple[str, ...]) -> dict[str, Any]:
        born = obj["metadata"].get("creationTimestamp") or ""
        out = {k: v for k, v in obj.items() if k not in ("apiVersion", "kind")}
        meta = {
            k: v
            for k, v in obj["metadata"].items()
            if k not in ("resourceVersion", "uid", "creationTimestamp", "managedFields", "name")
        }
        if managers:
            meta["managedFields"] = sorted(
                (
                    [
                        m.get("manager"),
                        m.get("operation"),
                        m.get("subresource", ""),
                        m.get("apiVersion"),
                        self.fields(m.get("fieldsV1")),
                    ]
                    for m in obj["metadata"].get("managedFields", ())
                    if m.get("manager") != "kwok"
                ),
                key=json.dumps,
            )
        if kind == "EndpointSlice":  # counts how the changes were batched
            meta.pop("generation", None)
        if _TRIGGER in (meta.get("annotations") or {}):  # there or not, by how the changes were batched
            meta["annotations"] = {k: v for k, v in meta["annotations"].items() if k != _TRIGGER}
            if not meta["annotations"]:
                del meta["annotations"]
        out["metadata"] = meta
        if kind == "Secret" and obj.get("type") == "kubernetes.io/service-account-token":
            out["data"] = {k: f"<{k}>" if k != "namespace" else "<ns>" for k in obj.get("data") or {}}
        if kind == "Node" and "nodeInfo" in (obj.get("status") or {}):
            info = obj["status"]["nodeInfo"]
            out["status"] = {
                **obj["status"],
                "nodeInfo": {k: v if k in _NODE_INFO else "<of the node>" for k, v in info.items() if k in _NODE_INFO},
            }
        if kind == "ConfigMap" and obj["metadata"]["name"] == "kube-root-ca.crt" and (obj.get("data") or {}).get("ca.crt") == "":
            out["data"] = {**obj["data"], "ca.crt": "<certificate>"}  # a server without TLS has none
        if kind == "CertificateSigningRequest" and (obj.get("status") or {}).get("certificate"):
            out["status"] = {**obj["status"], "certificate": "<certificate>"}
        if kind == "Pod" and isinstance(out.get("status"), dict):
            out["status"] = seen_by_all(out["status"])
        if kind == "Node" and isinstance(out.get("status"), dict):
            status = {
                k: v
                for k, v in out["status"].items()
                if k in ("allocatable", "capacity", "conditions", "nodeInfo", "volumesAttached")
            }
            status["conditions"] = [
                {k: v for k, v in c.items() if not k.startswith("last")}
                for c in status.get("conditions", ())
                if c["type"] != "NetworkUnavailable"
            ]
            out["status"] = status
        value = self.value(out, "", born, mask)
        if kind in ("Endpoints", "EndpointSlice"):  # the real order is that of a hash
            for place in (value, *(value.get("subsets") or ())):
                if isinstance(place.get("ports"), list):
                    place["ports"].sort(key=lambda p: json.dumps(p, sort_keys=True))
        for key in ("labels", "annotations"):
            if key in value["metadata"]:
                value["metadata"][key] = {
                    k: re.sub("<time before creation>", "<time>", v) for k, v in value["metadata"][key].items()
                }
        return value

    def fields(self, value: Any) -> Any:
        return self.value(value, "", "", ())

    def value(self, value: Any, key: str, born: str, mask: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            out = {}
            for k, v in value.items():
                if k == "resourceVersion" or k in mask:
                    continue
                if k in ("nodePort", "healthCheckNodePort") and str(v) not in self.sent:
                    v = "<port>"
                out[self.text(k)] = self.value(v, k, born, mask)
            return out
        if isinstance(value, list):
            items = [self.value(v, key, born, mask) for v in value]
            return (
                sorted(items, key=lambda i: (i.get("type", "") if isinstance(i, dict) else "", json.dumps(i, sort_keys=True)))
                if key in _SETS
                else items
            )
        return self.text(value, born) if isinstance(value, str) else value

    def events(self, events: list[dict[str, Any]], known: dict[str, list[str]]) -> dict[str, int]:
        """The multiset of (kind, reason, type, message, component)."""
        self.shown = {}
        self.context(known, [])
        count: collections.Counter[str] = collections.Counter()
        for e in events:
            if e.get("reason") in _UNRELATED or _CHANCE.search(e.get("message", "")):
                continue
            if (e.get("involvedObject", {}).get("fieldPath") or "").startswith("spec.ephemeralContainers"):
                continue  # kwok starts none
            who = (e.get("source") or {}).get("component") or e.get("reportingComponent") or ""
            involved = e.get("involvedObject", {})
            count[
                " | ".join(
                    (
                        involved.get("kind", ""),
                        self.text(involved.get("name", "")),
                        e.get("reason", ""),
                        e.get("type", ""),
                        who,
                        self.text(e.get("message", "")),
                    )
                )
            ] += 1
        return dict(sorted(count.items()))


def normalise(play: dict[str, Any]) -> dict[str, Any]:
    """One scenario's play in a form that two servers can share."""
    n = Normaliser(play)
    groups: dict[int, list[dict[str, Any]]] = collections.defaultdict(list)
    for d in play["dumps"]:
        if "objects" in d:
            groups[d["group"]].append(d)
    done: set[int] = set()
    dumps = []
    for d in play["dumps"]:
        if "fact" in d:
            n.shown = {}
            n.context(d["known"], [])
            dumps.append({"label": n.text(d["label"]), "value": n.value(d["fact"], "", "", ())})
            continue
        if d["group"] not in done:  # name what was generated by its place among its like
            done.add(d["group"])
            group = groups[d["group"]]
            n.shown = {}
            n.context(d["known"], [{**o, "kind": g["kind"]} for g in group for o in g["objects"]])
            by_prefix: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
            for g in group:
                for o in g["objects"]:
                    name = o["metadata"]["name"]
                    if name in n.generated:
                        content = json.dumps(n.object(o, g["kind"], g["managers"], tuple(g["mask"])), sort_keys=True)
                        by_prefix[g["kind"] + n.generated[name]].append((content, name))
            shown = {}
            for like in by_prefix.values():
                for i, (_, name) in enumerate(sorted(like), 1):
                    shown[name] = f"{n.generated[name]}{i}"
            n.shown = shown
        value: dict[str, Any] = {}
        for o in d["objects"]:
            value[n.text(o["metadata"]["name"])] = n.object(o, d["kind"], d["managers"], tuple(d["mask"]))
        dumps.append({"label": n.text(d["label"]), "value": dict(sorted(value.items()))})
    return {"dumps": dumps, "events": n.events(play["events"], play["known"])}
