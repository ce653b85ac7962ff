"""The kinds of storage.k8s.io: classes of volumes and of their attributes, CSI drivers and what they tell of nodes and
capacities, attachments.

Specified by: pkg/apis/storage (validation, v1/defaults.go), pkg/api/storage, pkg/registry/storage.
"""
