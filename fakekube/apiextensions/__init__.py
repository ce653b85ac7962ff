"""Custom resources: the kind CustomResourceDefinition, and the resources that definitions add.

* `schema` converts a definition's schema into the schema model.
* `definition` contains strategy, validation and state machine of CustomResourceDefinitions.
* `instances` decodes, prunes, defaults, validates and writes custom resources.
* `resource` builds the `Resource`s of a definition, `conversion` converts objects between its versions.

`apiserver.controlplane.customresourcedefinitions` is the controller that serves definitions.
"""
