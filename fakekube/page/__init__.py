"""The page of a cluster: its document, its modules and styles, and the HTML of trace files.

The page itself is in `static` (plain modules and styles, no build step) and `vendor` (modules of others, see its manifest).
`document` reads the files, and makes the HTML around them. docs/page.md is about its use.

Invariant: nothing here knows a cluster; data come in as JSON.
"""

from __future__ import annotations

from fakekube.page.document import asset, assets, document, refusal, terminal_document, trace_document

__all__ = ["asset", "assets", "document", "refusal", "terminal_document", "trace_document"]
