import torch

from cfbench_text.generators.decoding import TIE, decode, likeliest
from cfbench_text.generators.language import BEGIN, END

A, B, C = 4, 5, 6


def scripted(texts):
    """A network that tells each row its text; its state is the row and how far it is."""
    seen = []

    def step(state, words):
        rows, places = state
        seen.append(len(rows))
        logits = torch.zeros(len(rows), 8)
        for at, (row, place) in enumerate(zip(rows.tolist(), places.tolist(), strict=True)):
            text = [*texts[row], END]
            expected = BEGIN if place == 0 else text[min(place, len(text)) - 1]
            assert words[at] == expected, "a step is told the word written last"
            logits[at, text[min(place, len(text) - 1)]] = 1.0
        return logits, (rows, places + 1)

    return step, seen


def start(rows):
    return torch.arange(rows), torch.zeros(rows, dtype=torch.long)


def test_each_row_ends_for_itself():
    texts = [[A, B, C, A, A, A], [], [B], [C, C], [A, B, C, A, B]]
    step, seen = scripted(texts)
    assert decode(step, start(5), 5, 20) == texts
    assert seen[0] == 5 and seen[-1] < 3, "rows that have ended leave the batch"


def test_no_text_is_longer_than_allowed():
    step, seen = scripted([[A, B, C], [A]])
    assert decode(step, start(2), 2, 2) == [[A, B], [A]]
    assert len(seen) == 2


def test_no_rows():
    step, seen = scripted([])
    assert decode(step, start(0), 0, 5) == [] and not seen


def test_ties_go_to_the_most_frequent_word_and_rounding_does_not_decide():
    logits = torch.zeros(3, 8)
    logits[0, [B, A]] = 1.0
    logits[1, B], logits[1, A] = 1.0, 1.0 - TIE / 10
    logits[2, B], logits[2, A] = 1.0, 1.0 - TIE * 10
    assert likeliest(logits).tolist() == [A, A, B]


def test_padding_begin_and_unknown_are_never_written():
    logits = torch.zeros(1, 8)
    logits[0, [0, 1, 3]] = 9.0
    logits[0, C] = 1.0
    assert likeliest(logits).tolist() == [C]
