"""The cache of responses of models."""

import sqlite3

import pytest

from cfbench_core.errors import UserError
from cfbench_text.models.response_cache import ResponseCache


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return ResponseCache("chat")


def doubled(places):
    yield from ((place, 2 * place) for place in places)


def test_an_interrupted_computation_resumes_where_it_stopped(cache):
    def stops(places):
        yield from list(doubled(places))[:2]
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        cache.values(["a", "b", "a", "c"], stops)
    asked = []
    found = cache.values(["a", "b", "a", "c"], lambda places: doubled(asked.extend(places) or places))
    assert found == [0, 2, 0, 6] and asked == [3]


@pytest.mark.parametrize(
    "damage", [lambda whole: b"no database" * 100, lambda whole: whole[:5000] + bytes(4000)]
)
def test_a_damaged_file_is_named(cache, damage):
    cache.values([f"key {number}" for number in range(500)], doubled)
    cache.path.write_bytes(damage(cache.path.read_bytes()))
    with pytest.raises(
        UserError, match=r"chat\.sqlite: the cached responses of models are damaged .* delete this file"
    ):
        cache.values([f"key {number}" for number in range(500)], doubled)


def test_a_full_disk_is_one_line_and_costs_only_what_was_not_written(cache, monkeypatch):
    keys = [f"key {number}" for number in range(500)]
    cache.values(keys[:100], doubled)
    connect = sqlite3.connect

    def full(path, timeout):
        connection = connect(path, timeout=timeout)
        connection.execute("PRAGMA max_page_count = 1")  # not more than there are
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", full)
        with pytest.raises(UserError, match=r"answers: the disk is full .* the same command resumes"):
            cache.values(keys, doubled)
    asked = []
    assert cache.values(keys, lambda places: doubled(asked.extend(places) or places))[-1] == 998
    assert asked == list(range(100, 500))
