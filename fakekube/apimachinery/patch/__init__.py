"""Applies patches to objects: JSON patch, merge patch, strategic merge patch, and server-side apply.

The functions take plain objects and the schema of their type, and return plain objects; they do not depend on HTTP or
the store. Invariant: arguments are never changed; results share unchanged parts with them. Errors are the
`StatusError`s that the client gets.
"""
