"""The parser of responses of language models."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_text import response_parsing
from cfbench_text.response_parsing import BareReading, read_answer, read_statements
from cfbench_text.triplets import SENTIMENTS, Triplet, canonical

TOPICS = ("fit", "price")
STATEMENT = st.text(min_size=1, max_size=12).map(lambda s: " ".join(s.split())).filter(
    bool
) | st.sampled_from(
    [
        'a "quoted" word',
        "brackets ] and } and [{",
        '{"statement": "no", "topic": "fit", "sentiment": "neutral"}',
        "\\",
    ]
)
TRIPLETS = st.lists(
    st.builds(Triplet, STATEMENT, st.sampled_from(TOPICS), st.sampled_from(SENTIMENTS)),
    min_size=1,
    max_size=4,
)


def answer_of(triplets, **how):
    return json.dumps(
        [{"statement": t.statement, "topic": t.topic, "sentiment": t.sentiment} for t in triplets], **how
    )


ONE = Triplet("it runs small", "fit", "negative")


def test_a_plain_answer():
    found = read_answer(answer_of([ONE]), TOPICS)
    assert (found.triplets, found.status, dict(found.left_out)) == ((ONE,), "ok", {})


def test_nothing_to_extract_is_no_failure():
    assert read_answer("[]", TOPICS).status == "empty"
    assert read_answer("```json\n[ ]\n```", TOPICS).status == "empty"
    failed = read_answer("I cannot help with that.", TOPICS)
    assert failed.status == "failed" and failed.left_out == {"no array": 1}
    assert read_answer("", TOPICS).status == "failed"


@settings(max_examples=60, deadline=None)
@given(TRIPLETS, st.sampled_from([None, 2]), st.booleans())
def test_every_complete_object_is_read_from_every_cut(triplets, indent, ascii_only):
    answer = answer_of(triplets, indent=indent, ensure_ascii=ascii_only)
    ends, decoder, place = [], json.JSONDecoder(), 1
    for _ in triplets:
        place = answer.index("{", place)
        _, place = decoder.raw_decode(answer, place)
        ends.append(place)
    for cut in range(len(answer) + 1):
        whole = sum(end <= cut for end in ends)
        found = read_answer(answer[:cut], TOPICS)
        assert found.triplets == canonical(triplets[:whole])
        assert not set(found.left_out) - {"no array"}
        assert (found.status == "ok") == (cut == len(answer))


def test_prose_around_the_array_does_no_harm():
    answer = f"Here are the statements [as asked]:\n```json\n{answer_of([ONE])}\n```\nAnything else?"
    assert read_answer(answer, TOPICS).triplets == (ONE,)


def test_objects_without_an_array_are_used_and_the_fault_is_counted():
    lines = '{"statement": "it runs small", "topic": "fit", "sentiment": "negative"}\n{"statement"'
    found = read_answer(lines, TOPICS)
    assert found.triplets == (ONE,) and found.status == "cut" and found.left_out == {"no array": 1}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"statement": "x", "topic": "smell", "sentiment": "neutral"}, "topic not in the list"),
        ({"statement": "x", "topic": "fit", "sentiment": "mixed"}, "sentiment not in the list"),
        ({"statement": "x", "topic": "fit"}, "sentiment not in the list"),
        ({"topic": "fit", "sentiment": "neutral"}, "no statement"),
        ({"statement": 3, "topic": "fit", "sentiment": "neutral"}, "no statement"),
        ("it runs small", "not an object"),
        (["it runs small"], "not an object"),
    ],
)
def test_unusable_members_are_counted_and_the_rest_is_used(entry, reason):
    good = {"statement": "it runs small", "topic": " Fit", "sentiment": "NEGATIVE"}
    found = read_answer(json.dumps([entry, good]), TOPICS)
    assert found.triplets == (ONE,) and found.left_out == {reason: 1}


def test_a_malformed_object_does_not_cost_the_next_one():
    broken = '[{"statement": "x" "topic": "fit"}, ' + answer_of([ONE])[1:]
    found = read_answer(broken, TOPICS)
    assert found.triplets == (ONE,) and found.left_out == {"malformed object": 1} and found.status == "ok"


def test_a_brace_too_many_closes_nothing():
    whole = json.dumps([{"statement": "it runs small", "topic": "fit", "sentiment": "negative"}])
    assert read_answer(whole[:-1] + "}]", TOPICS).triplets == (ONE,)
    assert read_statements('["a"}, "b"]').statements == ("a", "b")


@pytest.mark.parametrize(
    "answer",
    [
        "[",
        '[{"statement": "it runs sm',
        '[{"statement": "it smells", "topic": "smell", "sentiment": "neutral"}]',
        '["it runs small"]',
        "{}",
        "<think>There is nothing, so [] is the answer",
        "<think>[]</think> I would rather not say.",
        'It is ["nothing"], or [].',
    ],
)
def test_a_response_without_a_usable_statement_is_no_empty_list(answer):
    found = read_answer(answer, TOPICS)
    assert (found.triplets, found.status) == ((), "failed")


@pytest.mark.parametrize("before", ["", "<think>", "<THINK>first [] and then "])
def test_reasoning_is_not_part_of_the_answer(before):
    assert read_answer(f"{before}perhaps [] or [{{}}]</think>\n{answer_of([ONE])}", TOPICS).triplets == (ONE,)
    assert read_answer(f"{before}perhaps {answer_of([ONE])}</think>\n[]", TOPICS).status == "empty"


def test_an_empty_array_in_prose_does_not_hide_the_answer():
    assert read_answer(f"[] would be wrong here:\n{answer_of([ONE])}", TOPICS).triplets == (ONE,)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='[]{}",: a\\', max_size=30))
def test_every_answer_comes_to_an_end(answer):
    assert read_answer(answer, TOPICS).status in ("ok", "empty", "cut", "failed")
    assert read_statements(answer).status in ("ok", "empty", "cut", "failed")


BARE = st.lists(STATEMENT.filter(lambda s: any(c.isalnum() for c in s)), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(BARE, st.booleans())
def test_every_complete_text_is_read_from_every_cut(statements, ascii_only):
    answer = json.dumps(statements, ensure_ascii=ascii_only)
    ends, decoder, place = [], json.JSONDecoder(), 1
    for _ in statements:
        place = answer.index('"', place)
        _, place = decoder.raw_decode(answer, place)
        ends.append(place)
    for cut in range(len(answer)):
        whole = sum(end < cut for end in ends)  # the mark behind it shows that it has ended
        found = read_statements(answer[:cut])
        assert found.statements == tuple(dict.fromkeys(statements[:whole]))
        assert found.status in ("cut", "failed")
    assert read_statements(answer) == BareReading(tuple(dict.fromkeys(statements)), "ok")


@pytest.mark.parametrize(
    ("answer", "statements", "status"),
    [
        ("[]", (), "empty"),
        ('Here is [the list]:\n["it is [new]", "a"]', ("it is [new]", "a"), "ok"),
        ('["brackets [] and [{ inside", "a"]', ("brackets [] and [{ inside", "a"), "ok"),
        ('[{"statement": "a"}, {"text": "b"}, "c", 4, ""]', ("a", "c"), "ok"),
        ('["<first statement>", ...]', (), "failed"),
        ('It could be []. No: ["a"]', ("a",), "ok"),
        ("<think>- It is red.\n- It is big.</think>\n- It is red.", ("It is red.",), "ok"),
        ('<think>["a"]', (), "failed"),
        ("It is red.", (), "failed"),
        ('Here it is:\n\n- "It is red."\n* It is big,\n- It is red.', ("It is red.", "It is big"), "ok"),
        ("1. It is red\n2) it was che", ("It is red",), "cut"),
        ("1. It is red\n2) it was cheap\n", ("It is red", "it was cheap"), "ok"),
        ("It is 3 - 4 years old. 5. Good", (), "failed"),
    ],
)
def test_bare_statements(answer, statements, status):
    found = read_statements(answer)
    assert (found.statements, found.status) == (statements, status)


TWO = Triplet("it is cheap", "price", "positive")
ARRAYS = {
    "one after the other": "{0}\n{1}",
    "with a comma": "{0}, {1}",
    "in an array": "[{0}, {1}]",
    "by topic": '{{"fit": {0}, "price": {1}}}',
    "by sentiment": '{{"negative": {0}, "neutral": [], "Positive": {1}}}',
}


@pytest.mark.parametrize("form", ARRAYS.values(), ids=ARRAYS)
def test_arrays_that_follow_one_another_are_one_list(form):
    found = read_answer(form.format(answer_of([ONE]), answer_of([TWO])), TOPICS)
    assert (found.triplets, found.status, found.left_out) == (canonical([ONE, TWO]), "ok", {})


@pytest.mark.parametrize("between", ["\n\nAn example: ", ', "rejected": '])
def test_what_is_listed_elsewhere_behind_the_array_is_counted_not_used(between):
    found = read_answer(answer_of([ONE]) + between + answer_of([ONE, TWO]), TOPICS)
    assert (found.triplets, found.status, found.left_out) == ((ONE,), "ok", {"listed behind the array": 1})


@pytest.mark.parametrize("first", ['a 5" screen', 'a "large screen', 'a "large" screen', 'a [" {"'])
@settings(max_examples=50, deadline=None)
@given(triplets=TRIPLETS)
def test_quotation_marks_that_are_not_escaped_cost_one_object_only(first, triplets):
    bad = f'{{"statement": "{first}", "topic": "fit", "sentiment": "positive"}}'
    clean = [*(t for t in triplets if "{" not in t.statement), TWO]
    objects = [json.dumps(vars(t)) for t in clean]
    found = read_answer(f"[{', '.join([objects[0], bad, *objects[1:], bad, objects[-1]])}]", TOPICS)
    assert (found.triplets, found.status) == (canonical(clean), "ok")
    assert found.left_out == {"malformed object": 2}


@pytest.mark.parametrize(
    "piece",
    ['{"statement":', '[{"statement":"x","topic":"sound","sentiment":"positive"', '{"statement":"x" y",'],
)
def test_each_part_of_an_endless_answer_is_read_once(piece, monkeypatch):
    """The marks that are read grow with the length of the answer, not with its square."""
    read = Counter()
    marks = response_parsing._marks

    def counted(text, place):
        for found in marks(text, place):
            read[len(text)] += 1
            yield found

    monkeypatch.setattr(response_parsing, "_marks", counted)
    for times in (200, 400):
        assert read_answer("[" + piece * times, {"sound"}).status == "failed"
    few, many = (read[length] for length in sorted(read))
    assert many <= 2.5 * max(few, 100)
