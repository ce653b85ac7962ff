"""The printers: functions that make the cells of an object's row, one for each kind.

A printer gets the object in its storage version (those of the real server get internal objects) and the time, and returns the
cells in the order of the kind's columns, which are in `data/`. Each module has a table CELLS: (group, plural) → printer.

Specified by: k8s.io/kubernetes/pkg/printers/internalversion (printers.go).
"""
