"""How a table is written (CSV options, sheets, folders of Parquet): the same cells, and one record never changes another."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import sfumato.tables as tables
from sfumato.cli import app
from sfumato.errors import InputError, SchemaError
from sfumato.tables import Categorical, CsvOptions, Numeric, PrivacyUnit, Roster, Schema
from sfumato.tables.csv_lines import Lines, fields_of
from support.hostile import changed, look
from support.sheets import write_ods, write_xlsx

SCHEMA = Schema(
    {"age": Numeric(0, 99, bins=9), "dose": Numeric(0, 10, bins=20), "ward": Categorical(["Süd", "Nord"], other=True)}
)
NAMES = list(SCHEMA.names)
GERMAN = {"delimiter": ";", "encoding": "cp1252", "decimal": ","}
LINES = ["31;0,5;Süd", '77;"3,75";"Nord"', '5;9;"a ; b"', ";1.234;Süd", "40;1,2,3;Nord"]
few = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))


def text(tmp_path, lines, encoding="cp1252"):
    raw = [line if isinstance(line, bytes) else line.encode(encoding) for line in ["age;dose;ward", *lines]]
    (tmp_path / "t.csv").write_bytes(b"\n".join(raw) + b"\n")
    return tmp_path / "t.csv"


def counted(path, csv=GERMAN, columns=NAMES):
    return look(tables.open(path, schema=SCHEMA, csv=csv).counts(columns))


def test_delimiter_encoding_and_decimal_comma(tmp_path):
    data = tables.open(text(tmp_path, LINES), schema=SCHEMA, csv=GERMAN)
    assert look(data.counts("ward")).tolist() == [2, 2, 1]
    # 0,5 and 3,75 and 9 are numbers; a point is no decimal sign beside a comma, and 1,2,3 is no number.
    dose = look(data.counts("dose"))
    assert (dose.sum(), dose[1], dose[7], dose[18]) == (3, 1, 1, 1)
    assert look(data.count("dose < 1")) == 1


def test_a_text_column_keeps_its_commas(tmp_path):
    (tmp_path / "t.csv").write_text("size\n1,5\n2,5\n")
    schema = Schema({"size": Categorical(["1,5", "2,5"])})
    assert look(
        tables.open(tmp_path / "t.csv", schema=schema, csv={"delimiter": ";", "decimal": ","}).counts("size")
    ).tolist() == [1, 1]


SIGNS = [{"delimiter": d, "quote": q} for d, q in ((";", '"'), ("|", "'"), ("\t", ""), ("^", "]"), ("]", "^"), (".", "-"))]
ENCODINGS = ["utf-8", "latin-1", "cp1252", "cp1251", "shift_jis", "gb18030", "euc_kr", "big5"]
a_line = st.lists(st.sampled_from(["q", "d", "1", "ü", "\r", "\x81", "\xff", "\x85", "é", "qq", " "]), max_size=8)


@given(
    lines=st.lists(a_line, max_size=7),
    signs=st.sampled_from(SIGNS),
    encoding=st.sampled_from(ENCODINGS),
    block=st.integers(1, 40),
)
@settings(max_examples=110, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_file_is_the_sum_of_its_lines_whatever_its_options(tmp_path, monkeypatch, lines, signs, encoding, block):
    """Read at once, in blocks of any size, or each line in a file of its own: the same records."""
    options = CsvOptions(**signs, encoding=encoding)
    put = {"q": options.quote, "d": options.delimiter}
    raw = ["".join(put.get(c, c) for c in "".join(line)).encode("latin-1", "replace") for line in lines]
    header = f"a{options.delimiter}b".encode()

    def rows(parts):
        (tmp_path / "t.csv").write_bytes(b"\n".join([header, *parts]))
        found = Lines.at(str(tmp_path / "t.csv"), options)
        return [tuple(row.values()) for batch in found.batches(("a", "b")) for row in batch.to_pylist()]

    each = [row for line in raw for row in rows([line])]
    monkeypatch.setattr("sfumato.tables.csv_lines.BLOCK", block)
    assert sorted(rows(raw), key=str) == sorted(each, key=str)
    assert len(each) <= len(raw)
    for line in raw if encoding == "utf-8" else ():
        fields = fields_of(line.removesuffix(b"\r"), str(options.delimiter).encode(), options.quote.encode())
        assert len(rows([line])) == (fields is not None and len(fields) == 2)


@given(
    good=st.lists(st.sampled_from(LINES), min_size=1, max_size=5),
    bad=st.sampled_from(
        [b'"', b'31;"0,5;S\xfcd', b"31;0,5;\x81", b"\x81\x81;\x8d;\x9d", b"31;0,5", b"31;0,5;a;b", b"\xff\xfe", b";;"]
    ),
    place=st.integers(0, 5),
)
@few
def test_a_broken_line_changes_no_other(tmp_path, good, bad, place):
    before = counted(text(tmp_path, good))
    assert changed(counted(text(tmp_path, [*good[:place], bad, *good[place:]])), before) <= 1


def test_a_byte_outside_the_encoding_is_a_missing_value(tmp_path):
    data = tables.open(text(tmp_path, [b"31;0,5;\x81", "32;0,5;Süd"]), schema=SCHEMA, csv=GERMAN)
    assert look(data.counts("ward")).tolist() == [1, 0, 1]
    assert look(data.count()) == 2


@pytest.mark.parametrize(
    ("csv", "word"),
    [
        ({"delimiter": ";;"}, "delimiter is one sign"),
        ({"delimiter": "a"}, "not a letter"),
        ({"delimiter": "§"}, "one sign"),
        ({"delimiter": "\n"}, "one sign"),
        ({"delimiter": 3}, "one sign"),
        ({"quote": "ab"}, "quote is one sign"),
        ({"quote": ","}, "another sign"),
        ({"quote": ";", "delimiter": ";"}, "another sign"),
        ({"decimal": "'"}, "'.' or ','"),
        ({"encoding": "utf-16"}, "iconv -f utf-16"),
        ({"encoding": "utf-7"}, "line by line"),
        ({"encoding": "iso2022_jp"}, "line by line"),
        ({"encoding": "cp037"}, "line by line"),
        ({"encoding": "base64"}, "line by line"),
        ({"encoding": "klingon"}, "none that is known"),
        ({"encoding": 8}, "none that is known"),
        ({"delimeter": ";"}, "did you mean 'delimiter'"),
        (";", "holds delimiter"),
    ],
)
def test_options_that_cannot_be_kept_are_refused(tmp_path, csv, word):
    with pytest.raises(InputError, match=word):
        tables.open(tmp_path / "t.csv", schema=SCHEMA, csv=csv)


def test_every_encoding_that_is_taken_leaves_line_feeds_alone():
    import encodings
    import pkgutil

    taken = 0
    for module in pkgutil.iter_modules(encodings.__path__):
        try:
            options = CsvOptions(encoding=module.name)
        except InputError:
            continue
        taken += 1
        for byte in range(256):  # alone, before and after a line feed: lines are what they are by themselves
            one = bytes([byte])
            if one != b"\n":
                apart = b"\n".join(options.decoded(part) for part in (one, b"a" + one, b"b"))
                assert options.decoded(one + b"\na" + one + b"\nb") == apart, (module.name, byte)
    assert taken > 50


def test_options_are_for_text_files(tmp_path):
    for source in ("t.parquet", "t.xlsx", "duckdb:///x.db"):
        with pytest.raises(InputError, match="leave them out"):
            tables.open(source, schema=SCHEMA, csv={"delimiter": ";"}, table=None)


def test_utf16_is_told_apart_by_its_first_bytes(tmp_path):
    (tmp_path / "t.csv").write_text("age;dose;ward\n31;0,5;Süd\n", encoding="utf-16")
    with pytest.raises(InputError, match="UTF-16"):
        tables.open(tmp_path / "t.csv", schema=SCHEMA, csv={"delimiter": ";"}).check()


def test_a_header_with_another_delimiter_says_which_was_tried(tmp_path):
    with pytest.raises(SchemaError, match="must name the columns, parted by ','"):
        tables.open(text(tmp_path, LINES), schema=SCHEMA).check()


def test_import_takes_the_same_options(tmp_path):
    path = text(tmp_path, ["p1;0,5;Süd", "p2;1,5;Nord"])
    schema = Schema({"dose": Numeric(0, 10, bins=20), "ward": SCHEMA["ward"]}, PrivacyUnit("age", 1))
    schema.save(tmp_path / "schema.toml")
    words = ["import", str(path), str(tmp_path / "o.parquet"), "--schema", str(tmp_path / "schema.toml")]
    done = CliRunner().invoke(app, [*words, "--delimiter", ";", "--encoding", "cp1252", "--decimal", ",", "--json"])
    assert done.exit_code == 0, done.output
    assert pq.read_table(tmp_path / "o.parquet").to_pylist() == [
        {"dose": 0.5, "ward": "Süd", "age": "p1"},
        {"dose": 1.5, "ward": "Nord", "age": "p2"},
    ]


def test_a_roster_may_be_written_with_options(tmp_path):
    (tmp_path / "roster.csv").write_bytes("wer;ε\nann;0,5\nben;1,5\n".encode())
    roster = Roster.table(tmp_path / "roster.csv", person="wer", epsilon="ε", csv={"delimiter": ";", "decimal": ","})
    assert (roster.head_counts().levels / 1e9).tolist() == [0.5, 1.5]
    with pytest.raises(InputError, match="leave them out"):
        Roster.table("roster.parquet", person="wer", epsilon="ε", csv={"delimiter": ";"})


# ------------------------------------------------------------------------------------------------------------ sheets

DAY = datetime.datetime(2024, 5, 17, 8, 30)
ROWS = [
    ["age", "ward", "dose", None, "when"],
    [31, "Süd", 0.5, "a note", DAY],
    [None, None, None, None, None],
    ["77", "Nord", "3.75", None, DAY],
    [True, "x", DAY, None, "yesterday"],
    [None, "Nord", "", None, None],
]


@pytest.mark.parametrize(("write", "name"), [(write_xlsx, "t.xlsx"), (write_ods, "t.ods")])
def test_a_sheet_has_the_cells_of_its_values(tmp_path, write, name):
    path = write(tmp_path / name, {"Patients": ROWS, "Other": [["age", "dose", "ward"], [1, 1, "Nord"]]})
    data = tables.open(path, schema=SCHEMA)
    data.check()
    assert look(data.count()) == 4  # a row without any cell is no record
    assert look(data.counts("ward")).tolist() == [1, 2, 1]
    assert look(data.counts("dose")).sum() == 2  # a date is no number
    assert look(data.counts("age")).sum() == 3
    assert look(tables.open(path, schema=SCHEMA, table="Other").count()) == 1
    with pytest.raises(InputError, match="did you mean 'Patients'"):
        tables.open(path, schema=SCHEMA, table="Patient").check()


@given(
    more=st.lists(st.sampled_from([None, 3, 1e308, "31", "Süd", True, DAY, "\r\n"]), min_size=6, max_size=6),
    place=st.integers(1, 5),
)
@few
def test_one_row_more_changes_no_other(tmp_path, more, place):
    before = look(tables.open(write_xlsx(tmp_path / "t.xlsx", {"A": ROWS}), schema=SCHEMA).counts(NAMES))
    rows = [*ROWS[:place], more, *ROWS[place:]]
    after = look(tables.open(write_xlsx(tmp_path / "t.xlsx", {"A": rows}), schema=SCHEMA).counts(NAMES))
    assert changed(after, before) <= 1


def test_persons_of_a_sheet_are_named_alike_as_numbers_and_text(tmp_path):
    path = write_xlsx(tmp_path / "t.xlsx", {"A": [["who", "age"], [7, 31], ["7", 32], ["ann", 33], [None, 34]]})
    schema = Schema({"age": Numeric(0, 99, bins=9)}, PrivacyUnit("who", 1))
    assert look(tables.open(path, schema=schema).count()) == 2


@pytest.mark.parametrize(
    ("rows", "word"), [([[]], "no header"), ([["a", "a"]], "two columns 'a'"), ([[None], ["age"], [3]], "no header")]
)
def test_a_sheet_without_a_header_is_refused(tmp_path, rows, word):
    with pytest.raises(InputError, match=word):
        tables.open(write_xlsx(tmp_path / "t.xlsx", {"A": rows}), schema=SCHEMA).check()


def test_what_is_no_sheet_is_refused(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"not a zip")
    with pytest.raises(InputError, match="complete spreadsheet"):
        tables.open(tmp_path / "t.xlsx", schema=SCHEMA).check()
    with pytest.raises(InputError, match="no file"):
        tables.open(tmp_path / "none.ods", schema=SCHEMA).check()
    with pytest.raises(InputError, match="has one name"):
        tables.open(tmp_path / "t.xlsx", schema=SCHEMA, table=("a", "b"))


# ----------------------------------------------------------------------------------------------- folders of Parquet

PARTED = Schema(
    {
        "age": Numeric(0, 99, bins=9),
        "year": Numeric(2020, 2029, bins=10, integer=True),
        "ward": Categorical(["A", "B"]),
        "kept": Categorical([True, False]),
    }
)


def parted(folder, parts, age=31, **more):
    place = folder.joinpath(*parts)
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"age": [age], **more}), place / "part.parquet")


def test_partitions_are_columns_with_the_types_of_the_schema(tmp_path):
    folder = tmp_path / "visits"
    parted(folder, ["year=2023", "ward=A", "kept=true"])
    parted(folder, ["year=2024", "ward=B", "kept=0"])
    data = tables.open(f"{folder}/", schema=PARTED)
    data.check()
    assert look(data.counts(["year"])).tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert look(data.counts(["ward", "kept"])).tolist() == [[1, 0], [0, 1]]
    # DuckDB would make text of all years because of one that is none.
    parted(folder, ["year=unknown", "ward=A", "kept=true"])
    parted(folder, ["year=__HIVE_DEFAULT_PARTITION__", "ward=A", "kept=__HIVE_DEFAULT_PARTITION__"])
    data = tables.open(folder, schema=PARTED)
    assert look(data.counts(["year"])).tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert look(data.counts(["ward"])).tolist() == [3, 1]
    assert look(data.count()) == 4


def test_unfinished_files_are_left_out_and_columns_are_found_by_name(tmp_path):
    folder = tmp_path / "visits.parquet"  # as Spark names a folder
    parted(folder, [], ward=["A"])
    for hidden in (["_temporary", "0"], [".staging"]):
        parted(folder, hidden, ward=["A"])
    schema = Schema({"age": Numeric(0, 99, bins=9), "ward": Categorical(["A", "B"], other=True)})
    assert look(tables.open(folder, schema=schema).count()) == 1
    pq.write_table(pa.table({"ward": ["B"], "age": [77]}), folder / "a.parquet")
    pq.write_table(pa.table({"age": [78]}), folder / "b.parquet")
    assert look(tables.open(folder, schema=schema).counts("ward")).tolist() == [1, 1, 1]


def test_text_that_is_none_in_a_folder_is_missing(tmp_path):
    folder = tmp_path / "visits"
    bad = pa.array([b"\xff", b"A"], pa.binary()).view(pa.string())
    (folder / "year=2024").mkdir(parents=True)
    pq.write_table(pa.table({"age": [1, 2], "ward": bad}), folder / "year=2024" / "p.parquet")
    schema = PARTED.select(["age", "year", "ward"])
    assert look(tables.open(folder, schema=schema).counts(["year", "ward"]))[4].tolist() == [1, 0]


def test_folders_that_hold_no_table_are_refused(tmp_path):
    with pytest.raises(InputError, match="correct the path"):
        tables.open(tmp_path / "none", schema=PARTED).check()
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"holds no \.parquet file"):
        tables.open(tmp_path / "empty", schema=PARTED).check()
    parted(tmp_path / "mixed", ["year=2023"])
    parted(tmp_path / "mixed", ["ward=A"])
    with pytest.raises(InputError, match="different partitions"):
        tables.open(tmp_path / "mixed", schema=PARTED).check()


DATED = Schema.from_toml(
    """
[columns.day]
type = "date"
first = "2024-01-01"
last = "2024-12-31"
by = "quarter"

[columns.price]
type = "decimal"
low = 0
high = 10
bins = 2
places = 2
"""
)


@pytest.mark.parametrize("write", [write_xlsx, write_ods])
def test_dates_and_decimals_of_sheets(tmp_path, write):
    rows = [["day", "price"], [DAY, 1.5], ["2024-07-01", "7.25"], [DAY, 9], ["no day", DAY], [45_000, None]]
    data = tables.open(write(tmp_path / ("t.xlsx" if write is write_xlsx else "t.ods"), {"A": rows}), schema=DATED)
    assert look(data.counts("day")).tolist() == [0, 2, 1, 0]
    assert look(data.counts("price")).tolist() == [1, 2]


def test_dates_of_partitions_and_decimals_with_a_comma(tmp_path):
    for day in ("2024-05-17", "2024-07-01", "someday"):
        (tmp_path / "v" / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"price": [1.5]}), tmp_path / "v" / f"day={day}" / "p.parquet")
    assert look(tables.open(tmp_path / "v", schema=DATED).counts("day")).tolist() == [0, 1, 1, 0]
    (tmp_path / "t.csv").write_text("day;price\n2024-05-17;1,5\n2024-07-01;7,25\nsomeday;1.5\n")
    data = tables.open(tmp_path / "t.csv", schema=DATED, csv={"delimiter": ";", "decimal": ","})
    assert look(data.counts("price")).tolist() == [1, 1]
    assert look(data.counts("day")).tolist() == [0, 1, 1, 0]
