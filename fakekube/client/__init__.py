"""A client of the API in the same process, for controllers and for test authors."""

from __future__ import annotations

from fakekube.client.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client, UnknownResource
from fakekube.client.errors import ApiError

__all__ = ["MERGE_PATCH", "STRATEGIC_MERGE_PATCH", "ApiError", "Client", "UnknownResource"]
