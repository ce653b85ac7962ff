"""What `kubectl get` shows of each kind: one function a kind that makes the cells of its row.

A function gets the object in its storage version (as the real server's printers get internal objects) and
the time, and returns the cells in the order of the kind's columns, which are in `data/`. One module a
family of kinds, each with its table CELLS by group and plural.

Specified by: k8s.io/kubernetes/pkg/printers/internalversion (printers.go).
"""
