"""Calls to the webhooks of others: conversion, admission.

A webhook is called as kube-apiserver's REST client calls it, and what goes wrong is told in its words, since users see
them. `caller.Caller` is what the other rooms are given, as a `registry.webhook_calls.Call`; `services.ServiceResolver`
says where a Service is reached. Nobody but the assembly imports the caller, and only when a webhook is called.
"""
