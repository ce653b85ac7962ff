"""Custom resources: how they are decoded, pruned, defaulted, validated and written.

`objects` decodes bodies by the schema, prunes what the schema does not name, and sets its defaults; `validation` validates
values, strings by their `formats`; `strategy` contains the strategies, of the subresources as well. `schema_cache` has what is
derived from a schema.

Specified by: k8s.io/apiextensions-apiserver/pkg/registry/customresource, pkg/apiserver/{schema,validation}.
"""
