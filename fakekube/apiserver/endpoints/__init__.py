"""Serves the verbs of resources: get, list, watch, create, update, patch, delete, deletecollection, connect.

`handlers` has the handler of each verb; the modules here are what handlers share: the request and its response, the negotiation
of media types, decoding of bodies, admission of a write, and encoding of responses.

Specified by: k8s.io/apiserver/pkg/endpoints.
"""
