"""The controllers of PersistentVolumes and PersistentVolumeClaims.

* `binding` finds the volume for a claim, which the scheduler uses, too, and has the writes that bind them.
* `controller` binds and releases: it syncs claims and volumes.
* `provisioner` provisions volumes of the default class, and has the expand controller.
* `protection` removes finalizers of unused objects; `ephemeral` and `attach_detach` are the controllers of these names.

Specified by: pkg/controller/volume.
"""
