"""Volumes and claims: who is bound to whom, who makes volumes, what happens when one goes.

* `matching` says which volume suits a claim; the scheduler asks it, too.
* `controller` binds and releases: `claims` looks at a claim, `volumes` at a volume, `binding` does what both write.
* `plugins` is what the control plane knows of kinds of volumes; `provisioner` makes volumes of the default class.
* `protection` lets go of what nobody uses, `expander`, `ephemeral` and `attach_detach` do what their names say.

Specified by: pkg/controller/volume.
"""
