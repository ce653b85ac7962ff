"""Generates random name suffixes from an alphabet without vowels.

Specified by: k8s.io/apimachinery/pkg/util/rand (String, SafeEncodeString).
"""

from __future__ import annotations

from typing import Final

from fakekube.base.chance import chance

#: No vowels and no characters that look alike.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def random_string(length: int) -> str:
    """Returns `length` random characters of the alphabet."""
    return "".join(chance().choices(_ALPHABET, k=length))


def safe_encode_string(text: str) -> str:
    """Replaces each byte of a text by a character of the alphabet; names contain hashes in this form."""
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in text.encode())
