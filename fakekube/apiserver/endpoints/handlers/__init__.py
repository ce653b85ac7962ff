"""The handlers of the verbs: create, update, patch, delete, get, list, watch, connect.

Each module has `handle(scope)`, which answers one request.

Specified by: k8s.io/apiserver/pkg/endpoints/handlers.
"""
