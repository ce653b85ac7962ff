"""The kinds of resource.k8s.io, dynamic resource allocation: ResourceClaims, DeviceClasses, ResourceSlices.

Specified by: pkg/apis/resource, pkg/registry/resource.
"""
