"""Endpoints and EndpointSlices: which pods are behind a service.

`membership` says which pods belong to which services, and when a change matters; `subsets` is the canonical form of Endpoints;
`slices` distributes endpoints over slices; the other modules are the three controllers.
"""

from __future__ import annotations
