from itertools import product

from cfbench_tabular.datasets.car_evaluation import LEVELS, CarEvaluation, Config, evaluate


def rows_of(table, codes):
    target = [codes[label] for label in table.target]
    return list(zip(*(table.values[column.name] for column in table.columns), target, strict=True))


def test_a_cheap_safe_large_car_is_very_good_and_an_unsafe_one_is_not_bought():
    table = CarEvaluation(Config()).load()
    rows = rows_of(table, {label: label for label in ("unacc", "acc", "good", "vgood")})
    assert ("low", "low", "4", "4", "big", "high", "vgood") in rows
    assert ("low", "low", "4", "4", "big", "low", "unacc") in rows
    assert len(set(rows)) == 1728


def test_what_is_better_in_one_attribute_is_never_judged_worse():
    """Seats apart: more of them in a small car are worse."""
    seats = list(LEVELS).index("persons")
    order = ("unacc", "acc", "good", "vgood")
    sizes = [len(levels) for levels in LEVELS.values()]
    for car in product(*map(range, sizes)):
        for place, size in enumerate(sizes):
            if place != seats and car[place] + 1 < size:
                better = (*car[:place], car[place] + 1, *car[place + 1 :])
                assert order.index(evaluate(*better)) >= order.index(evaluate(*car))


def test_the_rows_are_those_of_the_real_file_in_its_order(study):
    codes = {"unacc": "0", "acc": "1", "vgood": "2", "good": "3"}
    assert study.rows("CarEvaluation") == rows_of(CarEvaluation(Config()).load(), codes)
