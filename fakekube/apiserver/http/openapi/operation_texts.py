"""The descriptions of operations, made of the verb and the kind.

Specified by: k8s.io/apiserver/pkg/endpoints/installer.go (the docs of its routes), pkg/endpoints/handlers (GetArticleForNoun).
"""

from __future__ import annotations

from typing import Final

_PHRASES: Final = {
    "get": "read {below}the specified {kind}",
    "put": "replace {below}the specified {kind}",
    "patch": "partially update {below}the specified {kind}",
    "delete": "delete{article}{kind}",
    "deletecollection": "delete collection of {kind}",
    "connect": "connect {method} requests to {subresource} of {kind}",
    "watch": (
        "watch changes to an object of kind {kind}. deprecated: use the 'watch' parameter with a list operation instead, "
        "filtered to a single item with the 'fieldSelector' parameter."
    ),
    "watchlist": (
        "watch individual changes to a list of {kind}. deprecated: use the 'watch' parameter with a list operation instead."
    ),
}  # fmt: skip


def operation_text(action: str, method: str, kind: str, subresource: str, *, watches: bool) -> str:
    """Returns the description of an operation.

    Args:
        action: the value of x-kubernetes-action.
        method: the HTTP method in lower case.
        kind: the kind of the main resource.
        subresource: its name; "" for none.
        watches: whether lists can be watched.
    """
    article = _article(kind)
    if action == "list":
        return f"list or watch objects of kind {kind}" if watches else f"list objects of kind {kind}"
    if action == "post":
        return f"create {subresource} of{article}{kind}" if subresource else f"create{article}{kind}"
    below = f"{subresource} of " if subresource else ""
    return _PHRASES[action].format(below=below, kind=kind, article=article, method=method.upper(), subresource=subresource)


def _article(noun: str) -> str:
    """Returns the article of a noun with spaces around it; a space for plurals."""
    if noun[-1:] == "s" and noun[-2:] != "ss":
        return " "
    return " an " if noun[:1] in "AEIOU" else " a "
