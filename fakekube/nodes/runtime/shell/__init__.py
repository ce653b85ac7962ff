"""The shell of containers.

`parser` and `words` parse programs into a `syntax` tree, `expansion` expands words, `interpreter` runs programs; `state` has the
variables of a shell, `builtins` the commands that change it, `programs` finds other commands.
"""
