"""Types, and the walks over them that are compiled once per type: decoding, defaulting, printing."""
