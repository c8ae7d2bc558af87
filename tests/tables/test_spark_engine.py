"""Spark by URL and by session: names, traces, what a stopped job or a lost server leaves. (Answers: test_engines_agree.)"""

from __future__ import annotations

import gc
import threading
import time

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.bench import scale_spark
from sfumato.errors import InputError, SfumatoError
from sfumato.ledger import Ledger
from sfumato.offers import Request
from sfumato.tables import Categorical, Numeric, PrivacyUnit, Roster, Schema, spark_backend, spark_engine
from sfumato.tables import open as describe
from sfumato.tables.capping import capped
from sfumato.tables.connecting import connect
from sfumato.tables.engines import Engine
from sfumato.testing import reveal
from support.relay import Relay

pytestmark = pytest.mark.spark
SCHEMA = Schema({"x": Numeric(0, 9, bins=10, integer=True)})


@pytest.fixture
def make(spark_connect):
    """Puts the rows of a query on Spark, for all sessions to see; the result is the name of the table."""
    made = []

    def create(query, name=None):
        made.append(name or f"t{len(made)}_{time.monotonic_ns()}")
        spark_connect.sql(query).createOrReplaceGlobalTempView(f"`{made[-1].replace('`', '``')}`")
        return made[-1]

    yield create
    for name in made:
        spark_connect.catalog.dropGlobalTempView(f"`{name.replace('`', '``')}`")


def soon(holds):
    """Whether something comes true: traces are removed by a thread of its own."""
    until = time.monotonic() + 30
    while not holds() and time.monotonic() < until:
        gc.collect()
        time.sleep(0.02)
    return holds()


def views(session):
    return {table.name for table in session.catalog.listTables() if table.isTemporary}


def test_spark_reads_names_as_names(make, spark_url):
    plain = make("SELECT CAST(id AS INT) AS x FROM range(7)")
    odd = make("SELECT CAST(id AS INT) AS x FROM range(3)", name="a.b` FROM x; --")
    for table, rows in ((f"global_temp.{plain}", 7), (("global_temp", odd), 3), ("global_temp.`a.b`` FROM x; --`", 3)):
        assert reveal(describe(spark_url, table=table, schema=SCHEMA).count()) == rows
    for wrong in ("global_temp.nothing", "nobody.knows.it"):
        with pytest.raises(InputError, match="no table") as caught:
            describe(spark_url, table=wrong, schema=SCHEMA).engine
        assert "SELECT" not in str(caught.value)
    for no_name in ("a..b", "a.b.c.d", "a.`b", ""):
        with pytest.raises(InputError):
            describe(spark_url, table=no_name, schema=SCHEMA).engine


def test_a_spark_server_that_is_not_there_is_said_without_its_token():
    with pytest.raises(InputError, match="cannot connect") as caught:
        spark_engine.open_spark_url("sc://127.0.0.1:1/;token=hush@hush;use_ssl=false", "t", None)
    assert "hush" not in str(caught.value)


def test_spark_sessions_by_url_are_shared_and_closed(make, spark_url, spark_connect):
    name = f"global_temp.{make('SELECT CAST(id AS INT) AS x FROM range(7)')}"
    first = connect(spark_url, name, columns={})
    session = first.backend._session
    assert connect(spark_url, name, columns={}).backend is first.backend
    assert connect(spark_url, name, columns={}, near=first).backend is first.backend
    assert session.conf.get("spark.sql.ansi.enabled") == "true"
    assert session.conf.get("spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch") == "true"
    del first
    assert soon(lambda: session.is_stopped)
    users = connect(spark_connect.table(name), columns={})
    del users
    gc.collect()
    assert spark_connect.range(2).count() == 2  # the user's own is left alone


def test_spark_keeps_large_whole_numbers_beside_a_null(spark, spark_connect):
    large = 2**53 + 1
    for session in (spark, spark_connect):
        frame = session.sql(f"SELECT {large}L AS n UNION ALL SELECT NULL")
        engine = connect(frame, columns={})
        assert set(engine.fetch(engine.table.select("n"))["n"].to_pylist()) == {large, None}


@pytest.mark.parametrize("kind", ["spark", "spark_connect"])
def test_views_on_spark_go_with_what_they_were_for(kind, request):
    session = request.getfixturevalue(kind)
    assert soon(lambda: not views(session))
    people = session.sql("SELECT id AS who, CAST(id AS INT) AS x FROM range(9)")
    schema = Schema({"x": SCHEMA["x"]}, unit=PrivacyUnit(person="who", rows_per_person=1))
    grants = pa.table({"who": pa.array(range(8), pa.int64()), "grant": [0.5] * 8})
    opened = describe(people, schema=schema, budgets=Roster.table(grants, person="who", epsilon="grant"))
    engine = opened.engine
    joined = opened.budgets.joined(engine.table.select(person="who", x="x"), engine)  # a roster from elsewhere
    assert engine.fetch(joined.count()) is not None
    assert len(views(session)) == 2
    kept = engine.store(joined)
    assert len(views(session)) == 3
    kept.release()
    del opened, engine, joined, kept
    assert soon(lambda: not views(session))


def test_what_leaves_spark_is_bounded_by_cells(make, spark_url, monkeypatch):
    """Whatever the values are: every row its own number, its own text, its own budget and its own person."""
    rows = 6000
    query = """SELECT id AS who, id * 1000003 - 3000000000 AS n, concat('w', id) AS word, id / 7.0D AS f,
               if(id % 3 = 0, 'F', concat('v', id)) AS sex FROM range(0, 6000, 1, 8)"""
    schema = Schema(
        {
            "n": Numeric(0, 9, bins=10, integer=True),
            "f": Numeric(0, 50, bins=5),
            "word": Categorical([f"w{i}" for i in range(200)], other=True),
            "sex": Categorical(["F", "M"], other=True),
        }
    )
    opened = sf.open(
        spark_url,
        table=f"global_temp.{make(query)}",
        schema=schema,
        epsilon=100,
        rows=rows,
        ledger=":memory:",
        noise=sf.Seeded(1),
        name="wild",
    )
    asked = [("count", {"where": "sex = 'F'"}), ("sum", {"column": "f", "steps": 100}), ("histogram", {"columns": ["n"]})]
    asked += [("histogram", {"columns": ["word", "sex"]}), ("median", {"column": "n"}), ("top", {"column": "word", "k": 3})]
    for kind, about in asked:
        about = {"epsilon": 1, **about}
        request = Request(name=kind, kind=kind, parameters=about)
        seen = scale_spark.Fetched(kind, scale_spark.most_rows(schema, request))
        with scale_spark.watched(seen):
            opened.release(kind, **about)
        scale_spark.check(seen)
        assert seen.rows, kind
        assert seen.most_rows < rows / 5
    monkeypatch.setattr(seen, "rows", [rows])
    with pytest.raises(SfumatoError, match="must not grow"):
        scale_spark.check(seen)


class Stopping:
    """While this lasts, the first aggregate that is being computed is stopped."""

    def __init__(self, spark, monkeypatch, stop):
        self.spark, self.stop, self.over = spark, stop, threading.Event()
        fetch = Engine.fetch

        def fetched(engine, expr):
            threading.Thread(target=self._wait, daemon=True).start()
            return fetch(engine, expr)

        monkeypatch.setattr(Engine, "fetch", fetched)

    def _wait(self):
        tracker = self.spark.sparkContext.statusTracker()
        while not self.over.is_set():
            if tracker.getActiveJobsIds():
                self.stop()
                return
            time.sleep(0.02)


@pytest.mark.parametrize("how", ["job", "server"])
def test_a_stopped_spark_job_leaves_the_charge_and_nothing_else(how, make, spark, spark_url, tmp_path, monkeypatch):
    name = make("SELECT CAST(id % 10 AS INT) AS x FROM range(0, 40000000000, 1, 4)")  # takes minutes
    url, cut = spark_url, spark.sparkContext.cancelAllJobs
    if how == "server":
        relay = Relay(int(spark_url.rpartition(":")[2]))
        url, cut = f"sc://127.0.0.1:{relay.port}", relay.cut
        monkeypatch.setattr(spark_engine, "RETRIES", 1)
    about = {"schema": SCHEMA, "epsilon": 1, "rows": 7, "ledger": tmp_path / "x.ledger", "name": "x"}
    opened = sf.open(url, table=f"global_temp.{name}", **about)
    assert opened.dataset.engine.url == url  # open: what is stopped is the release
    session = opened.dataset.engine.backend._session
    with monkeypatch.context() as patch:
        stopping = Stopping(spark, patch, cut)
        with pytest.raises(SfumatoError) as caught:
            opened.histogram("x", epsilon="0.25").save(tmp_path / "made")
        stopping.over.set()
    spark.sparkContext.cancelAllJobs()  # a server without its client would go on for minutes
    told = f"{caught.value} {caught.value.__cause__} {caught.value.__context__}".lower()
    assert "stays spent" in told
    assert not any(word in told for word in ("grpc", "cancel", "job", "jvm", "127.0.0.1"))
    ledger = Ledger.open(tmp_path / "x.ledger")
    assert [(r.state, r.total) for r in ledger.history("x")] == [("failed", 250_000_000)]
    assert not (tmp_path / "made").exists()
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()
    del opened, caught
    assert soon(lambda: session.is_stopped)  # and with it whatever views it had
    # The table on a server that works: asked again, it is charged again.
    make("SELECT CAST(id AS INT) AS x FROM range(7)", name=name)
    again = sf.open(spark_url, table=f"global_temp.{name}", **about).histogram("x", epsilon="0.25")
    assert len(again.to_frame()) == 10
    assert [r.state for r in ledger.history("x")] == ["failed", "committed"]
    assert ledger.balance("x").total.spent == 500_000_000


def test_aggregates_stored_on_spark_are_removed_when_a_job_is_stopped(make, spark, spark_url, monkeypatch):
    name = make("SELECT CAST(id % 10 AS INT) AS x FROM range(0, 40000000000, 1, 4)")
    opened = describe(spark_url, table=f"global_temp.{name}", schema=SCHEMA)
    session = opened.engine.backend._session
    monkeypatch.setattr("sfumato.tables.counting.ROLL_UP_CELLS", 0)
    with monkeypatch.context() as patch:
        stopping = Stopping(spark, patch, spark.sparkContext.cancelAllJobs)
        with pytest.raises(SfumatoError, match="could not compute"):
            reveal(opened.marginals([["x"]]))
        stopping.over.set()
    assert not views(session)
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


def test_rows_that_spark_draws_are_drawn_once(spark_connect):
    frame = spark_connect.sql("SELECT id % 50 AS person, id AS n FROM range(0, 3000, 1, 8)")
    engine = connect(frame.repartition(5), columns={})
    drawn = capped(engine, engine.table, 3)
    assert "RAND()" in engine.backend.compile(drawn).upper()
    kept = engine.store(drawn)
    first, again = (sorted(engine.fetch(kept.select("n"))["n"].to_pylist()) for _ in range(2))
    assert first == again
    assert set(engine.fetch(kept.group_by("person").agg(n=kept.count()))["n"].to_pylist()) == {3}
    plan = engine.backend._cached_dataframes[kept.op().name]._explain_string(extended=True)
    assert "rand(" not in plan.lower()  # there is no way to draw others where some were lost
    kept.release()


def test_a_spark_that_might_draw_twice_is_refused(spark_connect, monkeypatch):
    monkeypatch.setitem(spark_backend._ONE_DRAW, "spark.sql.shuffle.noSuchSetting", "true")
    with pytest.raises(InputError, match=r"Spark 4\.1 or later"):
        spark_backend.backend_on(spark_connect)
