"""The shell of containers.

`parser` parses programs into a `syntax` tree, `expansion` expands words, `interpreter` runs programs; `state` has the variables
of a shell and finds commands, `builtins` are the commands that change it.
"""
