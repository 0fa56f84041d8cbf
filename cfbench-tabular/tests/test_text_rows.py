"""Quotes and bytes of messy files: cells of several lines are read, stray quotes and NUL bytes refused."""

import csv
import io

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cfbench_core.cli import main
from cfbench_core.errors import UserError
from cfbench_tabular.config_from_csv import csv_document
from cfbench_tabular.reading import read_sheet
from cfbench_tabular.schema import Schema
from cfbench_tabular.text_rows import separated_rows

SEPARATORS = st.sampled_from([",", ";", "\t"])


def rows_of(count):
    return "".join(f"{row % 9},pipe {row % 3},{'pq'[row % 2]}\n" for row in range(count))


@settings(max_examples=100, deadline=None)
@given(
    separator=SEPARATORS,
    rows=st.lists(
        st.tuples(st.text('ab"\n,; ', max_size=8), st.text('a"\n;', max_size=4)), min_size=1, max_size=8
    ),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_what_a_program_has_quoted_is_read_as_it_was(separator, rows, ending):
    rows = [(f"x{first}", f"y{second}") for first, second in rows]
    file = io.StringIO()
    csv.writer(file, delimiter=separator, lineterminator=ending).writerows(rows)
    found = list(separated_rows(file.getvalue(), separator, "mine.csv"))
    assert [tuple(cells) for cells, _ in found] == rows
    breaks = [sum(cell.count("\n") for cell in row) for row in rows]
    assert [line for _, line in found] == [at + 1 + sum(breaks[: at + 1]) for at in range(len(rows))]


@settings(max_examples=60, deadline=None)
@given(stray=st.sets(st.integers(0, 28), min_size=1), separator=SEPARATORS, quoted=st.booleans())
def test_a_stray_quote_is_refused_with_its_line(tmp_path_factory, stray, separator, quoted):
    """At the beginning of a cell it would swallow all lines up to the next quote; the last line has none below it."""
    assume(not quoted or min(stray) > 0)
    names = ['"a"' if quoted else "a", "b", "y"]
    cells = [[f"{row}", ('"' if row in stray else "") + "pipe", "pq"[row % 2]] for row in range(30)]
    path = tmp_path_factory.mktemp("quotes") / "mine.csv"
    path.write_text("".join(separator.join(row) + "\n" for row in [names, *cells]))
    first, *rest = sorted(stray)
    last = rest[0] if rest else 29
    with pytest.raises(UserError) as error:
        read_sheet(path, Schema(separator=separator))
    assert f"mine.csv:{first + 2}: a quoted cell continues on line {last + 2}, and its quote is not" in str(
        error.value
    )


def test_a_stray_quote_stops_the_draft(tmp_path):
    path = tmp_path / "pipes.csv"
    path.write_text("a,b,y\n" + rows_of(20) + '1,"broken,p\n1,5" pipe,q\n' + rows_of(20))
    with pytest.raises(UserError, match=r"pipes.csv:22: a quoted cell continues on line 23.*broken,p"):
        csv_document(path, None, [])


def test_a_quoted_cell_whose_lines_look_like_rows_is_remarked(tmp_path):
    """A quote in front of broken and one behind 5 for inches enclose the end of a row and the beginning of the next."""
    path = tmp_path / "pipes.csv"
    path.write_text("title\n\na,b,y\n" + rows_of(40) + '1,"broken,p\n1,size 5",q\n' + rows_of(40))
    document = csv_document(path, None, [])
    assert f"# {path}:44: a quoted cell continues on line 45 ('broken,p\\n1,size 5'), but each" in document
    assert yaml.safe_load(document)["data"][0]["columns"]["b"][0] == "broken,p 1,size 5"


def test_a_name_of_two_lines_next_to_empty_columns_is_no_reason_for_a_remark(tmp_path):
    """Each line of the header has three commas, as the table has without its two empty columns."""
    path = tmp_path / "homes.csv"
    path.write_text(
        '"net, in EUR",b,"line\nbreak",y,,\n'
        + "".join(f"{row},{row % 3},{row % 5},{'pq'[row % 2]},,\n" for row in range(40))
    )
    assert "quoted cell" not in csv_document(path, None, [])


def test_addresses_of_several_lines_are_no_reason_for_a_remark(tmp_path):
    path = tmp_path / "homes.csv"
    home = '"Main street 5, left\nUlm"  '
    path.write_text("a,b,y\n" + "".join(f"{row},{home},{'pq'[row % 2]}\n" for row in range(40)))
    document = csv_document(path, None, [])
    assert "quoted cell" not in document
    assert "always 'Main street 5, left Ulm'" in document


@pytest.mark.parametrize(("text", "column"), [("2\0,u,p", "a"), ("2,u,\0p", "y")])
def test_a_nul_byte_is_refused_with_its_line_and_column(tmp_path, monkeypatch, capsys, text, column):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipes.csv").write_text("a,b,y\n" + rows_of(20) + text + "\n" + rows_of(20))
    assert main(["init", "--csv", "pipes.csv"]) == 2
    assert f"pipes.csv:22: column '{column}': holds a NUL byte" in capsys.readouterr().err
    with pytest.raises(UserError, match=rf"pipes.csv:22: column '{column}': holds a NUL byte"):
        read_sheet(tmp_path / "pipes.csv", Schema())


@settings(max_examples=40, deadline=None)
@given(utf8=st.sets(st.integers(0, 39)), latin=st.sets(st.integers(0, 39)))
def test_lines_of_two_encodings_are_remarked(tmp_path_factory, utf8, latin):
    """As a file to which programs of two encodings have written."""
    path = tmp_path_factory.mktemp("encodings") / "towns.csv"
    coded = {**dict.fromkeys(utf8, "utf-8"), **dict.fromkeys(latin, "latin-1")}
    lines = [
        f"{row},{'Köln' if row in coded else 'Ulm' if row % 2 else 'Bonn'},{'pq'[row % 2]}"
        for row in range(40)
    ]
    path.write_bytes(
        b"".join(
            f"{line}\n".encode(coded.get(row, "ascii")) for row, line in enumerate(["a,b,y", *lines], -1)
        )
    )
    document = csv_document(path, None, [])
    own = sorted(row for row, encoding in coded.items() if encoding == "utf-8")
    assert ("line " in document) == bool(own and latin)
    if own and latin:
        remark = (
            f"line {min(latin) + 2} is not UTF-8, but line {own[0] + 2} is ('Köln', read as 'KÃ¶ln'): write"
        )
        assert remark in document
