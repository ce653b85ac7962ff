"""The kinds of the core group.

Specified by: pkg/apis/core, pkg/registry/core.
"""
