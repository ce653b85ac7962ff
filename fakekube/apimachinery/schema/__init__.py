"""The model of types, and the operations that are compiled once per type: decoding, defaulting, printing."""
