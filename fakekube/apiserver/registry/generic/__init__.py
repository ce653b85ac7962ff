"""The generic registry store: create, update, delete, get, list and watch of any resource over the MVCC store.

`writes` creates and updates, `deletion` deletes, `reads` gets and lists; `selection` evaluates selectors, `versions` and
`conversion_cache` convert between versions, `field_manager` keeps managedFields, `system_fields` fills in the metadata that the
server owns, `continue_token` reads and writes the tokens of chunked lists.

Specified by: k8s.io/apiserver/pkg/registry/generic/registry/store.go, k8s.io/apiserver/pkg/registry/rest.
"""
