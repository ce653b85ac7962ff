"""The path below which the control API and the page are served."""

from __future__ import annotations

PREFIX = "/fakekube/"
