"""Text of others is shown without its control characters, in lines of bounded length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cfbench_core.plain_text import one_line, visible


@given(st.text(st.characters(exclude_categories=())))
def test_visible_text_can_be_encoded_and_moves_no_cursor(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown)


@given(st.text(st.characters(exclude_categories=())), st.integers(10, 50))
def test_one_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    shown = one_line(text, limit)
    assert len(shown) <= limit
    assert len(shown.splitlines()) <= 1


def test_words_of_every_script_stay_as_they_are() -> None:
    for text in ("Überraschung", "日本語", "می\u200cخواهم", "नमस्ते", "👩\u200d🔬", "a b"):
        assert visible(text) == text
        assert one_line(text) == text


def test_escape_sequences_and_surrogates_become_visible() -> None:
    assert visible("\x1b[31mred\u202e\ud800") == r"\x1b[31mred\u202e\ud800"


def test_megabytes_are_cut_with_a_sign_of_it() -> None:
    shown = one_line("x" * 5_000_000)
    assert len(shown) == 2000
    assert shown.endswith("x...")


def test_lines_become_one() -> None:
    assert one_line("a\n b\r\n\tc\x85d\u2028e") == "a b c d e"
