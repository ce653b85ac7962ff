"""The controllers of Endpoints, EndpointSlices, and of EndpointSlices that mirror Endpoints.

`pod_endpoints` decides which pods are endpoints of a Service; `subsets` computes the canonical form of Endpoints; `slices`
distributes endpoints over EndpointSlices; `service_reconciler` is the base class of the two controllers of Services;
`controller`, `slice_controller` and `mirroring_controller` are the controllers.

Specified by: pkg/controller/endpoint, pkg/controller/endpointslice, pkg/controller/endpointslicemirroring.
"""

from __future__ import annotations
