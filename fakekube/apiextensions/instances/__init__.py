"""Custom resources: how they are decoded, pruned, defaulted, validated and written.

`objects` decodes bodies by the schema, `validation` validates values, strings by their `formats` (`compiled_validator` accepts
most valid ones quickly), `strategy` contains the strategies, `scale` the scale subresource.

Specified by: k8s.io/apiextensions-apiserver/pkg/registry/customresource, pkg/apiserver/{schema,validation}.
"""
