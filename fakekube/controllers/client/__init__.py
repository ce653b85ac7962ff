"""A client of the API in the same process, for controllers and for test authors."""

from __future__ import annotations

from fakekube.controllers.client.client import Client, UnknownResource
from fakekube.controllers.client.errors import ApiError

__all__ = ["ApiError", "Client", "UnknownResource"]
