"""kwok's Stage files: `stage` reads them and says which holds for an object and what it does; `jq` and `go_templates` are the two
languages in which they are written; `controller` carries them out.

What is not supported is refused when a stage is loaded, by its name.
"""

from __future__ import annotations
