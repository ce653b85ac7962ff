"""Admission: the plugins of a plain kube-apiserver, in their order."""

from __future__ import annotations

from fakekube.admission.chain import Attributes, Chain, Operation, Plugin

__all__ = ["Attributes", "Chain", "Operation", "Plugin"]
