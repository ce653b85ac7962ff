"""The rules of what only a server with all gates and all APIs has."""

from __future__ import annotations

import functools
from typing import Any

from tests.differential.client import TABLE, Client
from tests.differential.definitions import note
from tests.differential.pacing import until
from tests.differential.registry import scenario
from tests.differential.rule_tables import State, tell

# fmt: off
tell_of = functools.partial(tell, module="rules_alpha")

#: Name → a public key, and the signature of "u" by its private key.
KEYS = {
    "ed25519": ("MCowBQYDK2VwAyEAi2b3VRDBptFnKIj0bUJTmRxCHoZ40Md2+B8vFt9AXqA=", "Wsm9DyHhJ5OfEGDnonXXEec2RnAGbc81ePbLFA3n8WXSZL1wtb/9aoH0paPhZcfnaIgTMpA7iQitfomWZyp9Ag=="),
    "p256": ("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEndtCcpGpIHsKGsR1BsyY4zajOZ4etsYmR34NCYEzLTzibhAbrq80E24zMIQLAe13wdE97ry0XFitI4D60CDFwg==", "MEUCIAdbW2IzluAU4EYat29th5OLOH2O+a0X9m1ilNloDRVVAiEAr0mRmWLUc6vm6mAJEo9PyXBx0+NVs+LLEBYYC3bptWk="),
    "p384": ("MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE73xjMHVxplF7cgLP0iyb6WYm6y6xbuBnZC49QInSqkNCUIYkTyZmoKgYjAqYaCsfP/wWxUDOu4Y2EF29iLt5pc4oWZqeiTyevv456oUtchdfCfjmULUmUpIQ4T6OaRxS", "MGQCMG2FHv3qDYvm6dtFQkuiUkUkUcS5gqTszR/abLNQNhAyTrcjrvEq4z9vWFi005QbJAIwWCEaYJuDhf4NiuhI+MNgkF8VRbfCc9Z8PFpPVUzBiBqPfnN5+xm2XTxkZFtZZcux"),
    "p521": ("MIGbMBAGByqGSM49AgEGBSuBBAAjA4GGAAQAkaIQB/fxThYkfh0VOR+dtFQP2EOX6t/5Pm/CWdFdMogRn/BVUCvkMNbxsgaNHOhUdmd/TatX+O14mVJXtaTGfzoAQ3dfQYqUNwrwyV2x4b4cs+EbUAFtb430paUaAr1+eMu6MkvVWAZaICZihF7ZPit4/Ek5SaZwJIp6+VIXtGIOzD4=", "MIGIAkIBvTjdAM+rISZP4nB9xel/MorOapmV8b9YI0rnY7ZD+3wfoA4iCclGOE13WEHOAlVybvWcHnlpYyRJGXGdyGGE7zkCQgFDbXqix9RBOQmoJ8EEFYxUqNQSlU6KNg2iCIKGO3/0BC+c9OB5Y5pcbwXwovOQvlKkWF8ISB4+Z9c+LD7CSPrTZg=="),
    "p224": ("ME4wEAYHKoZIzj0CAQYFK4EEACEDOgAEOIwhYuD9kI9ONLJ6F7DXV70yyVxmJ9cFb8IPMVSJsWB9mZIEm9y7wbKJDEatuQK6/Vgw2hBL1os=", "MD4CHQCFXaIybdAt8dY5numpfw+camIwYe3wCJM1YJcHAh0ApqaXi/K7uVqqSvoYjwAM0oO9IK4/OVO/1SJGGw=="),
    "rsa2048": ("MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwoCtJzjgTti8uORbZhwj5C7dgkWqYlNAToneQCxkgRVAMlvBauUjuIvyCKBwJSIjs8PFwu58e3DLnx4aOlnLaV+66gHuZplN4fr8KPrUCIrOT8lNCX8Ee8Bq+h90topIdxfWIV8PVpi1MqIs7UdItntRotnmzsEnwBMvRwhDp5xHyasNSRTkFJuE6m2hEGA/p4+1iHa6K6CRLt/9dHwDifqVzlAROx48N0P4Jt9IqhYUfq6yATKoD5URtAGgBqCGG3SeVKjwiaS64RTj+JT589F28Tqf6pozxjv9W1o7kbPlyiMxm1y1JFcIbZQI0qdj0LfmWYPrx4kKtFv7uY8t/wIDAQAB", "gEPMd86799IREX1hueq34uz+fpQJF8wclzQzlVxO4aJXJJSvBpAgm+IKTlB15fVNB2PbMSl2dK7bCFw+FFcjj5ZAVPAdLjXLzMAz3V3oqfB/XsV0b9EUyeQd/j+yYewpMkK7+3uTbnaW5T7VPsixGnWS+rdFyFD3KGVQDTjHURF4OoRlctY/FJzotJuufg3YshpLsb6tyTcg6Y/SIVvP4N/K68AlrJsSKfmK78Oh1EGGmA/0ipBohmXiTIWYjxFyC5Cmxa/dQFsPYXnqhP5zOTR8eOg1y0Gt4X4sC4hLEY1rDoet/0vdXxnwjWgjJZr3U0p9zfx6egxFbOTw+prZvQ=="),
    "rsa3072": ("MIIBojANBgkqhkiG9w0BAQEFAAOCAY8AMIIBigKCAYEA2fXCS/U9GZXhguM6BYph3Z6SuB1ifHYzAQM6/JundmwBf7XKTk3MCNxBn4hsTJdTdeTxFpixyvd0cEhGMBRV9jG2bjGGOITy5NnrxQkFhHG0GA81vldBwYgpxkLIBnOszNG9iIcAkRrKin99Xp5wLXOvetC6ahnpW38WwpWeKRoFrV2vULwtWnTM6Hsjc+xgdDTbIBDZbw8WMYPvCjRLi+G+xaH/+DKfijU9qpOqDYKSZ/jgLWstv1xAhUmVPoycJZLg9y2d8ZodI9VdrJT9ix8uhMiHFlB9xp6mTL3KWzwE6URsOr5ImpNtP2Y3QWKEQX3sVyyko2xhMY5HZpzTW6i7AwUUHw/Fw5IN3srbLsOLKt2sX6Shxq17BEwY40FzlYHX+ZJf/s270ujb/MvzJIoI1+KrOgvEa7bVhwxGSerL5xlau120J7QI9s0z0Plv2CQ6Q+zhhmAk6/+sL73AZ7bn2uKdtudcsWOw2/Qx/CCrxPKpJRNUXcONndTGgekFAgMBAAE=", "tJfjV1fJfj131LhMKb/r8WgkyPDKHGeYPAxZjc77shEQVkzsu0JrsGE/fYcmVdDQGlbc+odixIwH6NCx4rewZEt7FWJTt788ntMjMmtVYW3fGrZQ0FNNunM3y02XqtXucH+UqgsaPe5vkVdmmDqHhQXVwxJoB6+qdH7x/+J74BIO7Pr2w+fhyjCTI0UuMbW/vZebpMw7CaC+kk7CHZTzIZ6GKdeEO+1VVdaXXKxOHtmXsO4d6cCosGq6Upob7mdrKpDlragP7OEb6TfIZfcRpYUbON4F/9NPIJw152XXg6jN5nYd8HDhq+gm5Rg1yHSvDI5vYJsbGja9cM6wyYL8xaxeiV7MZkRFxDGWpPyTyHhUNx3LAu2gVM+bnev9oPaTdqcoE0n67M9zffyPq32qbGmGA8tobdAoAUOuD17rsORn27uQe/VGVWtI0Ec+wNeWXb8NWa5b8k140oCv8SCyZebu8zVOs8tXgyscby6aHPM45CSeMMzd5VuiziOowVKd"),
    "dsa": ("MIIBtjCCASsGByqGSM44BAEwggEeAoGBAMN188s6fAVbvF+ox77rzJ/HUv0K4zKACYmtsWAgRy1DJ6ht9usbj8a15BWchTJh2MZjc+j7BUY3lRdt3dF6MTrj7wbGgN1klWA0an6pW2sioVwXknDqWFCegN5PMQDOfHLXjVqbVqRX6SJopEWhQ2IoSf/NV8nnaElK2K7Y33ARAhUAks3pcZM4RfUjfztkdBlsdSvKeBUCgYBJtEE/L59G5GuEoEcmeJ1Ji37FLLKXdi7LvqfOcGAh1iXQv0uzG4/PcX5sEHh5EjXiwSc1jNuhM4oVmJoK9VsLjBnLwZVh2MwiyXa9R1uBOTK9iuopMtp790mR5yYJOg4A3QEKRynVVxsh81kjYGJY8QH180opY1OTLJqvso04CgOBhAACgYAxQhrdE6x/eWRbII9gdDIGd9o87FWoHDtZ2mqdQf2+7tztiv0einvTkcwnNgoFmyMvjBZqHq6nVzIQpfuEvRf1Pzzd0EAuLx9c/UzMJ6FG2+otPlBebtUUuGOxgpkVuBmNFB2MWbMnF1Za3s9wZAvnkqAbT4wATuYwVLRVUM+Yzg==", "eA=="),
    "x25519": ("MCowBQYDK2VuAyEAnaORk+bZZvhaV5Y/MGUfEpHGLYVquz+D3hBQUcR+GXs=", "eA=="),
}
REQUEST: dict[str, Any] = {"spec": {
    "signerName": "a.b/c", "podName": "p", "podUID": "u", "serviceAccountName": "s", "serviceAccountUID": "v", "nodeName": "n", "nodeUID": "w", "maxExpirationSeconds": 86400,
    "pkixPublicKey": KEYS["ed25519"][0], "proofOfPossession": KEYS["ed25519"][1],
}}
tell_of("pod_certificate_requests", "certificates.k8s.io/v1beta1/podcertificaterequests", REQUEST, create=[
    *({"spec.pkixPublicKey": key, "spec.proofOfPossession": proof} for key, proof in KEYS.values()),
    *({"spec.pkixPublicKey": key, "spec.proofOfPossession": "eA=="} for key, _ in KEYS.values()),
    {"spec.pkixPublicKey": "eA=="},
    {"spec.pkixPublicKey": None},
    {"spec.proofOfPossession": None},
    {"spec.proofOfPossession": None, "spec.pkixPublicKey": None},
    {"spec.podUID": "other"},
    {"spec.pkixPublicKey": "QUFB" * 4000},
    {"spec.proofOfPossession": "QUFB" * 4000},
    {"spec.maxExpirationSeconds": 3599},
    {"spec.stubPKCS10Request": "eA=="},
], states=[State(update=[{"spec.podName": "q"}, {"metadata.labels": {"a": "b"}}])])

POD: dict[str, Any] = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}
ALLOCATED = "status.nodeAllocatableResourceClaimStatuses"
GIVEN = {"resourceClaimName": "x", "containers": ["c"], "mapping": [{"name": "cpu", "quantity": "1"}]}
tell_of("pods", "v1/pods", POD, create=[
    *({"spec.containers[0].lifecycle": {"stopSignal": signal}, **more} for signal in ("SIGTERM", "SIGUSR1", "Nope", "") for more in ({}, {"spec.os": {"name": "linux"}}, {"spec.os": {"name": "windows"}})),
], states=[State(base={"spec.resourceClaims": [{"name": "r", "resourceClaimName": "x"}]}, status={ALLOCATED: [GIVEN]}, status_update=[
    *({ALLOCATED: [item]} for item in (
        {}, {"resourceClaimName": "y"}, {"resourceClaimName": ""}, {"resourceClaimName": "A_"}, {"resourceClaimName": "x"}, {**GIVEN, "containers": ["z", ""]}, {**GIVEN, "mapping": [{}]},
        *({**GIVEN, "mapping": [{"name": name, "quantity": "1"}]} for name in ("memory", "hugepages-2Mi", "ephemeral-storage", "example.com/x", "")),
        {**GIVEN, "mapping": [{"name": "cpu", "quantity": "-1"}]}, {**GIVEN, "mapping": [{"name": "cpu"}]}, {**GIVEN, "mapping": [{"name": "cpu", "quantity": "1"}] * 2},
        {**GIVEN, "overhead": [{}]}, {**GIVEN, "overhead": [{"name": "cpu"}]}, {**GIVEN, "overhead": [{"name": "x", "perPod": "1"}]}, {**GIVEN, "overhead": [{"name": "cpu", "perPod": "-1", "perContainer": "-2"}]}, {**GIVEN, "overhead": [{"name": "cpu", "perPod": "1"}] * 2},
    )),
    {ALLOCATED: [GIVEN, GIVEN]},
    {ALLOCATED: None},
    {ALLOCATED: []},
    {ALLOCATED: [{"resourceClaimName": "z"}], "status.resourceClaimStatuses": [{"name": "r", "resourceClaimName": "z"}]},
], calls=[
    ("PATCH", "resize", {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]}}),
])])

HEALTH = {"status": "StorageDegraded", "reason": "R", "message": "m"}
DRIVER = {"name": "d", "healthConditions": [HEALTH]}
tell_of("csi_nodes", "storage.k8s.io/v1/*csinodes", {"spec": {"drivers": [{"name": "d", "nodeID": "n"}]}}, create=[{"status": {"storageHealth": [DRIVER]}}], states=[State(update=[{"status": {"storageHealth": [DRIVER]}}], status_update=[
    {"status.storageHealth": [DRIVER]},
    {"status.storageHealth": [DRIVER, DRIVER]},
    *({"status.storageHealth": [{**DRIVER, "name": name}]} for name in ("", "A_", "a" * 64)),
    *({"status.storageHealth": [{"name": "d", "healthConditions": [{**HEALTH, name: value}]}]} for name, value in (
        ("status", ""), ("status", "Nope"), ("reason", ""), ("reason", "1"), ("reason", "R" * 257), ("message", "m" * 1025), ("message", ""), ("accessMode", "Nope"), ("accessMode", "ReadWriteOnce"), ("volumeMode", "Nope"), ("volumeMode", "Block"), ("volumeMode", ""),
    )),
    {"status.storageHealth": [{"name": "d", "healthConditions": [HEALTH] * 17}]},
    {"status.storageHealth": [{"name": "d", "healthConditions": [HEALTH] * 16}]},
    {"status.storageHealth": [{}]},
    {"spec.drivers[0].nodeID": "m", "metadata.labels": {"a": "b"}, "status.storageHealth": [DRIVER]},
])])

SET = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "serviceName": "s", "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}}}
STRATEGIES: list[dict[str, Any]] = [{"spec.updateStrategy": strategy} for strategy in (
    {"type": "Recreate"}, {"type": "Recreate", "rollingUpdate": {"partition": 1}}, {"type": "Nope"}, {"type": "OnDelete"}, {}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "101%"}},
)]
tell_of("stateful_sets", "apps/v1/statefulsets", SET, create=STRATEGIES, states=[State(update=STRATEGIES)])

# ---------------------------------------------------------------- devices

REQUEST_OF_CLAIM: dict[str, Any] = {"name": "r", "exactly": {"deviceClassName": "c"}}
CLAIM = {"spec": {"devices": {"requests": [REQUEST_OF_CLAIM], "constraints": [{"matchAttribute": "a.b/c"}]}}}
DERIVED = "spec.devices.requests[0].exactly.derivedAttributes"
tell_of("derived_attributes", "resource.k8s.io/v1/resourceclaims", CLAIM, create=[
    *({DERIVED: [{"name": name, "expression": "device.driver"}]} for name in ("a.b/c", "a.b/d", "c", "", ".")),
    *({DERIVED: [{"name": "a.b/c", "expression": source}]} for source in ("device.driver", "1", "true", "1.5", "[1]", "[1.5]", "[device.driver]", "semver('1.2.3')", "device.attributes['a'].b", "device.capacity['a'].b", "x", "", "{'a': 1}", "dyn(1)")),
    {DERIVED: [{"name": "a.b/c", "expression": "1"}] * 2},
    {DERIVED: [{"name": "a.b/c", "expression": "1"}] * 33},
    {DERIVED: [{}]},
    *({DERIVED: [{"name": "a.b/c", "expression": "1"}], "spec.devices.constraints": constraints} for constraints in ([], [{"matchAttribute": "a.b/c", "requests": ["r"]}], [{"distinctAttribute": "a.b/c", "requests": ["r"]}], [{"matchAttribute": "a.b/d"}])),
    *({"spec.devices.requests": [{"name": "r", "firstAvailable": [{"name": "o", "deviceClassName": "c", "derivedAttributes": [{"name": "a.b/c", "expression": "1"}]}]}], "spec.devices.constraints": [{"matchAttribute": "a.b/c", **of}]} for of in ({}, {"requests": ["r"]}, {"requests": ["r/o"]}, {"requests": ["x"]})),
    {"spec.devices.requests[0].firstAvailable": [{"name": "o", "deviceClassName": "c"}], DERIVED: [{"name": "x", "expression": ""}]},
])
SLICE = {"spec": {"driver": "a.b", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}, "nodeName": "n", "devices": [{"name": "d", "allowMultipleAllocations": True, "capacity": {"c": {"value": "10"}}}]}}
POLICY = "spec.devices[0].capacity[c].requestPolicy"
tell_of("ranges_of_capacities", "resource.k8s.io/v1/*resourceslices", SLICE, create=[
    *({POLICY: {"default": "1", "validRange": span}} for span in (
        {"min": "1", "step": "0"}, {"min": "1", "step": "-1"}, {"min": "-1", "step": "1"}, {"min": "1", "max": "20E", "step": "1"}, {"min": "1", "step": "20E"}, {"min": "0.5", "step": "0.5"}, {"min": "0.5", "step": "0.3"},
        {"min": "0.5", "max": "2.5", "step": "1"}, {"min": "1", "max": "1500000u", "step": "1"}, {"min": "1", "max": "3", "step": "2"}, {"min": "1n"}, {"min": "1", "step": "1n"},
    )),
    {POLICY: {"default": "1.5", "validRange": {"min": "1", "step": "1"}}},
    {POLICY: {"default": "1.5", "validRange": {"min": "1", "step": "0.5"}}},
    *({POLICY: {"default": "1", "validValues": values}} for values in (["1", "1"], ["1", "1.2"], ["1", "1e0"])),
])

# ---------------------------------------------------------------- groups of pods, evictions

GROUP: dict[str, Any] = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}}
DONE = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2020-01-01T00:00:00Z"}
tell_of("statuses_of_groups", "scheduling.k8s.io/v1beta1/podgroups", GROUP, states=[State(status_update=[
    *({"status.conditions": items} for items in ([DONE], [{**DONE, "status": "x,y", "reason": ""}], [DONE, DONE], [{}])),
    *({"status.resourceClaimStatuses": [{"name": name}]} for name in ("c", "d")),
    {"metadata.annotations": {"a": "b"}, "metadata.finalizers": ["\u00e9"], "spec.schedulingPolicy": {"basic": {}}},
])])
UID = "11111111-2222-3333-4444-555555555555"
EVICTION: dict[str, Any] = {"spec": {"target": {"pod": {"name": "p", "uid": UID}}}}
ASKED = {"spec": {**EVICTION["spec"], "requester": "a.b/c", "intent": "Eviction"}}
TARGETS: list[dict[str, Any]] = [{"spec.target": target} for target in ({}, {"pod": {}}, {"pod": {"name": "A_", "uid": "x"}}, {"pod": {"name": "p", "uid": UID.upper()}}, {"pod": {"name": "q", "uid": UID}})]
REQUESTERS = [{"spec.requester": name} for name in ("", "a", "a/b", "a.b/c/d", "x.k8s.io/a", "k8s.io/a", "X.KUBERNETES.IO/a", "a.b/", "a b/c")]
INTENTS = [{"spec.intent": intent} for intent in ("", "Withdrawn", "Nope")]
EVICTED = {**DONE, "type": "TargetEvicted"}
STATUSES: list[dict[str, Any]] = [{f"status.{field}": value} for field, value in (
    ("observedGeneration", 0), ("observedGeneration", 1), ("observedGeneration", 3), ("observedGeneration", None), ("conditions", [EVICTED]), ("conditions", [{**EVICTED, "status": "False"}]), ("conditions", [{**EVICTED, "reason": "S"}]), ("conditions", [{}]), ("conditions", []),
)]
tell_of("eviction_requests", "lifecycle.k8s.io/v1alpha1/evictionrequests", ASKED, create=[{}, {"metadata.name": "A"}, *TARGETS, *REQUESTERS, *INTENTS], states=[
    State(update=[{}, *TARGETS, *REQUESTERS, *INTENTS, {"metadata.resourceVersion": None}], status={"status.observedGeneration": 2, "status.conditions": [EVICTED]}, status_update=STATUSES),
])
tell_of("evictions", "lifecycle.k8s.io/v1alpha1/evictions", EVICTION, create=[{}, *TARGETS], states=[State(
    update=[{}, *TARGETS], status={"status.observedGeneration": 2, "status.conditions": [EVICTED]}, status_update=[
        *STATUSES, *({"status.requesters": items} for items in ([{"name": "a.b/c", "intent": "Eviction"}], [{"name": "a", "intent": "x"}], [{}], [{"name": "a.b/c", "intent": "Withdrawn"}] * 2)),
    ],
)])
RESPONDERS: list[dict[str, Any]] = [{"spec.evictionResponders": items} for items in (
    [{"name": "a.b/c", "priority": 1000}], [{"name": "a.b/c", "priority": 999}], [{"name": "a.b/c", "priority": -1}], [{"name": "a.b/c", "priority": 100001}], [{"name": "a.b/c"}], [{}], [{"name": "x.k8s.io/a", "priority": 1000}], [{"name": "a", "priority": 1000}],
    [{"name": "a.b/c", "priority": 1000}] * 2, [{"name": f"a.b/c{number}", "priority": 1000} for number in range(11)],
)]
tell_of("responders", "v1/pods", POD, create=[*RESPONDERS, {**RESPONDERS[0], "spec.schedulingGroup": {"podGroupName": "g"}}])
tell_of("responders_of_templates", "apps/v1/deployments", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}}}, create=[
    {path.replace("spec.", "spec.template.spec.", 1): value} for edit in RESPONDERS[1:6] for path, value in edit.items()
])

# ---------------------------------------------------------------- sizes of volumes, tokens for webhooks

SIZED: dict[str, Any] = {"spec": {"containers": POD["spec"]["containers"], "volumes": [{"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, {"name": "d", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "u", "emptyDir": {"medium": "Memory"}}]}}
tell_of("resizes_of_volumes", "v1/pods", SIZED, states=[State(calls=[("PUT", "resize", edit) for edit in (
    {"spec.volumes[0].emptyDir.sizeLimit": "2Gi"}, {"spec.volumes[0].emptyDir.sizeLimit": None}, {"spec.volumes[0].emptyDir.sizeLimit": "0"}, {"spec.volumes[0].emptyDir.medium": ""}, {"spec.volumes[0].name": "x"}, {"spec.volumes[1].emptyDir.sizeLimit": "2Gi"},
    {"spec.volumes[2].emptyDir.sizeLimit": "1Gi"}, {"spec.volumes[2].emptyDir": None, "spec.volumes[2].configMap": {"name": "a"}}, {"spec.volumes": []},
)])])


@scenario
def tokens_for_webhooks(client: Client) -> None:
    """A token that is bound to a webhook configuration, for reviews of one group."""
    hook = {"name": "h.example.com", "clientConfig": {"url": "https://a.example.com/x"}, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "rules": [{"apiGroups": ["a.example.com"], "apiVersions": ["v1"], "resources": ["nothings"], "operations": ["CREATE"]}]}
    configuration = client.name("w")
    client.post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {"metadata": {"name": configuration}, "webhooks": [hook]}, silent=True)
    client.post(f"/api/v1/namespaces/{client.ns}/serviceaccounts", {"metadata": {"name": "s"}}, silent=True)
    version = "admissionregistration.k8s.io/v1"
    reference = {"apiVersion": version, "kind": "ValidatingWebhookConfiguration", "name": configuration}
    wanted = {"audiences": ["https://a.example.com/x"], "boundObjectRef": reference, "attestations": {"admissionReviewAPIGroups": ["a.example.com"]}}
    path = f"/api/v1/namespaces/{client.ns}/serviceaccounts/s/token"

    def ask(**change: Any) -> None:
        client.post(path, {"spec": {**wanted, **change}})

    ask()
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["authentication.k8s.io"], "resources": ["admissionReviewAPIGroups"], "verbs": ["attest"]}
    client.post(f"/apis/{group}/v1/clusterroles", {"metadata": {"name": configuration}, "rules": [rule]}, silent=True)
    client.post(f"/apis/{group}/v1/clusterrolebindings", {"metadata": {"name": configuration}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": configuration}, "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": client.ns}]}, silent=True)
    until(lambda: client.post(path, {"spec": wanted}, silent=True).status != 403)
    for audiences in ([], ["a", "b"], ["https://kubernetes.default.svc.cluster.local"], ["https://b.example.com"]):
        ask(audiences=audiences)
    for attestations in ({}, {"x": ["a"]}, {"admissionReviewAPIGroups": []}, {"admissionReviewAPIGroups": ["a", "b"]}, {"admissionReviewAPIGroups": [""]}, {"admissionReviewAPIGroups": ["A_"]}, {"admissionReviewAPIGroups": ["b.example.com"]}):
        ask(attestations=attestations)
    for change in ({"name": "gone"}, {"kind": "MutatingWebhookConfiguration"}, {"kind": "X"}, {"apiVersion": "admissionregistration.k8s.io/v1beta1"}, {"uid": "x"}):
        ask(boundObjectRef={**reference, **change})
    ask(boundObjectRef=None)
    ask(boundObjectRef=None, attestations=None)
    client.delete(f"/apis/{version}/validatingwebhookconfigurations/{configuration}", silent=True)
    for plural in ("clusterrolebindings", "clusterroles"):
        client.delete(f"/apis/{group}/v1/{plural}/{configuration}", silent=True)

RESOURCE = "spec.devices[0].nodeAllocatableResources"
PART = {"mapping": {"deviceMultiplier": "0"}}
tell_of("resources_of_nodes", "resource.k8s.io/v1/*resourceslices", SLICE, create=[
    *({RESOURCE: {name: PART}} for name in ("cpu", "memory", "hugepages-2Mi", "ephemeral-storage", "pods", "x", "a.b/c", "")),
    *({RESOURCE: {"cpu": {"mapping": mapping}}} for mapping in (
        {}, {"capacityKey": ""}, {"capacityKey": "c"}, {"capacityKey": "d"}, {"capacityKey": "", "capacityMultiplier": "1"}, *({"capacityKey": key, "capacityMultiplier": amount} for key in ("c", "d") for amount in ("-1", "0")), {"capacityKey": "d", "capacityMultiplier": "0.5"},
        {"capacityMultiplier": "1"}, {"deviceMultiplier": "-1"}, {"deviceMultiplier": "0", "capacityKey": "c", "capacityMultiplier": "1"},
    )),
    *({RESOURCE: {"cpu": {"overhead": overhead}}} for overhead in ({}, {"perPod": "-1"}, {"perContainer": "-1"}, {"perPod": "-1", "perContainer": "-1"})),
    {RESOURCE: {"cpu": {}}}, {RESOURCE: {"a.b/c": {}}}, {RESOURCE: {"cpu": {**PART, "overhead": {}}}},
], states=[State(update=[{RESOURCE: {"x.y/z": {}}}])])


@scenario
def tables_of_lease_candidates(client: Client) -> None:
    """Columns and cells of LeaseCandidates."""
    for version in ("v1alpha2", "v1beta1"):
        path = f"/apis/coordination.k8s.io/{version}/namespaces/{client.ns}/leasecandidates"
        spec = {"leaseName": "l", "binaryVersion": "1.37.0", "emulationVersion": "1.36.0", "strategy": "OldestEmulationVersion"}
        for name, emulated in (("a", "1.36.0"), ("b", "1.37.0")):
            client.post(path, {"metadata": {"name": f"{name}-{version}"}, "spec": {**spec, "emulationVersion": emulated}})
        for target in (path, f"{path}/a-{version}"):
            client.get(target, headers={"Accept": TABLE})


@scenario
def priorities_of_all_versions(client: Client) -> None:
    """The priorities of each group and version, as its APIService says them."""
    items = client.get("/apis/apiregistration.k8s.io/v1/apiservices", silent=True).get("items")
    note(client, "priorities", sorted([i["metadata"]["name"], i["spec"]["groupPriorityMinimum"], i["spec"]["versionPriority"]] for i in items if "example" not in i["metadata"]["name"]))
