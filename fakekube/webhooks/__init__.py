"""Calls to the webhooks of others: conversion, admission.

A webhook is called as kube-apiserver's REST client calls it, and what goes wrong is told in its words, since users see
them. `Caller` is what the other rooms are given, as a `resources.webhook_calls.Call`; nobody but the assembly imports
this room.
"""

from fakekube.webhooks.caller import Caller

__all__ = ["Caller"]
