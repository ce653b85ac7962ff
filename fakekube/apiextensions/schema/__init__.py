"""Structural schemas: the conversion into the schema model, and the visitor of nested schemas.

Specified by: k8s.io/apiextensions-apiserver/pkg/apiserver/schema.
"""
