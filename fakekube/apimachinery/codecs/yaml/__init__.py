"""YAML with the behaviour of sigs.k8s.io/yaml.

Specified by: sigs.k8s.io/yaml, go-yaml v2.
"""

from __future__ import annotations

from fakekube.apimachinery.codecs.yaml.codec import STRICT_ERROR, dumps, item, loads, strict_error

__all__ = ["STRICT_ERROR", "dumps", "item", "loads", "strict_error"]
