"""The controllers of PersistentVolumes and PersistentVolumeClaims.

* `binding` finds the volume for a claim, which the scheduler uses, too, and has the writes that bind them.
* `controller` binds and releases: it syncs claims and volumes; provisions volumes of the default class; has the expand
  controller.
* `protection` removes finalizers of unused objects, and creates claims of ephemeral volumes.
* `attach_detach` is the controller of this name.

Specified by: pkg/controller/volume.
"""
