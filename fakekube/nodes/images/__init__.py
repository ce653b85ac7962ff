"""Container images: the programs that they have, what they run and what they serve.

`image.Image` is an image, `registry.Images` has those of a cluster, by name. `known` lists the images that every cluster has.
A program is a coroutine (`runtime.program.Command`), or a function of a test (`runtime.handlers.Handler`).
"""

from __future__ import annotations
