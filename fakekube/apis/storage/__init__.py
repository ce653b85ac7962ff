"""The kinds of storage.k8s.io: StorageClasses, VolumeAttributesClasses, VolumeAttachments, CSIDrivers, CSINodes and
CSIStorageCapacities.

Specified by: pkg/apis/storage (validation, v1/defaults.go), pkg/api/storage, pkg/registry/storage.
"""
