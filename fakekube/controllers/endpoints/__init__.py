"""The controllers of Endpoints, EndpointSlices, and of EndpointSlices that mirror Endpoints.

`service_reconciler` decides which pods are endpoints of a Service, computes the canonical form of Endpoints, and has the base
class of the two controllers of Services; `controller`, `slice_controller` and `mirroring_controller` are the controllers.

Specified by: pkg/controller/endpoint, pkg/controller/endpointslice, pkg/controller/endpointslicemirroring.
"""

from __future__ import annotations
