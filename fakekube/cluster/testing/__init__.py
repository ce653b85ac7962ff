"""Utilities for tests: an object client, clients of other packages, kubeconfigs, manifests, aggregated APIs."""
