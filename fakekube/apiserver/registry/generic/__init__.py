"""The generic registry store: create, update, delete, get, list and watch of any resource over the MVCC store.

`writes` creates and updates, with the metadata that the server owns; `deletion` deletes; `reads` gets and lists, with selectors,
chunks and their continue tokens; `conversion` converts between versions; `field_manager` keeps managedFields.

Specified by: k8s.io/apiserver/pkg/registry/generic/registry/store.go, k8s.io/apiserver/pkg/registry/rest.
"""
