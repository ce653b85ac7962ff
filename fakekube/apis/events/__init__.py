"""Events of events.k8s.io and of the core group, which are stored as one.

Specified by: pkg/apis/events, pkg/registry/core/event.
"""
