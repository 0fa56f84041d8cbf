from cfbench_tabular.datasets.balance_scale import BalanceScale, Config


def test_the_side_with_the_larger_product_goes_down():
    table = BalanceScale(Config()).load()
    rows = list(zip(*(table.values[column.name] for column in table.columns), table.target, strict=True))
    assert len(set(rows)) == 625
    assert ("1", "5", "5", "1", "B") in rows
    assert ("2", "3", "1", "5", "L") in rows
    assert ("2", "3", "2", "4", "R") in rows


def test_of_the_two_equally_frequent_sides_the_last_is_the_target():
    assert BalanceScale(Config()).load().classes() == ("not R", "R")
    assert BalanceScale(Config(target="B")).load().classes() == ("not B", "B")


def test_the_rows_are_those_of_the_real_file_in_its_order(study):
    codes = {"L": "0", "R": "1", "B": "2"}
    assert study.rows("BalanceScale") == rows_of(BalanceScale(Config()).load(), codes)


def rows_of(table, codes):
    target = [codes[label] for label in table.target]
    return list(zip(*(table.values[column.name] for column in table.columns), target, strict=True))
