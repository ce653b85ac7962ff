"""Serializers: JSON, YAML, CBOR and Protobuf, and the framing of watch streams.

Each format has a package that encodes and decodes one document. `formats` encodes objects, lists and watch events
from cached parts, `framing` separates the events of a stream, and `document` caches the encodings of an object.
Content negotiation belongs to `endpoints`.
"""
