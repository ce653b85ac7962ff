"""What a cloud, or an add-on, does in a real cluster: load balancers and ingresses get addresses. Nothing listens there."""

from __future__ import annotations
