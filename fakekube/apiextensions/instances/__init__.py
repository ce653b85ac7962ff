"""Custom resources: how they are decoded, pruned, defaulted, validated and written.

`pruning` reads bodies and prunes the fields that the schema does not have; `objects` reads metadata and sets defaults;
`validation` validates values, strings by their `formats`; `strategy` contains the strategies, of the subresources as well.
`schema_cache` has what is derived from a schema.

Specified by: k8s.io/apiextensions-apiserver/pkg/registry/customresource, pkg/apiserver/{schema,validation}.
"""
