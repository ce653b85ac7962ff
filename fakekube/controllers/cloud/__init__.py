"""The controllers of a cloud provider and of an ingress add-on. They assign addresses, on which nothing listens."""

from __future__ import annotations
