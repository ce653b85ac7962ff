"""Container images: the programs that they have, what they run and what they serve.

`image.Image` is an image, `image.Images` has those of a cluster, by name, with those that every cluster knows. A program is a
coroutine (`runtime.program.Command`), or a function of a test (`runtime.behaviour.Handler`). `programs` has what they share, and
`servers` what those share that listen.
"""

from __future__ import annotations
