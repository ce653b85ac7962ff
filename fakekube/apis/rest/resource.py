"""Resources, and the registry that maps paths to them.

A `Resource` is one served version of one resource (apps/v1 deployments). All versions of a resource share one `bucket` of the
store and one storage version. Built-in resources are created once per process from `apimachinery/data/` and shared by all
clusters; each cluster has its own `Registry`, to which definitions add resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fakekube.apimachinery import features
from fakekube.apimachinery.schema import known_specs, printing
from fakekube.apimachinery.schema.trees import holds_floats, unchanged_members
from fakekube.apis.rest.field_labels import METADATA_LABELS, FieldReader, convert_field_label
from fakekube.base.objects import StoredObject, group_resource, group_version

if TYPE_CHECKING:
    from fakekube.apimachinery.schema.model import Type
    from fakekube.apis.rest.cluster_access import ClusterAccess
    from fakekube.apis.rest.strategy import Action, Strategy, Subresource


#: Resources that two groups serve, by their plural.
_COHABITATING: Mapping[str, tuple[str, ...]] = {"events": ("", "events.k8s.io")}

#: API group → Go package of its internal types, if that is not the first label of the group's name.
_INTERNAL_PACKAGES = {
    "": "core",
    "internal.apiserver.k8s.io": "apiserverinternal",
    "rbac.authorization.k8s.io": "rbac",
    "flowcontrol.apiserver.k8s.io": "flowcontrol",
    "events.k8s.io": "core",
}


@dataclass(slots=True, frozen=True)
class GVK:
    """Group, version and kind."""

    group: str
    version: str
    kind: str
    api_version: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "api_version", group_version(self.group, self.version))

    def __str__(self) -> str:
        """Returns the text that Go prints."""
        return f"{self.group}/{self.version}, Kind={self.kind}"

    @property
    def internal_type(self) -> str:
        """The internal Go type, as messages name it."""
        return f"{_INTERNAL_PACKAGES.get(self.group) or self.group.partition('.')[0]}.{self.kind}"


@dataclass(eq=False)
class Resource:
    """One served version of a resource."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: frozenset[str]
    bucket: str
    """The store's bucket for the objects of all versions: `plural.group`, or the name of the shared storage."""
    strategy_factory: Callable[[], Strategy]
    type_factory: Callable[[], Type]
    storage_type_factory: Callable[[], Type] | None = None
    """The storage type; None if it is the served type."""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    field_labels: tuple[str, ...] = METADATA_LABELS
    """The supported field labels."""
    field_readers: Mapping[str, FieldReader] = field(default_factory=dict)
    """The readers of the field labels' values in the stored object."""
    storage_version_hash: str = ""
    empty: Mapping[str, Any] = field(default_factory=dict)
    """The fields of an empty object, besides the zero values of its type."""
    deprecation: str = ""
    """The warning in every response of a deprecated version."""
    storage_prefix: str = ""
    """The storage prefix in the real server, which some error messages contain."""
    action: Action | None = None
    """The action of a POST to a resource that is not stored (reviews, bindings)."""
    computed: Callable[[ClusterAccess], Sequence[dict[str, Any]]] | None = None
    """For resources that are computed (component statuses): returns all current objects."""
    printer_columns: Sequence[Mapping[str, Any]] = ()
    """The additionalPrinterColumns of this version of a custom resource."""
    custom: bool = False
    """Defined by a CustomResourceDefinition: unstructured, keys sorted, items carry kind and apiVersion."""
    to_storage: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Converts an object of this version to the storage version; None if the shapes are the same."""
    from_storage: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    keep: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """For a custom resource: converts an accepted object of this version to the stored form."""
    convert: Callable[[dict[str, Any], str], dict[str, Any]] | None = None
    """For a custom resource: converts an object to another version, outside of reads and writes of the storage."""
    known_versions: frozenset[str] = frozenset()
    """For a custom resource whose definition has changed: the apiVersions of which a stored object can be decoded."""
    converts_by_call: bool = False
    """Whether a webhook converts between versions: conversions take time, may fail, and their results may change."""
    implies_kind: bool = False
    """For a custom resource: whether bodies may lack kind and apiVersion, as those of a server with Go types may."""
    hidden_verbs: frozenset[str] = frozenset()
    """The verbs that discovery does not list."""
    field_managers: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    """The field managers of its writes (`generic.field_manager`), by subresource and the versions that are served."""
    emulation: features.Emulation = features.DEFAULT
    """The minor and the gates of the server."""
    is_in_use: bool = field(default=False, init=False, repr=False)
    """For a custom resource: whether a client has made a request for it, with which its watch cache begins."""
    shown_key: object = field(default_factory=object, init=False, repr=False)
    """The cache key of stored objects in this version. The collector visits no document that has it, as it would with the
    resource as the key."""
    unservable: str = ""
    """The message of the internal error for every request; such a resource is not in discovery either."""

    @cached_property
    def api_version(self) -> str:
        return group_version(self.group, self.version)

    @cached_property
    def group_resource(self) -> str:
        """Plural and group as they are written together: pods, deployments.apps."""
        return group_resource(self.group, self.plural)

    @property
    def stored_group(self) -> str:
        """The group in which objects are stored: of events, autoscalers … not always that of the request."""
        return self.bucket.partition(".")[2]

    @cached_property
    def gvk(self) -> GVK:
        return GVK(self.group, self.version, self.kind)

    @cached_property
    def strategy(self) -> Strategy:
        return self.strategy_factory()

    @cached_property
    def type(self) -> Type:
        return self.type_factory()

    @cached_property
    def storage_type(self) -> Type:
        return self.storage_type_factory() if self.storage_type_factory else self.type

    @cached_property
    def has_floats(self) -> bool:
        """Whether stored objects may contain floats or values of any form."""
        return self.custom or holds_floats(self.storage_type)

    def to_stored_form(
        self, obj: dict[str, Any], old: Mapping[str, Any] | None = None, *, spec_text: bytes | None = None
    ) -> dict[str, Any]:
        """Returns an accepted object in the stored form, in which equal objects have equal encodings.

        `old`: the stored object that it was made from; the result shares unchanged parts with it. A known spec is shared, too.
        `spec_text`: the text of the spec, if it is known.
        """
        if self.keep is not None:
            return self.keep(obj)
        type_ = self.storage_type
        parts = {} if old is None else unchanged_members(type_, obj, old)
        if known_specs.SPEC in obj and known_specs.SPEC not in parts:
            parts.update(known_specs.normalised_spec(type_, obj, stored=True, text=spec_text))
        printed: dict[str, Any] = printing.normalise(type_, obj, parts=parts)
        return printed

    def field_label(self, label: str) -> str:
        """Returns the storage version's name of a field label of this version.

        Raises StatusError 400 for a label that the kind does not support.
        """
        return convert_field_label((self.group, self.version, self.kind), self.field_labels, label, custom=self.custom)

    def read_field(self, label: str, obj: StoredObject) -> str:
        """Returns the value of a field label; "" if the kind supports the label but lacks the field."""
        reader = self.field_readers.get(label)
        return reader(obj) if reader else ""

    def key(self, namespace: str, name: str) -> str:
        """Returns the key of an object within the bucket; keys sort by namespace, then name."""
        return f"{namespace}/{name}" if self.namespaced else name

    def key_prefix(self, namespace: str) -> str:
        """Returns the prefix of the keys of a namespace; for "" that of all keys."""
        return f"{namespace}/" if self.namespaced and namespace else ""


class Registry:
    """The resources of one cluster: the built-in ones, and those that definitions add.

    Reads need no lock: every change replaces the tables.
    """

    def __init__(self, builtins: Sequence[Resource]) -> None:
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self.state = object()
        """Another object after every change. Who keeps it keeps none of the tables."""
        self._by_resource: dict[tuple[str, str], tuple[Resource, ...]] = {}
        self._kinds: tuple[object, dict[tuple[str, str, str], Resource]] = (None, {})
        self.builtin_groups = frozenset(resource.group for resource in builtins if not resource.custom)
        """The groups of the built-in resources."""
        self.replace((), builtins)

    def copy(self) -> Registry:
        """Returns an independent copy."""
        twin = Registry(())
        twin._by_path, twin._by_resource, twin.builtin_groups = self._by_path, self._by_resource, self.builtin_groups
        twin.state = self.state
        return twin

    def get(self, group: str, version: str, plural: str) -> Resource | None:
        """Returns the resource at a path, or None if it is not served."""
        return self._by_path.get((group, version, plural))

    def replace(self, removed: Iterable[tuple[str, str, str]], added: Iterable[Resource]) -> None:
        """Replaces the served versions of a resource; `removed` are (group, version, plural), unknown ones are ignored."""
        by_path, by_resource = dict(self._by_path), dict(self._by_resource)
        changed: dict[tuple[str, str], dict[str, Resource]] = {}

        def versions_of(name: tuple[str, str]) -> dict[str, Resource]:
            if name not in changed:
                changed[name] = {each.version: each for each in by_resource.get(name, ())}
            return changed[name]

        for path in removed:
            found = by_path.pop(path, None)
            if found is not None:
                del versions_of((found.group, found.plural))[found.version]
        for resource in added:
            by_path[resource.group, resource.version, resource.plural] = resource
            versions = versions_of((resource.group, resource.plural))
            versions.pop(resource.version, None)  # a replaced version is the last one
            versions[resource.version] = resource
        for name, versions in changed.items():
            by_resource[name] = tuple(versions.values())
            if not versions:
                del by_resource[name]
        self._by_path, self._by_resource = by_path, by_resource
        self.state = object()

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_path.values())

    def of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """Returns the resource of a kind, or None if none is served."""
        by_path, (state, known) = self._by_path, self._kinds
        if state is not by_path:
            known = {(each.group, each.version, each.kind): each for each in reversed(by_path.values())}
            self._kinds = by_path, known
        return known.get((group, version, kind))

    def any_version(self, group: str, plural: str) -> Resource | None:
        """Returns one of the served versions of a resource, for callers that only need its storage."""
        found = self._by_resource.get((group, plural))
        return found[0] if found else None

    def sharing_bucket(self, resource: Resource) -> list[Resource]:
        """Returns all served resources with the same bucket: its versions, and for events those of the other group."""
        groups = {resource.group, *_COHABITATING.get(resource.plural, ())}
        found = [other for group in sorted(groups) for other in self._by_resource.get((group, resource.plural), ())]
        return [other for other in found if other.bucket == resource.bucket]

    def versions(self, group: str, plural: str) -> tuple[Resource, ...]:
        """Returns all served versions of a resource."""
        return self._by_resource.get((group, plural), ())
