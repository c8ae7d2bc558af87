"""Text files: a line is a record, and what is malformed spoils its own line only."""

from __future__ import annotations

import json
import threading
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import sfumato.tables as tables
from sfumato.cli import app
from sfumato.errors import InputError
from sfumato.tables import Categorical, Numeric, PrivacyUnit, Schema
from sfumato.tables.csv_lines import Lines, fields_of
from support.hostile import NAMES, SCHEMA, changed, look

HEADER = ",".join(NAMES).encode() + b"\n"
GOOD = [b"31,.5,F,3,true", b'77,3.99,"M",1,FALSE', b'" 5 ",4,"F",7,1', b"99,,x,2,false", b"1e3,1.25,M,3,True\r"]
HOSTILE = [
    b'"',
    b'"31,.5,F,3,true',
    b'31,.5,"F,3,true',
    b'31,.5,F,3,"true',
    b'"31"x,.5,F,3,true',
    b'31,"a ""b"" c,F,3,true',
    b"31,.5,F,3",
    b"31,.5,F,3,true,more",
    b",,,,",
    b"\xff,\xfe,\xff,\xff,\xff",
    b"\x00,\x00,\x00,\x00,\x00",
    b"31\r,.5,F,3,true",
    b"\r\r",
    b"\\",
    b"'31,.5,F,3,true",
    b"9" * 6000 + b",.5,F,3,true",
    b"1e400,5e-324,\xc3,-0,maybe",
    b"x" * 70_000,
    b"",
]
a_line = st.one_of(
    st.sampled_from(HOSTILE),
    st.binary(max_size=12).map(lambda raw: raw.replace(b"\n", b"")),
    st.lists(st.sampled_from([b'"', b",", b"\r", b"3", b"F", b'""', b" ", b"\xff"]), max_size=12).map(b"".join),
)
few = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
many = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def rows(path, block=None):
    lines = Lines.at(str(path))
    found = [row for batch in lines.batches(lines.names) for row in map(tuple, map(dict.values, batch.to_pylist()))]
    return sorted(found, key=str), lines.seen


@given(lines=st.lists(st.one_of(st.sampled_from(GOOD), a_line), max_size=8), block=st.integers(1, 60))
@many
def test_a_file_is_the_sum_of_its_lines(tmp_path, monkeypatch, lines, block):
    monkeypatch.setattr("sfumato.tables.csv_lines.BLOCK", block)
    path = tmp_path / "t.csv"
    path.write_bytes(HEADER + b"\n".join(lines))
    expected, malformed = [], 0
    for line in lines:
        fields = fields_of(line.removesuffix(b"\r"), b",")
        if fields is not None and len(fields) == len(NAMES):
            expected.append(tuple(_text(f) for f in fields))
        elif line.strip(b"\r") or b"\r" in line[:-1]:
            malformed += 1
    found, seen = rows(path)
    assert found == sorted(expected, key=str)
    assert (seen["records"], seen["malformed"]) == (len(expected), malformed)


def _text(field):
    try:
        return None if field is None else field.decode()
    except UnicodeDecodeError:
        return None


@given(good=st.lists(st.sampled_from(GOOD), min_size=1, max_size=6), line=a_line, place=st.integers(0, 6))
@few
def test_one_line_more_changes_no_other(tmp_path, good, line, place):
    def counted(lines):
        (tmp_path / "t.csv").write_bytes(HEADER + b"\n".join(lines) + b"\n")
        data = tables.open(tmp_path / "t.csv", schema=SCHEMA)
        data.check()
        return look(data.counts(NAMES))

    assert changed(counted([*good[:place], line, *good[place:]]), counted(good)) <= 1


def test_a_quote_that_never_closes_does_not_swallow_what_follows(tmp_path):
    schema = Schema({"age": Numeric(0, 99, bins=2)})
    lines = ["age,note", *["31,well"] * 2000]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert look(tables.open(tmp_path / "t.csv", schema=schema).count()) == 2000
    lines.insert(2, '31,"never closed')
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert look(tables.open(tmp_path / "t.csv", schema=schema).count()) == 2000


def test_a_quoted_line_break_where_a_buffer_ends(tmp_path):
    """DuckDB reads 8,000,000 bytes at a time, and its reader fails on a quoted line break just there."""
    schema = Schema({"age": Numeric(0, 99, bins=2)})
    line = b"31," + b"x" * 95 + b"\n"
    text = b"age,note\n" + line * 80_808
    text = text[: 8_000_000 - 10]
    text = text[: text.rfind(b"\n") + 1]
    text += b'31,"' + b"y" * (8_000_000 - len(text) - 4) + b'\nz"\n' + line * 1000
    (tmp_path / "t.csv").write_bytes(text)
    data = tables.open(tmp_path / "t.csv", schema=schema)
    assert look(data.count()) == text.count(line)


def test_threads_that_ask_at_once_read_the_lines_once(tmp_path):
    (tmp_path / "t.csv").write_text("age\n" + "31\n" * 50_000)
    for _ in range(3):
        engine = tables.open(tmp_path / "t.csv", schema=Schema({"age": Numeric(0, 99, bins=2)})).engine
        start = threading.Barrier(4)

        def ask(engine=engine, start=start):
            start.wait()
            with suppress(InputError):  # a connection of DuckDB serves one thread at a time
                engine.fetch(engine.table.count().as_table())

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert engine.fetch(engine.table.count().as_table())[0][0].as_py() == 50_000


def test_a_line_that_is_too_long_is_no_record(tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.tables.csv_lines.BLOCK", 64)
    monkeypatch.setattr("sfumato.tables.csv_lines.MAX_LINE", 200)
    for length in (10, 63, 64, 65, 150, 198, 199, 300, 1000):
        (tmp_path / "t.csv").write_bytes(b"a,b\n1,2\n3," + b"x" * length + b"\n5,6\n")
        found, seen = rows(tmp_path / "t.csv")
        assert {a for a, _ in found} == ({"1", "3", "5"} if length + 2 <= 200 else {"1", "5"}), length
        assert seen["malformed"] == (length + 2 > 200)
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,2\n3," + b"x" * 900)
    assert rows(tmp_path / "t.csv")[1] == {"records": 1, "malformed": 1}


def test_files_of_a_glob_are_read_by_name(tmp_path):
    (tmp_path / "a-1.csv").write_text("age,sex\n31,F\n")
    (tmp_path / "a-2.csv").write_text("sex,age\nM,77\n")
    schema = Schema({"age": Numeric(0, 99, bins=2), "sex": Categorical(["F", "M"])})
    data = tables.open(str(tmp_path / "a-*.csv"), schema=schema)
    assert look(data.counts(["age", "sex"])).tolist() == [[1, 0], [0, 1]]
    (tmp_path / "a-3.csv").write_text("sex,years\nM,77\n")
    with pytest.raises(InputError, match="give the files one header"):
        tables.open(str(tmp_path / "a-*.csv"), schema=schema).check()


@pytest.mark.parametrize(("text", "word"), [("", "no header"), ("\n1,2\n", "no header"), ("a,a\n1,2\n", "the same")])
def test_a_header_that_is_none(tmp_path, text, word):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=word):
        tables.open(tmp_path / "t.csv", schema=Schema({"a": Numeric(0, 9, bins=2)})).check()


# ----------------------------------------------------------------------------------------------------- import


def a_file(folder):
    text = HEADER + b"\n".join([*GOOD, *HOSTILE]) + b"\n"
    (folder / "clinic.csv").write_bytes(
        text.replace(b"\n", b",7,0.5,open\n").replace(b"smoker,7,0.5,open", b"smoker,who,e,tier")
    )
    schema = Schema(SCHEMA.columns, PrivacyUnit("who", 100))
    schema.save(folder / "clinic.toml")
    return folder / "clinic.csv", schema


def test_an_imported_table_has_the_cells_of_the_text(tmp_path):
    text, schema = a_file(tmp_path)
    out = tmp_path / "clinic.parquet"
    found = tables.import_table(text, out, schema=schema, numbers=["e"], texts=["tier"])
    direct, imported = (tables.open(source, schema=schema, budgets="e") for source in (text, out))
    assert look(direct.counts(NAMES)).tolist() == look(imported.counts(NAMES)).tolist()
    assert look(direct.weighted_sums(10**9)) == look(imported.weighted_sums(10**9)) > 0
    table = pq.read_table(out)
    kinds = {field.name: field.type for field in table.schema}
    assert kinds["age"] == pa.float64()
    assert (kinds["smoker"], kinds["who"], kinds["tier"]) == (pa.bool_(), pa.string(), pa.string())
    assert found.records == table.num_rows == look(direct.count())
    assert found.records + found.malformed == len(GOOD) + len(HOSTILE)
    assert found.missing["dose"] >= 1
    assert found.outside["sex"] >= 1
    assert out.stat().st_mode & 0o077 == 0


def test_persons_may_be_kept_as_whole_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("age,who\n31,7\n32,07\n33,7.5\n34,ann\n35,\n36,99999999999999999999\n")
    schema = Schema({"age": Numeric(0, 99, bins=2)}, PrivacyUnit("who", 1))
    tables.import_table(tmp_path / "t.csv", tmp_path / "t.parquet", schema=schema, wholes=["who"])
    assert pq.read_table(tmp_path / "t.parquet")["who"].to_pylist() == [7, 7, None, None, None, None]


def test_import_refuses(tmp_path):
    text, schema = a_file(tmp_path)
    with pytest.raises(InputError, match="no file"):
        tables.import_table(tmp_path / "none.csv", tmp_path / "o.parquet", schema=schema)
    with pytest.raises(InputError, match="types of its own"):
        tables.import_table("x.parquet", tmp_path / "o.parquet", schema=schema)
    with pytest.raises(InputError, match="must end in"):
        tables.import_table(text, tmp_path / "o.csv", schema=schema)
    (tmp_path / "o.parquet").write_text("")
    with pytest.raises(InputError, match="exists already"):
        tables.import_table(text, tmp_path / "o.parquet", schema=schema)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clinic.csv", "clinic.toml", "o.parquet"]


def test_the_command_says_that_its_figures_are_private(tmp_path):
    text, _ = a_file(tmp_path)
    words = ["import", str(text), str(tmp_path / "o.parquet"), "--schema", str(tmp_path / "clinic.toml")]
    done = CliRunner().invoke(app, [*words, "--number", "e", "--text", "tier"])
    assert done.exit_code == 0, done.output
    assert "PRIVATE" in done.output
    assert "malformed lines were skipped" in " ".join(done.output.split())
    (tmp_path / "o.parquet").unlink()
    done = CliRunner().invoke(app, [*words, "--json"])
    said = json.loads(done.stdout)
    assert "do not publish" in said["private"]
    assert said["records"] == pq.read_metadata(tmp_path / "o.parquet").num_rows
    assert set(said["outside"]) == set(NAMES)
