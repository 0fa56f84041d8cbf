"""A table of the user's own: what is read, and what is said of everything that can be wrong with it."""

import gzip

import numpy as np
import pytest
import yaml

from cfbench_core import api
from cfbench_core.config import decode_options
from cfbench_core.config.document import Document
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.registry import installed
from cfbench_tabular.datasets.csv import Config, Csv

PATIENTS = """\
id,age,sex,smoker,mass,height2,bmi,outcome
1,34,female,1,60,3.0,20.0,ill
2,71,male,3,90,3.0,30.0,well
3,50,female,2,72,3.6,20.0,well
4,18,male,1,81,3.24,25.0,ill
"""
SCHEMA = {
    "columns": {
        "id": "drop",
        "age": "numeric",
        "sex": ["female", "male"],
        "smoker": {"levels": {1: "never", 2: "former", 3: "current"}},
    },
    "constraints": [{"column": "bmi", "relation": "ratio", "of": ["mass", "height2"], "absolute": 0.05}],
}


@pytest.fixture
def read(tmp_path):
    """``read(text, **options)``: the table, by the way that a configuration takes."""

    def table(text=PATIENTS, name="patients.csv", **options):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        component = installed().find("tabular", "dataset", "csv")
        document = Document(
            yaml.safe_dump({"file": str(path), **options}, sort_keys=False), "study.yaml", tmp_path
        )
        dataset = decode_options(component, document, installed()).create()
        return dataset.load(dataset.find(DataAccess(offline=True)).parameters())

    return table


def test_a_table_by_hand(read):
    table = read(**SCHEMA, target="ill", immutable=["sex"], direction={"age": "up"})
    columns = {column.name: column for column in table.columns}
    assert list(columns) == ["age", "sex", "smoker", "mass", "height2", "bmi"]
    assert table.name == "patients"
    assert table.values["age"].tolist() == [34, 71, 50, 18]
    assert table.values["smoker"].tolist() == ["never", "current", "former", "never"]
    assert columns["smoker"].levels == ("never", "former", "current")
    assert columns["sex"].immutable and columns["age"].direction == "up"
    assert table.classes() == ("well", "ill")
    assert [str(rule) for rule in table.constraints] == ["bmi = mass / height2 ± 0.05"]


def test_without_a_schema_types_are_inferred_and_the_last_column_is_the_class(read):
    table = read("age,sex,old,y\n34,f,0,a\n71,m,1,b\n50,f,0,a\n")
    assert [(column.name, column.kind) for column in table.columns] == [
        ("age", "numeric"),
        ("sex", "categorical"),
        ("old", "categorical"),
    ]
    assert table.classes() == ("b", "a")


def test_options_of_the_configuration_override_the_schema_file(read, tmp_path):
    (tmp_path / "patients.yaml").write_text(yaml.safe_dump({**SCHEMA, "class_column": "outcome"}))
    table = read(schema="patients.yaml", columns={"age": "drop", "id": "drop"})
    assert [column.name for column in table.columns] == ["sex", "smoker", "mass", "height2", "bmi"]
    assert len(table.constraints) == 1


def test_what_is_wrong_in_a_schema_is_reported_when_a_run_is_planned(tmp_path):
    (tmp_path / "patients.csv").write_text(PATIENTS)
    file, schema = str(tmp_path / "patients.csv"), tmp_path / "patients.yaml"
    schema.write_text("missing: drop\nclass_colum: outcome\n")
    with pytest.raises(
        UserError, match=r"patients.yaml:2: class_colum: unknown key. Did you mean 'class_column'"
    ):
        Csv(Config(file=file, schema=str(schema))).find(DataAccess())
    schema.write_text("threshold: 3\n")
    with pytest.raises(
        UserError, match="with the options of the configuration: threshold and classes exclude each other"
    ):
        Csv(Config(file=file, schema=str(schema), classes={"a": "b"})).find(DataAccess())
    with pytest.raises(UserError, match="column 'age': must be numeric"):
        Csv(Config(file=file, columns={"age": "number"})).find(DataAccess())
    with pytest.raises(UserError, match=r"gone\.yaml: no such file"):
        Csv(Config(file=file, schema="gone.yaml")).find(DataAccess())


def test_other_separators_blanks_quotes_and_a_mark_at_the_beginning(read):
    text = 'age;town;y\n 34 ; "Bonn; the old one" ;a\n\n51;Ulm;b\n60;Ulm;b\n'
    table = read(b"\xef\xbb\xbf" + text.encode())
    assert table.values["age"].tolist() == [34, 51, 60]
    assert table.values["town"].tolist() == ["Bonn; the old one", "Ulm", "Ulm"]


def test_white_space_and_a_file_without_a_header_and_gzip(read):
    text = gzip.compress(b"  1.5   a  0\n  2.5   b  1\n  9e2   a  1\n")
    columns = {"x": "numeric", "kind": "categorical", "y": "categorical"}
    table = read(text, name="t.dat.gz", separator="whitespace", header=False, columns=columns)
    assert table.values["x"].tolist() == [1.5, 2.5, 900.0]
    assert table.target.tolist() == ["0", "1", "1"]


def test_classes_by_a_threshold_and_by_name(read):
    text = "x,y\n1,3\n2,12\n3,20\n4,11.5\n"
    assert read(text, threshold=12).target.tolist() == ["below 12", "at least 12", "at least 12", "below 12"]
    assert read("x,y\n1,g\n2,h\n3,g\n", classes={"g": "gamma", "h": "hadron"}).classes() == (
        "hadron",
        "gamma",
    )


def test_many_columns_are_named_by_their_first_and_last(read):
    table = read("x1,x2,x3,y\n1,2,1,a\n2,2,1,b\n", columns={"x1..x3": "numeric"})
    assert [column.kind for column in table.columns] == ["numeric"] * 3


def test_rows_with_missing_values_are_refused_or_left_out(read):
    text = "age,town,y\n34,Ulm,a\n?,Ulm,b\n51,,a\n60,Bonn,b\n61,Bonn,\n"
    with pytest.raises(
        UserError, match=r"patients.csv:3: column 'age': is missing \('\?'\)\. Fill it in, set"
    ):
        read(text)
    table = read(text, missing="drop", columns={"age": "numeric"})
    assert table.values["age"].tolist() == [34, 60]
    selected = read("town,y\n?,a\nUlm,b\n?,b\n", columns={"town": ["?", "Ulm"]})
    assert selected.values["town"].tolist() == ["?", "Ulm", "?"]
    with pytest.raises(UserError, match="every row has a missing value"):
        read("a,y\n?,1\n?,2\n", missing="drop")


WRONG = {
    "a row that is too short": ("a,b,y\n1,2,c\n1,d\n", {}, r"\.csv:3: has 2 values for 3 columns"),
    "no rows": ("a,b,y\n", {}, r"patients.csv: has no rows"),
    "two columns of one name": ("a,a,y\n1,2,c\n", {}, "two columns are called 'a'"),
    "text among numbers": (
        "a,y\n1,c\n2,c\nthree,d\n",
        {"columns": {"a": "numeric"}},
        r"patients.csv:4: column 'a': 'three' is not a finite number",
    ),
    "infinity": ("a,y\n1,c\ninf,d\n", {"columns": {"a": "numeric"}}, "'inf' is not a finite number"),
    "another level": (
        "sex,y\nfemale,c\nfemal,d\n",
        {"columns": {"sex": ["female", "male"]}},
        r"patients.csv:3: column 'sex': no level 'femal'\. Did you mean 'female'\?",
    ),
    "another class": ("a,y\n1,g\n2,k\n", {"classes": {"g": "gamma"}}, r":3: column 'y': no class 'k'"),
    "a class column that is not there": (
        PATIENTS,
        {"class_column": "outcom"},
        r"class_column: no column 'outcom'\. Did you mean 'outcome'\?",
    ),
    "a column that is not there": (
        PATIENTS,
        {"columns": {"aeg": "numeric"}},
        r"no column 'aeg'\. Did you mean 'age'\?",
    ),
    "a kind that does not exist": (
        PATIENTS,
        {"columns": {"age": "numerical"}},
        r"column 'age': must be numeric, integer, date, time, ordinal, categorical, drop or a list of levels, "
        r"got 'numerical'\. Did you mean",
    ),
    "levels twice": (PATIENTS, {"columns": {"sex": ["male", "male"]}}, "levels: 'male' occurs twice"),
    "a yes that YAML made true": (
        "a,y\nyes,1\nno,2\n",
        {"columns": {"a": [False, True]}},
        r"column 'a': levels: false is not text; YAML reads an unquoted no as a boolean",
    ),
    "one level only": ("a,b,y\n1,x,c\n2,x,d\n", {}, "column 'b' has only the level 'x'.*remove it"),
    "nothing but classes": ("a,y\n1,c\n2,d\n", {"columns": {"a": "drop"}}, "has no feature columns"),
    "a rule that the rows break": (
        "a,b,y\n1,2,c\n3,3,d\n4,5,c\n",
        {"constraints": [{"column": "a", "relation": "at_least", "of": ["b"]}]},
        r"constraint 'a >= b' is violated in 2 rows \(first: row 0",
    ),
    "a rule of no column": (
        PATIENTS,
        {"constraints": [{"column": "bim", "relation": "ratio", "of": ["mass", "height2"]}]},
        r"no column 'bim'\. Did you mean 'bmi'\?",
    ),
    "a rule that cannot be": (
        PATIENTS,
        {"constraints": [{"column": "bmi", "relation": "ratio", "of": ["mass"]}]},
        r"study.yaml:\d+: constraints\[0\]: ratio needs two columns in 'of', got 1",
    ),
    "an unknown relation": (
        PATIENTS,
        {"constraints": [{"column": "bmi", "relation": "quotient", "of": ["mass"]}]},
        r"constraints\[0\].relation: must be one of product, ratio",
    ),
    "an unknown key": (
        PATIENTS,
        {"colums": {}},
        r"study.yaml:2: colums: unknown key. Did you mean 'columns'",
    ),
    "no names at all": (PATIENTS, {"header": False}, "header: false needs all columns"),
    "nothing can change": (
        "age,y\n34,a\n71,b\n50,a\n",
        {"immutable": ["age"]},
        "every column is immutable, so that no counterfactual can exist: remove one from 'immutable'",
    ),
    "both ways at once": (
        PATIENTS,
        {"immutable": ["age"], "direction": {"age": "up"}},
        "'age' is immutable and has the direction up: remove one of the two",
    ),
}


@pytest.mark.parametrize(("text", "options", "message"), WRONG.values(), ids=WRONG)
def test_errors_are_reported_in_one_line(read, text, options, message):
    with pytest.raises(UserError, match=message) as error:
        read(text, **options)
    assert len(error.value.lines) == 1


def test_one_class_or_a_target_that_is_not_there(read):
    with pytest.raises(UserError, match="every row has the class 'c', so there is nothing to predict"):
        read("a,y\n1,c\n2,c\n").classes()
    with pytest.raises(UserError, match="no row has the class 'sick'; there are ill, well"):
        read(target="sick").classes()


def test_a_missing_file_is_reported_by_the_configuration(tmp_path):
    component = installed().find("tabular", "dataset", "csv")
    with pytest.raises(UserError, match=r"study.yaml:1: file: no such file: gone.csv"):
        decode_options(component, Document("file: gone.csv\n", "study.yaml", tmp_path), installed())


def test_bytes_that_are_no_text(read):
    with pytest.raises(
        UserError,
        match=r"patients\.csv: cannot be read: is not utf-8 text .line 2.; it can be read as windows-1252",
    ):
        read(b"a,y\n\xff\xfe,1\n")
    assert read("grösse,y\n1,a\n2,b\n".encode("latin-1"), encoding="latin-1").columns[0].name == "grösse"


def test_another_content_is_another_piece_of_work(tmp_path):
    """The cache must not counterfactual for a file that was edited."""
    path = tmp_path / "patients.csv"
    dataset = Csv(Config(file=str(path)))
    path.write_text(PATIENTS)
    first = dataset.find(DataAccess())
    path.write_text(PATIENTS.replace("34", "35"))
    assert dataset.find(DataAccess()).sha256 != first.sha256


def test_it_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    rows = [f"{x:.3f},{'rb'[int(x > 0)]},{int(x + y > 0)}" for x, y in draw.normal(size=(80, 2))]
    (tmp_path / "mine.csv").write_text("x,colour,y\n" + "\n".join(rows) + "\n")
    document = {
        "suite": "tabular",
        "data": [{"name": "csv", "file": "mine.csv", "columns": {"colour": ["r", "b"]}}],
        "classifiers": ["logistic-regression"],
        "explainers": ["nearest-enemy"],
        "metrics": ["validity"],
        "protocol": {"factuals": 3},
        "executor": "inline",
    }
    scores = api.run(document, out=tmp_path / "out").scores
    assert len(scores) == 6 and (scores["metric"] == "validity").all()


@pytest.mark.parametrize("columns", [f"a,{'b' * 2000},c", "a,b,c"])
def test_a_name_or_a_level_that_is_too_long_is_refused(read, columns):
    rows = "".join(f"{n},v{n % 2},{n % 2}\n" for n in range(12))
    with pytest.raises(UserError, match=r"patients\.csv.*has 2,000 characters; at most 1,000"):
        read(f"{columns}\n{rows}1,{'v' * 2000},1\n")
