"""The built-in kinds by API group: defaults, validation, strategies and subresources of each.

The module of a kind is imported when the kind is first used; `apiserver.registry.builtin` has the table.

Specified by: pkg/apis/<group> and pkg/registry/<group> of kubernetes.
"""
