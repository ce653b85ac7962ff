"""Representations of objects that clients can request: Tables, and PartialObjectMetadata.

A printer makes the cells of an object's row in a Table; there is one for each kind. It gets the object in its storage version
(those of the real server get internal objects) and the time, and returns the cells in the order of the kind's columns, which are
in `apimachinery/data/`. Modules with printers have a table CELLS: (group, plural) → printer.

Specified by: k8s.io/kubernetes/pkg/printers, pkg/printers/internalversion (printers.go), apiserver pkg/endpoints/handlers
(response.go).
"""
