"""Validation of a PodSpec, in the order of the real server (ValidatePodSpec), with affinity, spread constraints and gates.

Specified by: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fakekube.apimachinery import features
from fakekube.apimachinery.errors import FieldError
from fakekube.apimachinery.errors.field import duplicate, forbidden, invalid, required, too_long
from fakekube.apimachinery.schema.dns import SUBDOMAIN
from fakekube.apimachinery.schema.trees import text_of
from fakekube.apis.core.pods import containers, security_context
from fakekube.apis.core.pods.containers import PodContext, validate_file_key_volumes
from fakekube.apis.core.pods.resources import validate_pod_resources
from fakekube.apis.core.pods.validation_options import PREFERRED, REQUIRED, KnownSpecs, ValidationOptions, forbid_keys_in_selector
from fakekube.apis.core.pods.visitor import NIL_PATH, containers_with_paths
from fakekube.apis.core.pods.volumes import validate_volumes
from fakekube.apis.scheduling.priorityclasses import PREEMPTION_POLICIES
from fakekube.apis.validation import ip, names, selectors
from fakekube.apis.validation.checks import invalid_each, label_name, one_of, positive, required_one_of, too_many_error
from fakekube.apis.validation.objectmeta import validate_labels
from fakekube.apis.validation.resource_lists import container_resource_name, requirements
from fakekube.apis.validation.rules import from_minor
from fakekube.apis.validation.selectors import tolerations
from fakekube.apis.validation.to_internal import to_internal
from fakekube.apis.well_known import MIRROR_POD_ANNOTATION_KEY
from fakekube.base.golang.strconv import MAX_INT32
from fakekube.base.objects import Part

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")

_NAMESERVERS = 3
_SEARCH_PATHS = 32
_SEARCH_LENGTH = 2048
_HOSTNAME_LENGTH = 64

_VALID = KnownSpecs()


def validate_pod_spec(
    spec: dict[str, Any], path: str, options: ValidationOptions, meta: Part | None = None, *, text: bytes | None = None
) -> list[FieldError]:
    """Validates the spec of a pod or template (ValidatePodSpec).

    `meta` is the metadata of the pod; None for a template, whose pods have other names. `text`: that of the spec, if it is known.
    """
    key = _VALID.key(spec, text or text_of(spec), of_pod=options.of_pod)
    if key in _VALID:
        return []
    errors = _validate_unknown_spec(spec, path, options, meta)
    if options.of_pod:
        errors += _validate_spec_of_pod(spec, path)
    if not errors and key is not None and options.were_strict:
        _VALID.add(key, "")
    return errors


def _validate_unknown_spec(spec: dict[str, Any], path: str, options: ValidationOptions, meta: Part | None) -> list[FieldError]:
    grace = spec.get("terminationGracePeriodSeconds")
    errors = [] if grace is not None else [required(f"{path}.terminationGracePeriodSeconds")]
    usable, wrong = validate_volumes(spec.get("volumes") or (), (meta or {}).get("name", ""), f"{path}.volumes", options)
    errors += wrong
    claims = spec.get("resourceClaims") or ()
    if claims:
        errors += _validate_resource_claims(claims, meta, f"{path}.resourceClaims")
    pod = PodContext(
        volumes=usable,
        claims=frozenset(claim["name"] for claim in claims if claim.get("name")),
        grace=grace,
        restart_policy=spec.get("restartPolicy", ""),
        host_users=spec.get("hostUsers", True),
        os=(spec.get("os") or {}).get("name"),
        options=options,
    )
    errors += _validate_containers(spec, path, pod)
    if "resources" in spec:
        errors += validate_pod_resources(spec, f"{path}.resources", pod)
    return (
        errors
        + _validate_policies(spec, path, options)
        + _validate_placement(spec, path, options)
        + _validate_other_fields(spec, path, options)
    )


def _validate_spec_of_pod(spec: dict[str, Any], path: str) -> list[FieldError]:
    """Validates what templates may have, and pods may not (validatePodMetadataAndSpec)."""
    errors: list[FieldError] = []
    if not spec.get("serviceAccountName"):
        errors += [
            forbidden(
                f"{path}.volumes[{index}].projected.sources[{position}].serviceAccountToken",
                "must not be specified when serviceAccountName is not set",
            )
            for index, volume in enumerate(spec.get("volumes") or ())
            for position, source in enumerate(volume.get("projected", {}).get("sources") or ())
            if "serviceAccountToken" in source
        ]
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            errors += containers.validate_image_without_padding(container, f"{path}.{field}[{index}]")
    return errors


def _validate_containers(spec: dict[str, Any], path: str, pod: PodContext) -> list[FieldError]:
    regular, first, debugging = spec.get("containers") or (), spec.get("initContainers"), spec.get("ephemeralContainers")
    errors = containers.validate_containers(regular, f"{path}.containers", pod)
    if first:
        errors += containers.validate_init_containers(first, regular, f"{path}.initContainers", pod)
    if debugging:
        others = [*regular, *(first or ())]
        errors += containers.validate_ephemeral_containers(debugging, others, f"{path}.ephemeralContainers", pod)
    return errors


def _validate_policies(spec: dict[str, Any], path: str, options: ValidationOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("hostNetwork"):
        errors += _validate_host_network_ports(spec, f"{path}.containers", options)
    restart, dns = spec.get("restartPolicy", ""), spec.get("dnsPolicy", "")
    errors += required_one_of(restart, f"{path}.restartPolicy", RESTART_POLICIES, ordered=True)
    errors += required_one_of(dns, f"{path}.dnsPolicy", _DNS_POLICIES, ordered=True)
    if "nodeSelector" in spec:
        errors += validate_labels(spec["nodeSelector"], f"{path}.nodeSelector")
    context = spec.get("securityContext") or {}
    return errors + security_context.validate_pod_security_context(context, spec, f"{path}.securityContext", options)


def _validate_placement(spec: dict[str, Any], path: str, options: ValidationOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if "affinity" in spec:
        errors += _validate_affinity(spec["affinity"], f"{path}.affinity", options)
    if "dnsConfig" in spec or spec.get("dnsPolicy") == "None":
        errors += _validate_dns_config(spec.get("dnsConfig"), spec.get("dnsPolicy", ""), f"{path}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        errors += label_name(gate.get("conditionType", ""), f"{path}.readinessGates[{index}].conditionType")
    if "schedulingGates" in spec:
        errors += _validate_scheduling_gates(spec["schedulingGates"], f"{path}.schedulingGates")
    constraints = spec.get("topologySpreadConstraints")
    if constraints:
        errors += validate_topology_spread_constraints(constraints, f"{path}.topologySpreadConstraints", options)
    errors += security_context.validate_host_process(spec, path)
    errors += security_context.validate_host_users(spec, path, options)
    if "hostnameOverride" in spec:
        errors += _validate_hostname_override(spec, f"{path}.hostnameOverride")
    return errors


#: Fields with the name of another object → the check of the name.
_NAMES = (("serviceAccountName", names.dns_subdomain), ("nodeName", names.dns_subdomain))
_HOST_NAMES = (("hostname", names.dns_label), ("subdomain", names.dns_label))
_CLASS_NAMES = (("priorityClassName", names.dns_subdomain),)


def _validate_names(spec: Part, fields: Sequence[tuple[str, Any]], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, check in fields:
        value = spec.get(field)
        if value:
            details = check(value)
            if details:
                errors += invalid_each(f"{path}.{field}", value, details)
    return errors


def _validate_other_fields(spec: dict[str, Any], path: str, options: ValidationOptions) -> list[FieldError]:
    errors = _validate_names(spec, _NAMES, path)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None:
        details = names.in_range(deadline, 1, MAX_INT32)
        errors += invalid_each(f"{path}.activeDeadlineSeconds", deadline, details)
    errors += _validate_names(spec, _HOST_NAMES, path)
    if "tolerations" in spec:
        errors += tolerations(spec["tolerations"], f"{path}.tolerations", allow_comparisons=options.comparing_tolerations)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        errors += _validate_host_alias(alias, f"{path}.hostAliases[{index}]")
    errors += _validate_names(spec, _CLASS_NAMES, path)
    runtime_class = spec.get("runtimeClassName")
    if runtime_class is not None:
        errors += invalid_each(f"{path}.runtimeClassName", runtime_class, names.dns_subdomain(runtime_class))
    preemption = spec.get("preemptionPolicy")
    if preemption is not None:
        where = f"{path}.preemptionPolicy"
        errors += required_one_of(preemption, where, PREEMPTION_POLICIES, ordered=True)
    if "overhead" in spec:
        errors += requirements(
            {"limits": spec["overhead"]}, f"{path}.overhead", container_resource_name, frozenset(), options.huge_pages
        )
    if "os" in spec:
        errors += security_context.validate_operating_system(spec, path)
    if "schedulingGroup" in spec or "workloadRef" in spec:
        errors += _validate_scheduling_group(spec, path)
    if spec.get("evictionResponders"):
        from fakekube.apis.lifecycle import validate_responders_of_pod

        errors += validate_responders_of_pod(spec["evictionResponders"], f"{path}.evictionResponders")
    return errors + validate_file_key_volumes(list(containers_with_paths(spec, path)), spec.get("volumes") or ())


def _validate_scheduling_group(spec: Part, path: str) -> list[FieldError]:
    """Validates the reference to a pod group: since 1.36 (validateSchedulingGroup) and of 1.35 (validateWorkloadReference)."""
    errors: list[FieldError] = []
    if "schedulingGroup" in spec:
        name = spec["schedulingGroup"].get("podGroupName")
        details = ["must specify one of: `podGroupName`"] if name is None else names.dns_subdomain(name)
        errors += invalid_each(f"{path}.schedulingGroup.podGroupName", name, details)
        if spec.get("evictionResponders"):
            errors.append(forbidden(f"{path}.schedulingGroup", "may not be set when evictionResponders is set"))
    if "workloadRef" in spec:
        for field, check in (
            ("name", names.dns_subdomain),
            ("podGroup", names.dns_label),
            ("podGroupReplicaKey", names.dns_label),
        ):
            value = spec["workloadRef"].get(field, "")
            if value or field != "podGroupReplicaKey":
                errors += invalid_each(f"{path}.workloadRef.{field}", value, check(value))
    return errors


def _validate_resource_claims(claims: Sequence[Part], meta: Part | None, path: str) -> list[FieldError]:
    """Validates the resource claims of a pod (validatePodResourceClaims)."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    mirrored = MIRROR_POD_ANNOTATION_KEY in ((meta or {}).get("annotations") or {})
    for index, claim in enumerate(claims):
        if mirrored:
            errors.append(forbidden(NIL_PATH, "static pods do not support resource claims"))
        else:
            errors += _validate_resource_claim(claim, seen, f"{path}[{index}]")
    return errors


def _validate_resource_claim(claim: Part, seen: set[str], path: str) -> list[FieldError]:
    name = claim.get("name", "")
    if not name:
        errors = [required(f"{path}.name")]
    elif name in seen:
        errors = [duplicate(f"{path}.name", name)]
    else:
        errors = invalid_each(f"{path}.name", name, names.dns_label(name))
        seen.add(name)
    sources = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if field in claim]
    if len(sources) != 1:
        both = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        none = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        errors.append(invalid(path, to_internal("PodResourceClaim", claim), both if sources else none))
    for field in sources:
        errors += invalid_each(f"{path}.{field}", claim[field], names.dns_subdomain(claim[field]))
    return errors


def _validate_host_network_ports(spec: Part, path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates that with hostNetwork, the host ports equal the container ports (validatePodHostNetworkDeps)."""
    errors: list[FieldError] = []
    for index, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (host or options.of_pod) and host != port.get("containerPort", 0):
                text = "must match `containerPort` when `hostNetwork` is true"
                errors.append(invalid(f"{path}[{index}].ports[{position}].hostPort", host, text))
    return errors


def _validate_dns_config(config: Part | None, policy: str, path: str) -> list[FieldError]:
    """Validates the DNS configuration (validatePodDNSConfig)."""
    if policy == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", text)]
    config = config or {}
    servers, searches = config.get("nameservers") or (), config.get("searches") or ()
    errors: list[FieldError] = []
    if len(servers) > _NAMESERVERS:
        errors.append(invalid(f"{path}.nameservers", servers, too_many_error(_NAMESERVERS, "nameservers")))
    for index, server in enumerate(servers):
        errors += ip.legacy_ip(f"{path}.nameservers[{index}]", server, strict=True)
    if len(searches) > _SEARCH_PATHS:
        errors.append(invalid(f"{path}.searches", searches, too_many_error(_SEARCH_PATHS, "search paths")))
    if not names.fits(" ".join(searches), _SEARCH_LENGTH):
        text = too_many_error(_SEARCH_LENGTH, "characters (including spaces) in the search list")
        errors.append(invalid(f"{path}.searches", searches, text))
    for index, search in enumerate(searches):
        is_relaxed = features.current().enabled("RelaxedDNSSearchValidation")
        if search != "." or not is_relaxed:
            domain = search.removesuffix(".")
            details = names.dns_subdomain_with_underscores(domain) if is_relaxed else names.dns_subdomain(domain)
            if not from_minor(34):  # their texts name another form than the one that they match
                details = [detail.replace(names.UNDERSCORE_SUBDOMAIN, SUBDOMAIN) for detail in details]
            errors += invalid_each(f"{path}.searches[{index}]", domain, details)
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))
    return errors


def _validate_host_alias(alias: Part, path: str) -> list[FieldError]:
    errors = ip.legacy_ip(f"{path}.ip", alias.get("ip", ""), strict=True)
    for index, name in enumerate(alias.get("hostnames") or ()):
        errors += invalid_each(f"{path}.hostnames[{index}]", name, names.dns_subdomain(name))
    return errors


def _validate_hostname_override(spec: Part, path: str) -> list[FieldError]:
    """Validates hostnameOverride (validatePodHostName)."""
    wrong = [field for field in ("setHostnameAsFQDN", "hostNetwork") if spec.get(field)]
    errors = [forbidden(path, f"may not be specified when {field} is true") for field in wrong]
    name = spec["hostnameOverride"]
    if not names.fits(name, _HOSTNAME_LENGTH):
        errors.append(too_long(path, _HOSTNAME_LENGTH))
    return errors + invalid_each(path, name, names.dns_subdomain(name))


def _validate_affinity(rules: Part, path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates the affinity of a pod (validateAffinity)."""
    errors: list[FieldError] = []
    if "nodeAffinity" in rules:
        errors += _validate_node_affinity(rules["nodeAffinity"], f"{path}.nodeAffinity", options)
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = rules.get(kind) or {}
        for index, term in enumerate(terms.get(REQUIRED) or ()):
            errors += _validate_pod_affinity_term(term, f"{path}.{kind}.{REQUIRED}[{index}]", options)
        for index, term in enumerate(terms.get(PREFERRED) or ()):
            where = f"{path}.{kind}.{PREFERRED}[{index}]"
            errors += selectors.weight(term, where)
            inner = term.get("podAffinityTerm") or {}
            errors += _validate_pod_affinity_term(inner, f"{where}.podAffinityTerm", options)
    return errors


def _validate_node_affinity(rules: Part, path: str, options: ValidationOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if REQUIRED in rules:
        errors += selectors.node_selector(
            rules[REQUIRED], f"{path}.{REQUIRED}", allow_invalid_values=options.node_selector_values
        )
    return errors + selectors.preferred_scheduling_terms(rules.get(PREFERRED) or (), f"{path}.{PREFERRED}")


def _validate_pod_affinity_term(term: Part, path: str, options: ValidationOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("labelSelector", "namespaceSelector"):
        errors += selectors.label_selector(term.get(field), f"{path}.{field}", allow_invalid_values=options.selector_values)
    for name in term.get("namespaces") or ():
        errors += invalid_each(f"{path}.namespace", name, names.dns_label(name))
    matching, mismatching = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    errors += selectors.label_keys(matching, mismatching, term.get("labelSelector"), path)
    key = term.get("topologyKey", "")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + label_name(key, f"{path}.topologyKey")


_NODE_POLICIES = ("Honor", "Ignore")


def validate_topology_spread_constraints(items: Sequence[Part], path: str, options: ValidationOptions) -> list[FieldError]:
    """Validates topology spread constraints (validateTopologySpreadConstraints)."""
    errors: list[FieldError] = []
    pairs = [(item.get("topologyKey", ""), item.get("whenUnsatisfiable", "")) for item in items]
    last = {pair: index for index, pair in enumerate(pairs)}
    legacy_keys = options.legacy_spread_label_keys  # read once, as it looks at all constraints of the old pod
    for index, (item, pair) in enumerate(zip(items, pairs, strict=True)):
        errors += _validate_constraint(item, f"{path}[{index}]", options, repeated=last[pair] > index, legacy_keys=legacy_keys)
    return errors


def _validate_constraint(
    item: Part, path: str, options: ValidationOptions, *, repeated: bool, legacy_keys: bool
) -> list[FieldError]:
    key, action, domains = (item.get("topologyKey", ""), item.get("whenUnsatisfiable", ""), item.get("minDomains"))
    errors = positive(item.get("maxSkew", 0), f"{path}.maxSkew")
    if not key:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    errors += one_of(action, f"{path}.whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"))
    if repeated:
        errors.append(duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
    if domains is not None:
        errors += positive(domains, f"{path}.minDomains")
        if action != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            errors.append(invalid(f"{path}.minDomains", domains, text))
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if field in item:
            errors += one_of(item[field], f"{path}.{field}", _NODE_POLICIES)
    selector, keys = item.get("labelSelector"), item.get("matchLabelKeys") or ()
    if legacy_keys:
        errors += forbid_keys_in_selector(keys, selector, f"{path}.matchLabelKeys")
    else:
        errors += selectors.label_keys(keys, (), selector, path)
    if not options.spread_selectors:
        errors += selectors.label_selector(selector, f"{path}.labelSelector")
    return errors


def _validate_scheduling_gates(items: Sequence[Part], path: str) -> list[FieldError]:
    """Validates scheduling gates (validateSchedulingGates)."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name", "")
        errors += label_name(name, f"{path}[{index}]")
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors
