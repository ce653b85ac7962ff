"""The custom resources that definitions define: how they are read, pruned, defaulted, validated and written.

`objects` reads bodies by the schema, `validation` checks values (`compiled_validator` accepts most of them without words),
`strategy` is what a write does, `scale` the scale subresource.

Specified by: k8s.io/apiextensions-apiserver/pkg/registry/customresource, pkg/apiserver/{schema,validation}.
"""
