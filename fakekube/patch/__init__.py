"""What a patch makes of an object: JSON patch, merge patch, strategic merge patch, and apply (server-side).

Plain objects and the schema of their type go in, plain objects come out; nothing here knows HTTP or the
store. Given objects are never changed, results share with them what did not change. What does not fit is
raised as the `StatusError` that the client gets.
"""
