import dataclasses

import pytest

from cfbench_text.generators.profiles import NoProfiles, StatementProfiles, write_profiles
from cfbench_text.models.chat_types import Completion
from cfbench_text.triplets import Triplet

LINES = (
    ("ann", "amp", 5.0, "First of the amp. It is loud."),
    ("ann", "bow", 1.0, "Second of the bow."),
    ("bob", "amp", 4.0, "Third of the amp. It is cheap. And so on."),
)
GOOD, LOUD, DEAR = (
    Triplet("it is good", "sound", "positive"),
    Triplet("it is loud", "sound", "positive"),
    Triplet("it is dear", "price", "negative"),
)


def rows_of(examples, triplets=((GOOD, LOUD), (LOUD, DEAR), (DEAR,))):
    return dataclasses.replace(examples.rows_of(LINES), triplets=list(triplets))


class Double:
    """A chat model that returns fixed answers, and records its prompts."""

    def __init__(self, answer):
        self.answer, self.requested = answer, []

    def write(self, prompts, tokens):
        self.requested += prompts
        return [self.answer] * len(prompts)


def test_statements_of_the_pair_itself_are_excluded(examples):
    profiles = StatementProfiles(rows_of(examples), 4)
    assert profiles.of("ann", "amp") == (
        ("Liked: it is loud.", "Disliked: it is dear."),
        ("Disliked: it is dear.",),
    )
    assert profiles.of("bob", "bow") == (
        ("Disliked: it is dear.",),
        ("Liked: it is loud.", "Disliked: it is dear."),
    )


def test_the_most_frequent_come_first_and_of_equally_frequent_the_first(examples):
    profiles = StatementProfiles(rows_of(examples), 4)
    assert profiles.of("ann", "harp")[0] == (
        "Liked: it is loud.",
        "Liked: it is good.",
        "Disliked: it is dear.",
    )


def test_each_sentiment_has_its_own_number(examples):
    assert StatementProfiles(rows_of(examples), 1).of("ann", "harp")[0] == (
        "Liked: it is loud.",
        "Disliked: it is dear.",
    )


def test_who_is_not_known_has_no_profile(examples):
    assert (
        StatementProfiles(rows_of(examples), 4).of("eve", "harp") == ((), ()) == NoProfiles().of("ann", "amp")
    )


def test_written_profiles_are_of_each_user_and_item_once_from_the_latest_reviews(examples):
    chat = Double(Completion("Likes it loud. Dislikes 3.5 mm."))
    profiles, counts = write_profiles(rows_of(examples), chat, 100, 9)
    reported = ("Likes it loud.", "Dislikes 3.5 mm.")
    assert profiles.of("ann", "bow") == (reported, reported) and profiles.of("eve", "amp") == ((), reported)
    texts = [prompt.user.removesuffix("\n\nThe answer:") for prompt in chat.requested]
    first, second, third = (text for _, _, _, text in LINES)
    assert texts == [f"{second}\n\n{first}", third, f"{third}\n\n{first}", second]
    assert len({prompt.system for prompt in chat.requested}) == 2 and not sum(counts.values())


@pytest.mark.parametrize(
    ("words", "shown"),
    [(3, ["Second of the bow."]), (9, ["Second of the bow.", "First of the amp."]), (1, None)],
)
def test_reviews_are_shown_by_whole_sentences_and_what_is_not_is_counted(examples, words, shown):
    chat = Double(Completion("Yes."))
    profiles, counts = write_profiles(rows_of(examples), chat, words, 9)
    requested = [prompt.user.removesuffix("\n\nThe answer:") for prompt in chat.requested]
    if words >= 9:
        assert requested[0] == "\n\n".join(shown)
    else:
        assert not requested and profiles.of("ann", "amp") == ((), ())
    assert counts["not shown all reviews"] >= 3 - (words == 9)


def test_an_answer_that_was_stopped_loses_its_unfinished_sentence(examples):
    profiles, counts = write_profiles(
        rows_of(examples), Double(Completion("It is loud. It is no", cut=True)), 100, 9
    )
    assert profiles.of("ann", "amp")[0] == ("It is loud.",) and counts["cut"] == 4


def test_missing_profiles_are_counted_and_reported(examples):
    with pytest.warns(UserWarning, match="4 of 4 profiles were not written"):
        profiles, counts = write_profiles(rows_of(examples), Double(Completion(failure="too long")), 100, 9)
    assert profiles.of("ann", "amp") == ((), ()) and counts["no answer"] == 4
