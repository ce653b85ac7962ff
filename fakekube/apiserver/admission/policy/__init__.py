"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: the plugins that put policies into force.

`plugins` has the plugins, `source` the compiled policies of a cluster with their bindings and parameters. `dispatch` finds
those for a write, which `validating` and `mutating` evaluate. `typechecking` makes the warnings in the status of a policy.

Specified by: k8s.io/apiserver/pkg/admission/plugin/policy.
"""
