"""Replacements for the binaries that envtest and similar libraries start: kube-apiserver, etcd and kubectl.

`folder` writes them; `kube_apiserver` is a cluster with kube-apiserver's command line; `etcd` implements the part of etcd that
the start of a control plane needs, because the API server keeps its objects itself; `kubectl` is for machines without the real
one.

This module imports nothing: each replacement runs in a process of its own, which imports only the modules that it needs.
"""
