"""The Go names of fields, which the error messages of the generated code contain.

They follow from the JSON names by Go's conventions (`podIP` → PodIP, `dnsPolicy` → DNSPolicy); a table has the
exceptions.

Specified by: k8s.io/api/*/types.go.
"""

from __future__ import annotations

import re
from typing import Final

#: The first words of JSON names that Go capitalizes.
_INITIALISMS: Final = frozenset((
    "api", "aws", "ca", "cel", "cidr", "csi", "dns", "fc", "fs", "gce", "gid", "gmsa", "grpc", "http", "id", "ip", "iqn",
    "iscsi", "json", "nfs", "os", "pd", "pkix", "qos", "rbd", "se", "ssl", "tcp", "tls", "ttl", "tty", "uid", "url",
))  # fmt: skip
_FIRST_WORD: Final = re.compile("[a-z]+").match

#: The exceptions that apply to all structs.
_IRREGULAR: Final = {
    "$ref": "Ref", "$schema": "Schema", "-": "Raw", "bool": "BoolValue", "bools": "BoolValues",
    "cephfs": "CephFS", "chapAuthDiscovery": "DiscoveryCHAPAuth", "chapAuthSession": "SessionCHAPAuth",
    "cidrs": "CIDRs", "diskURI": "DataDiskURI", "externalID": "DoNotUseExternalID", "int": "IntValue",
    "ints": "IntValues", "ips": "IPs", "lastState": "LastTerminationState", "metadata": "ObjectMeta",
    "pdID": "PdID", "reportingComponent": "ReportingController", "storageos": "StorageOS",
    "string": "StringValue", "strings": "StringValues", "wwids": "WWIDs",
}  # fmt: skip

#: The exceptions by the name of the struct.
_IRREGULAR_IN: Final = {
    ("APIResourceList", "resources"): "APIResources", ("AdmissionResponse", "status"): "Result",
    ("DeviceAttribute", "version"): "VersionValue", ("DeviceAttribute", "versions"): "VersionValues",
    ("GlusterfsPersistentVolumeSource", "endpoints"): "EndpointsName", ("GlusterfsVolumeSource", "endpoints"): "EndpointsName",
    ("PodSpec", "serviceAccount"): "DeprecatedServiceAccount", ("StatusCause", "reason"): "Type",
    ("SubjectAccessReviewSpec", "groups"): "Groups",
    **{
        (struct, name): go
        for struct in ("RBDVolumeSource", "RBDPersistentVolumeSource")
        for name, go in (("image", "RBDImage"), ("monitors", "CephMonitors"), ("pool", "RBDPool"), ("user", "RadosUser"))
    },
}  # fmt: skip


def go_name(name: str, struct: str = "") -> str:
    """Returns the Go name of a field.

    Args:
        name: the JSON name.
        struct: the name of the Go struct that declares it.
    """
    known = _IRREGULAR_IN.get((struct, name)) or _IRREGULAR.get(name)
    if known is not None:
        return known
    if name.startswith("x-kubernetes-"):
        return "X" + "".join(word.capitalize() for word in name.split("-")[2:])
    word = _FIRST_WORD(name)
    first = word[0] if word else ""
    return (first.upper() if first in _INITIALISMS else first[:1].upper() + first[1:]) + name[len(first) :]
