"""No rule without an answer: every text of a rule stands in a recording or a test, or in the list of exceptions."""

from __future__ import annotations

from tests.unit import rule_texts

#: The list of exceptions can only get shorter.
AT_MOST = 20


def test_every_text_of_a_rule_is_shown_or_excused() -> None:
    """A text that is shown by now is no exception any more: remove its line from rule_texts.json."""
    assert {text.text for text in rule_texts.missing()} == set(rule_texts.exceptions())


def test_exceptions_have_reasons_and_get_fewer() -> None:
    found = rule_texts.exceptions()
    assert len(found) <= AT_MOST
    assert all(len(reason) > 20 for reason in found.values())
