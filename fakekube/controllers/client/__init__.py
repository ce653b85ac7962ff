"""A client of the API in the same process, for controllers and for test authors."""

from __future__ import annotations

from fakekube.controllers.client.client import ApiError, Client, UnknownResource

__all__ = ["ApiError", "Client", "UnknownResource"]
