"""``cfbench init --csv``: a draft that reads the very file, and returns what it guessed."""

from pathlib import Path

import pytest
import yaml

from cfbench_core import api
from cfbench_core.cli import main
from cfbench_core.errors import UserError
from cfbench_tabular.config_from_csv import csv_document

PATIENTS = "".join(
    f"{n},{20 + n % 60},{'mf'[n % 2]},{n % 2},ward {n % 4},note {n},same,{n / 10},{n / 7},{n / 3},{n / 11},"
    f"{'ill' if n % 3 else 'well'}\n"
    for n in range(1, 91)
)
HEAD = "id,age,sex,smoker,ward,note,hospital,v1,v2,v3,v4,outcome\n"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def written(text=HEAD + PATIENTS):
        path = tmp_path / "patients.csv"
        path.write_text(text)
        return path.relative_to(tmp_path)

    return written


def drafted(path, target=None):
    text = csv_document(path, target, ["nearest-enemy"])
    return text, yaml.safe_load(text)["data"][0]


def test_the_configuration_of_a_small_file_verified_by_hand(file):
    text, data = drafted(file())
    assert data["columns"] == {
        "id": "drop",
        "age": "integer",
        "sex": ["f", "m"],
        "smoker": ["0", "1"],
        "ward": ["ward 0", "ward 1", "ward 2", "ward 3"],
        "note": "drop",
        "hospital": "drop",
        "v1": {"type": "numeric", "step": 0.1},
        "v2": "numeric",
        "v3": "numeric",
        "v4": "numeric",
    }
    assert (data["class_column"], data["target"], data["separator"]) == ("outcome", "ill", ",")
    assert "inferred: the last column; rows: ill 60, well 30" in text
    assert "distinct in every row: probably a row identifier" in text
    assert "text with 90 distinct values in 90 rows" in text
    assert "always 'same'" in text
    assert "20 to 79; whole numbers" in text
    assert "0.1 to 9; up to 1 decimal\n" in text
    assert "missing" not in data


def test_the_inferred_configuration_plans_and_reads_the_file(file, capsys):
    file()
    assert main(["init", "--csv", "patients.csv", "--target", "outcome", "mine.yaml"]) == 0
    assert capsys.readouterr().out.startswith("wrote mine.yaml.")
    assert "from --target" in Path("mine.yaml").read_text()
    plan = api.plan("mine.yaml")
    assert plan.cells and not any(cell.skipped for cell in plan.cells)


def test_missing_values_are_counted_and_types_come_from_whole_rows(file):
    text, data = drafted(file("age,town,y\n34,Ulm,a\n?,Ulm,b\n51,,a\n60,Bonn,b\n70,Ulm,a\n"))
    assert data["missing"] == "drop"
    assert "2 of 5 rows have a missing value (age, town: empty, '?')" in text
    assert data["columns"] == {"age": "integer", "town": ["Bonn", "Ulm"]}


def test_words_that_yaml_takes_for_something_else_are_quoted(file):
    _, data = drafted(file("on,b: c,no. 1,y\nyes,1,~,01\nno,2,≈,2\nyes,3,~,01\n"))
    assert data["columns"] == {"on": ["no", "yes"], "b: c": "integer", "no. 1": ["~", "≈"]}
    assert data["target"] == "01"


def test_a_class_column_of_many_numbers_gets_a_threshold(file):
    rows = "".join(f"{n % 7},{n * 1.5}\n" for n in range(100))
    text, data = drafted(file("x,y\n" + rows))
    assert (data["threshold"], data["class_column"]) == (74.25, "y")
    assert "inferred: the median" in text


def test_a_constraint_that_every_row_keeps_is_inferred_and_can_be_read(file):
    rows = "".join(f"{n % 13 + 2},{n % 17 + 2},{(n % 13 + 2) * (n % 17 + 2)},{n % 2}\n" for n in range(60))
    text, data = drafted(file("height,width,area,y\n" + rows))
    assert data["constraints"] == [
        {"column": "area", "relation": "product", "of": ["height", "width"], "absolute": 0.5}
    ]
    Path("study.yaml").write_text(text)
    assert api.plan("study.yaml").cells


def test_another_target_leaves_the_last_column_a_feature(file):
    _, data = drafted(file(), "sex")
    assert data["class_column"] == "sex"
    assert data["columns"]["outcome"] == ["ill", "well"]


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        (HEAD + PATIENTS, "outcom", r"no column 'outcom'\. Did you mean 'outcome'\?"),
        (
            HEAD + PATIENTS,
            "hospital",
            r"'hospital' has only one class \(every row has 'same'\); name another",
        ),
        (HEAD + PATIENTS, "note", r"'note' has 90 distinct values, too many for classes"),
        ("y\n1\n2\n", None, "has only the column 'y'; its separator must be one of"),
        ("a,y\n", None, "has no rows"),
        ("a,y\n1,\n2,\n", None, r"has only one class \(it is empty\)"),
    ],
)
def test_files_without_classes_are_reported(file, text, target, message):
    with pytest.raises(UserError, match=message):
        csv_document(file(text), target, [])


def test_the_command_refuses_a_file_that_is_not_there_and_writes_over_none(file, capsys):
    assert main(["init", "--csv", "gone.csv"]) == 2
    assert "gone.csv: cannot be read: [Errno 2] No such file" in capsys.readouterr().err
    file()
    assert main(["init", "--csv", "patients.csv"]) == 0
    before = Path("study.yaml").read_text()
    assert main(["init", "--csv", "patients.csv", "--target", "sex"]) == 2
    assert Path("study.yaml").read_text() == before
    assert main(["init", "--csv", "patients.csv", "--target", "sex", "--force"]) == 0
    assert Path("study.yaml").read_text() != before
