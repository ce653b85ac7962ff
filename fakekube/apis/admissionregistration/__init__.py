"""The kinds of admissionregistration.k8s.io: webhook configurations, admission policies and their bindings.

Specified by: pkg/apis/admissionregistration, pkg/registry/admissionregistration.
"""
