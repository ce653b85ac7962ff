"""Clients of conversion, admission and image policy webhooks.

A webhook is called as kube-apiserver's REST client calls it, with the same error messages. `caller.Caller` implements
`apis.rest.cluster_access.Call`, which the other packages use; `services.ServiceResolver` resolves the address of a Service.
Only the assembly imports the caller, when a webhook is called for the first time.
"""
