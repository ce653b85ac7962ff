"""The kind CustomResourceDefinition: its strategy, its validation and the states of its conditions.

`strategy` is what a write of a definition does. `validation` checks the definition, `structural_validation`,
`keyword_validation` and `rule_compilation` check its schemas;
`schema_fast_check` accepts most schemas in one walk. `to_internal` is the form that is validated, `conditions` the state
machine behind the status.

Specified by: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions, pkg/registry/customresourcedefinition.
"""
