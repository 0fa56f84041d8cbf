from itertools import product

from cfbench_tabular.datasets.nursery import LEVELS, Config, Nursery, ranked

ORDER = ("recommend", "very_recom", "priority", "spec_prior")


def test_ill_children_are_refused_and_the_easiest_case_is_merely_recommended():
    table = Nursery(Config()).load()
    assert table.classes() == ("not not_recom", "not_recom")
    assert (table.target == "recommend").sum() == 2
    assert ((table.values["health"] == "not_recom") == (table.target == "not_recom")).all()


def test_a_greater_need_never_ranks_lower():
    sizes = [len(levels) for levels in LEVELS.values()]
    for child in product(*map(range, [*sizes[:-1], 2])):
        for place, size in enumerate([*sizes[:-1], 2]):
            if child[place] + 1 < size:
                needier = (*child[:place], child[place] + 1, *child[place + 1 :])
                assert ORDER.index(ranked(*needier)) >= ORDER.index(ranked(*child))


def test_the_rows_are_those_of_the_real_file_in_its_order(study):
    table = Nursery(Config()).load()
    codes = {"not_recom": "0", "recommend": "1", "priority": "2", "spec_prior": "3", "very_recom": "5"}
    finance = {"convenient": "0", "inconv": "1"}  # columns of two values are 0 and 1 there
    columns = [
        [finance[value] for value in table.values[column.name]]
        if column.name == "finance"
        else table.values[column.name]
        for column in table.columns
    ]
    target = [codes[label] for label in table.target]
    assert study.rows("Nursery") == list(zip(*columns, target, strict=True))
