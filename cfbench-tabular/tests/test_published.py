"""The UCI data sets of CF-tabular: descriptions against its published files, and files in UCI's formats."""

import dataclasses
import gzip
import http.server
import json
import threading
import zipfile
from functools import partial

import numpy as np
import pytest
from lzw_writer import compressed

from cfbench_core.component_specs import component_specs
from cfbench_core.data_files import DataAccess, Source, fetch
from cfbench_core.data_status import files_of as status_files
from cfbench_core.data_status import status, verify
from cfbench_core.errors import UserError
from cfbench_tabular.datasets import published
from cfbench_tabular.datasets.published import Config, Published
from cfbench_tabular.datasets.uci_files import description_of, files_of, read_raw

NAMES = sorted(cls.name for cls in Published.__subclasses__())
CLASS_OF = {cls.name: cls for cls in Published.__subclasses__()}
AWAY = {"internet-advertisements", "isolet", "sdd"}
"""Sets whose files are not among CF-tabular's."""
MAJORITY = {  # share of the target class, table A1 of the paper
    "adult": 0.76,
    "bcw": 0.76,
    "cmsc": 0.91,
    "default-of-credit-card-clients": 0.78,
    "ecoli": 0.57,  # of the rest: the larger part, not the target
    "hayes-roth": 0.61,
    "lymphography": 0.55,
    "magic": 0.65,
    "pbc": 0.90,
    "soybean-small": 0.64,
    "statlog-german-credit": 0.70,
    "student-performance": 0.54,
}
LINES = {  # of UCI's files, the first, or one of each class
    "adult": [
        "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
        "United-States, <=50K"
    ],
    "bcw": [
        "119513,N,31,18.02,27.6,117.5,1013,0.09489,0.1036,0.1086,0.07055,0.1865,0.06333,0.6249,1.89,3.972,71.55,"
        "0.004433,0.01421,0.03233,0.009854,0.01694,0.003495,21.63,37.08,139.7,1436,0.1195,0.1926,0.314,0.117,0.2677,"
        "0.08113,5,5"
    ],
    "ecoli": ["AAT_ECOLI   0.49  0.29  0.48  0.50  0.56  0.24  0.35   cp"],
    "hayes-roth": ["92,2,1,1,2,1"],
    "lymphography": ["3,4,2,1,1,1,1,1,2,1,2,2,2,4,8,1,1,2,2"],
    "magic": ["28.7967,16.0021,2.6449,0.3918,0.1982,27.7004,22.011,-8.2027,40.092,81.8828,g"],
    "pbc": ["   5    7     35  1.400  .400  .657   2.33     14     23      6 1"],
    "soybean-small": ["4,0,2,1,1,1,0,1,0,2,1,1,0,2,2,0,0,0,1,0,3,1,1,1,0,0,0,0,4,0,0,0,0,0,0,D1"],
    "statlog-german-credit": [
        "A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1"
    ],
    "student-performance": [
        "school;sex;age;address;famsize;Pstatus;Medu;Fedu;Mjob;Fjob;reason;guardian;traveltime;studytime;failures;"
        "schoolsup;famsup;paid;activities;nursery;higher;internet;romantic;famrel;freetime;goout;Dalc;Walc;health;"
        "absences;G1;G2;G3",
        '"GP";"F";18;"U";"GT3";"A";4;4;"at_home";"teacher";"course";"mother";2;2;0;"yes";"no";"no";"no";"yes";"yes";'
        '"no";"no";4;3;4;1;1;3;4;"0";"11";11',
    ],
}


@pytest.fixture
def of_study(study, monkeypatch):
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(study.data.parent))

    def load(name, **options):
        dataset = CLASS_OF[name](Config(**options))
        return dataset.load(dataset.find(DataAccess(offline=True)))

    return load


def test_the_22_sets_of_cf_tabular_are_there(study):
    ours = {spec.name.replace("-", "") for spec in component_specs("cfbench_tabular", "dataset")}
    names = {"magicgt": "magic", "statloggc": "statloggermancredit", "studentperf": "studentperformance"}
    names |= {"internetadv": "internetadvertisements", "defaultofccc": "defaultofcreditcardclients"}
    theirs = {path.stem.lower() for path in (study.data / "factuals").glob("*.npz")}
    assert len(theirs) == 22
    assert {names.get(name, name) for name in theirs} == ours - {"breastcancer", "csv"}


@pytest.mark.parametrize("name", NAMES)
def test_descriptions_are_complete(name):
    facts, files = description_of(name), files_of(name)
    names = [plan.name for plan in facts.schema.plans()]
    assert len(set(names)) == len(names)
    assert (
        facts.schema.class_column is None
        or facts.schema.class_column in [*names, "G3", "outcome"]
        or (facts.schema.header)
    )
    assert files.licence == "CC BY 4.0"
    assert files.page.startswith("https://archive.ics.uci.edu/dataset/")
    assert all(file.url.startswith("https://archive.ics.uci.edu/") for file in files.downloads)
    downloaded = {saved for file in files.downloads for saved in file.saved}
    assert set(files.forms[0].files) == downloaded
    assert all(file.sha256 is None or len(file.sha256) == 64 for file in files.downloads)
    spec = next(spec for spec in component_specs("cfbench_tabular", "dataset") if spec.name == name)
    assert status_files(spec) is files


@pytest.mark.parametrize("name", sorted(set(NAMES) - AWAY))
def test_types_and_counts_are_those_of_the_published_tables(name, study, of_study):
    pd = pytest.importorskip("pandas")
    table, stem = of_study(name), description_of(name).study.file.partition(".")[0]
    meta = pd.read_csv(study.data / "datasets_meta.csv").set_index("dataset").loc[stem]
    numeric = [column for column in table.columns if column.kind == "numeric"]
    two = [column for column in table.columns if len(column.levels) == 2]
    more = [column for column in table.columns if len(column.levels) > 2]
    assert (len(table), len(numeric)) == (meta["rows"], meta["n_num"])
    assert (len(two), len(more)) == (meta["n_binary"], meta["n_onehot_feats"])
    layout = json.loads((study.data / "onehot_layout.json").read_text())[stem]
    assert sorted(len(column.levels) for column in more) == sorted(map(len, layout["onehot_groups"].values()))
    share = (table.target == table.classes()[1]).mean()
    assert max(share, 1 - share) == pytest.approx(MAJORITY[name], abs=0.00501)


@pytest.mark.parametrize("name", ["internet-advertisements", "isolet", "sdd"])
def test_types_of_sets_that_are_away_fit_the_published_layout(name, study):
    facts = description_of(name)
    stem = facts.study.file.partition(".")[0]
    types = json.loads((study.data / "var_types.json").read_text())[stem]
    kinds = facts.schema.plans()[:-1]
    assert sum(plan.kind == "numeric" for plan in kinds) == len(types["numerical"])
    assert sum(plan.levels is not None for plan in kinds) == len(types["categorical"])
    splits = [
        np.load(study.data / "splits" / f"{stem}_{part}.npy") for part in ("train", "validation", "test")
    ]
    assert sum(map(len, splits)) == facts.rows


def test_every_factual_of_internet_advertisements_keeps_its_constraint(study):
    """The only rows of it that are here. Their ratio is cut after four decimals, not rounded."""
    scaler = json.loads((study.data / "scalers" / "InternetAdv.json").read_text())
    factuals = np.concatenate([study.factuals("InternetAdv", label)[:, 1555:] for label in (0, 1)])
    height, width, ratio = (factuals * scaler["scale"] + scaler["mean"]).T
    (rule,) = description_of("internet-advertisements").schema.constraints
    assert rule.holds({"height": height, "width": width, "aratio": np.round(ratio, 10)}).all()
    assert not rule.holds({"height": height, "width": width, "aratio": ratio + 0.0003}).any()


def test_constraints_of_the_real_rows_hold_and_a_changed_value_breaks_them(of_study):
    for name, changed in (("bcw", "area_mean"), ("pbc", "area")):
        table = of_study(name)
        assert table.constraints
        for rule in table.constraints:
            assert rule.holds(table.values).all()
        broken = {**table.values, changed: table.values[changed] * 1.5}
        assert not table.constraints[0].holds(broken).any()


@pytest.mark.parametrize("name", LINES)
def test_ucis_line_is_the_published_first_row(name, of_study, tmp_path):
    path = tmp_path / description_of(name).raw[0].removesuffix(".Z")
    path.write_text("\n".join(LINES[name]) + "\n")
    ours, study = read_raw(name, description_of(name), [path]), of_study(name)
    # The step follows from all values, of which there is one row here.
    without_steps = [
        tuple(dataclasses.replace(column, step=None) for column in table.columns) for table in (ours, study)
    ]
    assert without_steps[0] == without_steps[1]
    for column in ours.columns:
        if column.kind == "numeric":  # some of CF-tabular's numbers went through arithmetic
            assert ours.values[column.name][0] == pytest.approx(study.values[column.name][0], rel=1e-12)
        else:
            assert ours.values[column.name][0] == study.values[column.name][0], column.name
    assert ours.target[0] == study.target[0]


@pytest.mark.parametrize("name", sorted(set(NAMES) - AWAY - {"default-of-credit-card-clients"}))
def test_both_forms_give_the_same_table(name, of_study, tmp_path):
    """UCI's file, written back from CF-tabular's rows by the facts."""
    study = of_study(name)
    path = tmp_path / description_of(name).raw[0].removesuffix(".Z")
    path.write_text(as_uci_writes(study, description_of(name)))
    ours = CLASS_OF[name](Config()).load(Source({path.name: path}, ""))
    assert ours.columns == study.columns
    assert ours.constraints == study.constraints
    for column in ours.columns:
        assert ours.values[column.name].tolist() == study.values[column.name].tolist(), column.name
    assert ours.target.tolist() == study.target.tolist()


def as_uci_writes(table, facts):
    schema, lines = facts.schema, []
    plans = schema.plans()
    names = [plan.name for plan in plans]
    label = schema.class_column or names[-1]
    names += [label] if label not in names else []
    raw_classes = {name: raw for raw, name in schema.classes.items()}
    separator = " " if schema.separator == "whitespace" else schema.separator
    known = {plan.name: plan for plan in plans}
    if schema.header:
        lines.append(separator.join(names))
    cells = {}
    for name in names:
        if name == label and schema.threshold is not None:
            cells[name] = ["12" if value.startswith("at least") else "3" for value in table.target]
        elif name == label:
            cells[name] = [raw_classes.get(value, value) for value in table.target]
        elif known[name].kind == "drop":
            cells[name] = ["?"] * len(table)
        elif known[name].levels:
            back = {meaning: raw for raw, meaning in known[name].levels.items()}
            cells[name] = [back[value] for value in table.values[name]]
        else:
            cells[name] = [repr(float(value)) for value in table.values[name]]
    lines += [separator.join(row) for row in zip(*(cells[name] for name in names), strict=True)]
    return "\n".join(lines) + "\n"


def test_advertisements_without_a_size_are_left_out(tmp_path):
    """Blanks around the values, and a missing size as '   ?', are as in UCI's file."""
    rest = ",".join(["0"] * 1553)
    lines = [
        f" 125, 125,    1.0,1,{rest},1,ad.",
        f"   ?,   ?,      ?,0,{rest},0,nonad.",
        f"  33, 230, 6.9696,1,{rest},0,nonad.",
    ]
    path = tmp_path / "ad.data"
    path.write_text("\n".join(lines) + "\n")
    table = read_raw("internet-advertisements", description_of("internet-advertisements"), [path])
    assert table.target.tolist() == ["ad", "nonad"]
    assert table.values["height"].tolist() == [125, 33]
    assert table.values["phrase1554"].tolist() == ["1", "0"]
    assert len(table.columns) == 1558


def test_isolet_is_two_compressed_files_one_after_the_other(tmp_path):
    row = ", ".join(f"{number / 1000:.4f}" for number in range(617))
    paths = [tmp_path / name for name in description_of("isolet").raw]
    for path, letters in zip(paths, (("1.", "26."), ("2.",)), strict=True):
        path.write_bytes(compressed("".join(f"{row}, {letter}\n" for letter in letters).encode()))
    table = read_raw("isolet", description_of("isolet"), paths)
    assert table.target.tolist() == ["A", "Z", "B"]
    assert (len(table.columns), table.values["f617"][2]) == (617, 0.616)


def test_sensorless_drive(tmp_path):
    path = tmp_path / "Sensorless_drive_diagnosis.txt"
    path.write_text(
        " ".join(["-3.0146e-07"] * 48 + ["1"]) + "\n" + " ".join(["8.2603e-06"] * 48 + ["11"]) + "\n"
    )
    table = read_raw("sdd", description_of("sdd"), [path])
    assert table.target.tolist() == ["1", "11"]
    assert table.values["f48"].tolist() == [-3.0146e-07, 8.2603e-06]


def test_credit_card_clients_are_read_from_excel(tmp_path, of_study):
    pytest.importorskip("xlrd", reason="the extra xls")
    xlwt = pytest.importorskip("xlwt", reason="to write a file with")
    plans = description_of("default-of-credit-card-clients").schema.plans()
    head = [plan.name for plan in plans] + ["default payment next month"]
    first = [1, 20000, 2, 2, 1, 24, 2, 2, -1, -1, -2, -2, 3913, 3102, 689, 0, 0, 0, 0, 689, 0, 0, 0, 0, 1]
    book = xlwt.Workbook()
    sheet = book.add_sheet("Data")
    for number, row in enumerate(
        [["", *(f"X{x}" for x in range(1, 24)), "Y"], head, first, [2, *first[1:-1], 0]]
    ):
        for place, cell in enumerate(row):
            sheet.write(number, place, cell)
    path = tmp_path / "default of credit card clients.xls"
    book.save(str(path))
    table = read_raw("credit", description_of("default-of-credit-card-clients"), [path])
    assert table.target.tolist() == ["defaults", "pays"]
    study = of_study("default-of-credit-card-clients")
    assert table.columns == study.columns
    assert [table.values[c.name][0] for c in table.columns] == [
        study.values[c.name][0] for c in study.columns
    ]


def test_a_truncated_file_is_reported(tmp_path):
    path = tmp_path / "hayes-roth.data"
    path.write_text("92,2,1,1,2,1\n10,2,1,3,2,2\n")
    with pytest.raises(
        UserError, match="hayes-roth: has 2 rows, must have 132: the file is truncated or different"
    ):
        CLASS_OF["hayes-roth"](Config()).load(Source({path.name: path}, ""))


def test_a_file_of_another_study_is_reported(tmp_path):
    path = tmp_path / "Ecoli.csv.gz"
    path.write_bytes(gzip.compress(b"a,b,output\n1,2,0\n"))
    with pytest.raises(
        UserError, match="is not the file of CF-tabular for ecoli: its columns must be 0 to 6"
    ):
        CLASS_OF["ecoli"](Config()).load(Source({path.name: path}, ""))


def test_a_level_that_uci_does_not_have_is_reported_with_its_line(tmp_path):
    path = tmp_path / "hayes-roth.data"
    path.write_text("92,2,1,1,2,1\n10,2,1,9,2,2\n")
    with pytest.raises(UserError, match=r"hayes-roth.data:2: column 'educational-level': no level '9'"):
        read_raw("hayes-roth", description_of("hayes-roth"), [path])


def test_options_of_every_data_set(of_study):
    table = of_study(
        "statlog-german-credit", target="bad", immutable=("foreign_worker",), direction={"age": "up"}
    )
    columns = {column.name: column for column in table.columns}
    assert table.classes() == ("good", "bad")
    assert columns["foreign_worker"].immutable and columns["age"].direction == "up"
    with pytest.raises(UserError, match=r"no column 'foreign-workers'\. Did you mean 'foreign_worker'\?"):
        of_study("statlog-german-credit", immutable=("foreign-workers",))
    with pytest.raises(UserError, match="column 'purpose' has 10 levels without an order"):
        of_study("statlog-german-credit", direction={"purpose": "up"})
    with pytest.raises(ValueError, match="direction of 'age' must be up or down, got 'upwards'"):
        Config(direction={"age": "upwards"})
    with pytest.raises(
        ValueError, match="'age' is immutable and has the direction up: remove one of the two"
    ):
        Config(immutable=("age",), direction={"age": "up"})


# Downloads, from a server on this machine


@pytest.fixture
def served(tmp_path, monkeypatch):
    """``served(name)``: the set's files, to be downloaded from ``tmp_path/site``."""
    site = tmp_path / "site"
    site.mkdir()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CFBENCH_DATA_DIR", "")
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))

    def redirect(name):
        real = files_of(name)
        local = dataclasses.replace(
            real,
            downloads=tuple(
                dataclasses.replace(
                    file, url=f"http://127.0.0.1:{server.server_port}/{file.name}", bytes=None, sha256=None
                )
                for file in real.downloads
            ),
        )
        monkeypatch.setattr(
            published, "files_of", lambda queries: local if queries == name else files_of(queries)
        )
        return site, local

    yield redirect
    server.shutdown()
    thread.join(timeout=10)
    server.server_close()


def test_a_set_is_downloaded_once_with_its_licence(served, tmp_path):
    site, _ = served("hayes-roth")
    (site / "hayes-roth.data").write_text("".join(f"{n},{n % 3 + 1},1,1,2,{n % 2 + 1}\n" for n in range(132)))
    reported = []
    dataset = CLASS_OF["hayes-roth"](Config())
    source = dataset.find(DataAccess(notify=reported.append))
    assert len(dataset.load(source)) == 132
    assert reported[0] == "hayes-roth: CC BY 4.0. Terms: https://archive.ics.uci.edu/dataset/44/hayes+roth"
    assert "its content was not checked (neither sha256 nor size is known)" in reported[1]
    (site / "hayes-roth.data").unlink()
    assert dataset.find(DataAccess(notify=reported.append)).sha256 == source.sha256
    assert len(reported) == 2


def test_a_member_of_an_archive(served):
    site, local = served("student-performance")
    with zipfile.ZipFile(site / "student.zip", "w") as archive:
        archive.writestr("student-por.csv", "\n".join(LINES["student-performance"]) + "\n")
        archive.writestr("student-mat.csv", "another file")
    folder = fetch(local, DataAccess())
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".csv") == ["student-por.csv"]
    assert (
        read_raw("s", description_of("student-performance"), [folder / "student-por.csv"]).target[0]
        == "below 12"
    )


def test_offline_it_is_said_how_to_get_it(served):
    served("adult")
    with pytest.raises(UserError) as error:
        CLASS_OF["adult"](Config()).find(DataAccess(offline=True))
    assert "Get it with 'cfbench data fetch adult' (CC BY 4.0)" in error.value.lines[1]
    assert "or put adult.data or Adult.csv.gz into ./data/adult/." in error.value.lines[1]


def test_data_list_and_verify_know_them(study, monkeypatch):
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(study.data.parent))
    specs = {spec.name: spec for spec in component_specs("cfbench_tabular", "dataset")}
    found = status(specs["adult"])
    assert (found.state, found.licence) == ("found", "CC BY 4.0")
    assert status(specs["sdd"]).state in ("downloadable", "found")
    assert status(specs["chess"]).state == "embedded"
    assert [check.right for check in verify(specs["adult"])] == [
        None
    ]  # of CF-tabular's file none is published
