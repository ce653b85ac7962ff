"""Structural schemas: a definition's schema as a type of the one model, and the walk over all schemas within it.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/schema.
"""
