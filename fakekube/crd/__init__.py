"""Custom resources: definitions become resources that are served like built-in ones.

* `structural` reads a definition's schema into the one model of types.
* `objects` reads bodies by it: metadata, pruning, defaulting, the sorted form in which they are stored.
* `validation` checks values by the keywords of OpenAPI (`formats` knows the string formats), `embedded` objects within
  objects, `scale` the replicas.
* `strategy` is what a custom resource does when it is written, `resource` a definition as `Resource`s.
* `definitions` is the kind CustomResourceDefinition itself; `conditions` are its states, and `serving` makes its
  resources come and go.
"""
