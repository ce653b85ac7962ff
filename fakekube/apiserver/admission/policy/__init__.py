"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: the plugins that put policies into force.

`source` keeps the policies of a cluster with their bindings, compiled; `params` finds the parameters of a binding;
`validating` and `mutating` are the plugins, `patching` is what mutations do to an object.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy.
"""
