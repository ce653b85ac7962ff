"""The controllers of PersistentVolumes and PersistentVolumeClaims.

* `matching` finds the volume for a claim; the scheduler uses it, too.
* `controller` binds and releases: `claims` syncs claims, `volumes` syncs volumes, `binding` contains their writes.
* `plugins` has the facts about in-tree volume plugins; `provisioner` provisions volumes of the default class.
* `protection` removes finalizers of unused objects; `expander`, `ephemeral` and `attach_detach` are the controllers of these
  names.

Specified by: pkg/controller/volume.
"""
