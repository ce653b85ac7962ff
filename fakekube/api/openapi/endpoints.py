"""The paths of OpenAPI."""

from __future__ import annotations

from collections.abc import Callable

from fakekube.api import answers
from fakekube.verbs.request import Request, Response

__all__ = ["OpenAPIEndpoints"]


class OpenAPIEndpoints:
    """Answers for /openapi."""

    def endpoints(self) -> dict[str, Callable[[Request], Response]]:
        """The paths that are matched whole."""
        return {
            "/openapi/v2": lambda _: answers.page_not_found(),
            "/openapi/v3": lambda _: answers.page_not_found(),
        }

    def prefixes(self) -> dict[str, Callable[[Request], Response]]:
        """What is served below a path."""
        return {}
