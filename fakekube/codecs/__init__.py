"""Bytes and plain objects: JSON, YAML, CBOR, Protobuf, their streams, and the choice between them.

Knows nothing of requests beyond their headers. A format's own module reads and writes one document;
`formats` says how each format writes objects, lists and events, so that what is kept with an object is made
once; `negotiation` chooses a format; `document` keeps encodings with an object.
"""
