"""The rules of what only a server with all gates and all APIs has."""

from __future__ import annotations

import functools
from typing import Any

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
