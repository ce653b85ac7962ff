"""Representations of objects that clients can request: Tables, and PartialObjectMetadata."""
