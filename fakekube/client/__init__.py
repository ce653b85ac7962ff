"""A client of the API in the same process, for controllers and for test authors."""

from __future__ import annotations

from fakekube.client.client import Client, UnknownResource
from fakekube.client.errors import ApiError

__all__ = ["ApiError", "Client", "UnknownResource"]
