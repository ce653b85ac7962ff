"""What kube-apiserver itself maintains, and the control loops that do it.

`control_loop` is their base class. `customresourcedefinitions` serves definitions, `autoregister` their APIServices,
`flowschemas` writes the condition Dangling, `cluster_authentication_trust` the ConfigMap extension-apiserver-authentication.
`bootstrap_policy` has the roles of a fresh server, `default_objects` restores its objects, `event_expiry` deletes old events. The
controllers of kube-controller-manager are in `fakekube.controllers`.

Specified by: pkg/controlplane, k8s.io/apiextensions-apiserver/pkg/controller, k8s.io/kube-aggregator/pkg/controllers.
"""
