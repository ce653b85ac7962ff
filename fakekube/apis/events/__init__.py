"""Events of events.k8s.io and of the core group, which share one storage.

Specified by: pkg/apis/events, pkg/registry/core/event.
"""
