"""What a published grid says about itself in a report: words and small tables. Post-processing of what was paid for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grids.published.base import Section
from sfumato.grids.published.cuts import Cut, ScoreCut
from sfumato.grids.published.sampling import possible_cells
from sfumato.privacy.noise import laplace_variance
from sfumato.records.coding import cells_of, leaves_of

if TYPE_CHECKING:
    import pandas as pd

    from sfumato.grids.published.network import Network
    from sfumato.grids.published.synopsis import Synopsis

MOST_ROWS = 40  # of each table in a report
_MOST_LABELS = 8


def synopsis_sections(synopsis: Synopsis) -> Iterator[Section]:
    """The grid in words, class balance, signal, what is missing, and marginals beside those of the synthetic table."""
    yield "The grid in words", grid_in_words(synopsis)
    cells = synopsis.counts.shape[1]
    largest = f" (the largest {MOST_ROWS} of {cells} cells)" if cells > MOST_ROWS else ""
    yield f"Class balance per cell{largest}", class_balance(synopsis).head(MOST_ROWS)
    if synopsis.cuts:
        yield "Which columns carry signal", signal_table(synopsis)
    yield "Columns not in the grid", outside_in_words(synopsis)
    one, two = marginals(synopsis, 1), marginals(synopsis, 2)
    yield f"One column at a time: measured and synthetic{largest_gaps(one)}", one.head(MOST_ROWS)
    if len(two):
        yield f"Two columns at a time: measured and synthetic{largest_gaps(two)}", two.head(MOST_ROWS)
    for words, width in (("one column", 1), ("two columns", 2)):
        first = first_marginals(synopsis, width)
        if len(first):
            yield f"The first grid, {words} at a time: measured and synthetic{largest_gaps(first)}", first.head(MOST_ROWS)
    yield "The synthetic table", table_in_words(len(synopsis.synthetic), list(synopsis.synthetic.columns))


def largest_gaps(table: pd.DataFrame) -> str:
    """What to add to the heading of a table of marginals that is too long to be shown whole."""
    return f" (the {MOST_ROWS} of {len(table)} groups furthest apart)" if len(table) > MOST_ROWS else ""


def grid_in_words(synopsis: Synopsis) -> str:
    """Which columns are divided, into what, and how noisy the counts are."""
    parts = []
    for cut in synopsis.cuts:
        parts.append(f"{cut.name} in {cut.size} groups ({_listed(cut.labels)})")
        if isinstance(cut, ScoreCut):
            inner = ", ".join(f"{c.name} in {c.size} groups ({_listed(c.labels)})" for c in cut.inner) or "the whole table"
            parts[-1] += f", where the score is the class share that a first published grid gives to {inner}"
    divided = "; ".join(parts) or "nothing: there is one cell for the whole table"
    return (
        f"The table is divided by {divided}. In each of the {synopsis.counts.shape[1]:,} cells the records of every value "
        f"of {synopsis.target} were counted, each count with noise of standard deviation {synopsis.expected_rmse:.3g} "
        "records."
    )


def _listed(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else ""
    return ", ".join(labels[:_MOST_LABELS]) + more


def class_balance(synopsis: Synopsis) -> pd.DataFrame:
    """Per cell, largest first: estimated records, the share of each class, and what the noise does to both (one σ).

    The noise on a share p of a total t is ``σ √((1 - p)² + (k - 1) p²) / t`` for k classes, to first order; where the total
    does not stand out of its own noise the share says nothing, and the table says so.
    """
    import pandas as pd

    counts, sigma, k = synopsis.counts, synopsis.expected_rmse, len(synopsis.counts)
    total = counts.sum(axis=0)
    order = np.argsort(-total, kind="stable")
    frame = synopsis.to_frame().iloc[order, : len(synopsis.cuts)].reset_index(drop=True)
    total = total[order]
    share = counts[:, order] / np.maximum(total, 1e-9)
    blur = sigma * np.sqrt(((1 - share) ** 2 + (k - 1) * share**2).max(axis=0)) / np.maximum(total, 1e-9)
    frame["records"] = np.rint(total).astype(np.int64)
    frame["noise on records"] = round(float(sigma * np.sqrt(k)), 1)
    for label, row in zip(synopsis.class_labels, share, strict=True):
        frame[f"{synopsis.target} = {label}"] = [f"{p:.1%}" if t > 0 else "" for p, t in zip(row, total, strict=True)]
    clear = total > 2 * sigma * np.sqrt(k)
    words = [f"± {100 * b:.1f} points" if ok else "mostly noise" for b, ok in zip(blur, clear, strict=True)]
    frame["noise on shares"] = pd.Series(words, dtype=object)
    return frame


def signal_table(synopsis: Synopsis) -> pd.DataFrame:
    """How many records each column of the grid (or of the first grid behind a score) helps to judge.

    Alone: against one answer for all records. Beside the others: how many more would be misjudged without it (nothing if
    another column, or the score, says the same). Noise spreads such a figure by about ``2σ √counts``, and raises it in
    groups whose two largest classes are closer than the noise, by about σ each: below that it may be noise alone.
    """
    import pandas as pd

    total = max(float(synopsis.counts.sum()), 1.0)
    beside = {c.name: share * total for c, share in zip(synopsis.cuts, synopsis.signal().values(), strict=True)}
    threshold = _could_be_noise(synopsis.counts, synopsis.expected_rmse)
    rows: list[tuple[float, tuple[str, ...]]] = []
    for name, table, merged in _by_column(synopsis):
        alone = float(table.max(axis=0).sum() - table.sum(axis=1).max())
        sure = alone > _could_be_noise(table, synopsis.expected_rmse * np.sqrt(merged)) or beside.get(name, 0) > threshold
        without = f"{beside[name] / total:.2%}" if name in beside else ""
        words = (name, f"{max(alone, 0.0) / total:.2%}", without, "yes" if sure else "not clearly")
        rows.append((-max(alone, beside.get(name, 0.0)), words))
    head = ["column", "fewer misjudged by it alone", "more misjudged without it", "beyond the noise"]
    return pd.DataFrame([words for _, words in sorted(rows)], columns=head)


def _could_be_noise(table: NDArray[np.float64], sigma: float) -> float:
    top = np.sort(table, axis=0)[-2:]
    return float(2 * sigma * np.sqrt(table.size) + sigma * (top[1] - top[0] < 3 * sigma).sum())


def _by_column(synopsis: Synopsis) -> Iterator[tuple[str, NDArray[np.float64], float]]:
    """Noisy counts by class and group of one column, and how many released counts are in each."""
    seen = set()
    for cuts, noisy in _grids(synopsis):
        cube = noisy.reshape(len(noisy), *(c.size for c in cuts))
        for axis, cut in enumerate(cuts, start=1):
            if cut.name not in seen:
                seen.add(cut.name)
                table = cube.sum(axis=tuple(i for i in range(1, cube.ndim) if i != axis))
                yield cut.name, table, cube.size / table.size


def _grids(synopsis: Synopsis) -> Iterator[tuple[tuple[Cut | ScoreCut, ...], NDArray[np.float64]]]:
    """The grid, and the first grid behind its score (as noisy: both have half of the budget)."""
    possible = possible_cells(synopsis.cuts)
    noisy = synopsis.noisy if possible is None else np.where(possible, synopsis.noisy, 0)
    yield synopsis.cuts, noisy / synopsis.unit
    for cut in synopsis.cuts:
        if isinstance(cut, ScoreCut):
            yield cut.inner, cut.noisy / synopsis.unit


def outside_in_words(synopsis: Synopsis) -> str:
    """What the release knows of the columns outside the grid: counts of each by itself, or nothing."""
    left = synopsis.unknown_columns()
    counted = [name for name in synopsis.not_in_grid() if name not in left]
    said = "" if counted or left else "Every column is in the grid."
    if counted:
        apart = [synopsis.attributes[o.attribute].name for o in synopsis.others if o.by_class]
        by = f" ({', '.join(apart)} for each value of {synopsis.target} apart)" if apart else ""
        said = (
            f"{', '.join(counted)}: each was counted by itself{by}, with noise of standard deviation "
            f"{synopsis.others_rmse:.3g} records. In the synthetic table they have these shares, and beyond that nothing to "
            "do with each other or with the columns of the grid; columns in groups have their own shares inside a group. "
        )
    if left:
        said += (
            f"{', '.join(left)}: the release says nothing about them, neither that they matter for {synopsis.target} nor "
            "that they do not. They are not in the synthetic table."
        )
    return said.strip()


def table_in_words(rows: int, columns: Sequence[str]) -> str:
    """What synthetic.parquet is."""
    return (
        f"synthetic.parquet holds {rows:,} drawn rows with {', '.join(columns)}. They are made from the noisy counts and "
        "the public schema alone: no row is a person's, and drawing them cost nothing further."
    )


# --- marginals -----------------------------------------------------------------------------------------------------


def marginals(synopsis: Synopsis, width: int) -> pd.DataFrame:
    """Marginals over `width` of the grid's columns and the target: noisy counts as released, beside the synthetic table.

    Only sums of counts that were paid for: no other column, no finer group, no look at the table.
    """
    return in_table(_grid_counts(synopsis, synopsis.cuts, synopsis.noisy, synopsis.expected_rmse).rows(width))


def first_marginals(synopsis: Synopsis, width: int) -> pd.DataFrame:
    """The same for the first of two grids, whose counts were published too; nothing if there was one grid only."""
    found = (c for c in synopsis.cuts if isinstance(c, ScoreCut))
    sigma = first_rmse(synopsis)
    return in_table(row for c in found for row in _grid_counts(synopsis, c.inner, c.noisy, sigma).rows(width))


def first_rmse(synopsis: Synopsis) -> float:
    """Standard deviation of the noise on a count of the first grid, in records.

    What both grids' counts cost stands in the guarantee, and noise rates are in proportion to it.
    """
    loss = {step.label: step.loss for step in synopsis.guarantee.steps}
    first, second = loss.get("first grid: counts", 0), loss.get("second grid: counts", 0)
    rate = synopsis.rate * first // second if first and second else synopsis.rate
    return float(np.sqrt(laplace_variance(rate))) / synopsis.unit


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts over some columns as released, and the place of every synthetic row in them."""

    names: Sequence[str]
    labels: Sequence[Sequence[str]]
    noisy: NDArray[np.float64]
    sigma: float
    drawn: Sequence[NDArray[np.int64]]
    scale: float  # records per synthetic row

    def rows(self, width: int) -> Iterator[dict[str, Any]]:
        """All marginals over so many of the columns."""
        for axes in combinations(range(len(self.names)), width):
            yield from self.over(axes)

    def over(self, axes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
        """One marginal: the sums of released counts beside the synthetic table's."""
        measured = self.noisy.sum(axis=tuple(i for i in range(self.noisy.ndim) if i not in axes))
        noise = self.sigma * np.sqrt(self.noisy.size / measured.size)
        found = np.zeros(measured.shape)
        np.add.at(found, tuple(self.drawn[i] for i in axes), self.scale)
        for place in np.ndindex(measured.shape):
            group = " and ".join(f"{self.names[i]} = {self.labels[i][p]}" for i, p in zip(axes, place, strict=True))
            figures = {"measured": float(measured[place]), "noise": float(noise), "synthetic": float(found[place])}
            yield {"group": group, **figures}


def in_table(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Marginals as a table; where there are too many, those furthest apart come first."""
    import pandas as pd

    frame = pd.DataFrame(rows, columns=["group", "measured", "noise", "synthetic"])
    if len(frame) > MOST_ROWS:
        gap = (frame["measured"] - frame["synthetic"]).abs() / frame["noise"]
        frame = frame.iloc[np.argsort(-gap.to_numpy(), kind="stable")].reset_index(drop=True)
    return frame.round(1)


def _grid_counts(synopsis: Synopsis, cuts: Sequence[Cut | ScoreCut], noisy: NDArray[np.int64], sigma: float) -> Counts:
    return Counts(
        [synopsis.target, *(c.name for c in cuts)],
        [synopsis.class_labels, *(c.labels for c in cuts)],
        (noisy / synopsis.unit).reshape(len(noisy), *(c.size for c in cuts)),
        sigma,
        synthetic_codes(synopsis, cuts),
        float(synopsis.counts.sum()) / max(len(synopsis.synthetic), 1),  # 1 unless the drawn table was kept short
    )


def synthetic_codes(synopsis: Synopsis, cuts: Sequence[Cut | ScoreCut] | None = None) -> list[NDArray[np.int64]]:
    """The class and the run of every cut (the synopsis's own by default), for the rows of the synthetic table."""
    table, wanted = synopsis.synthetic, synopsis.cuts if cuts is None else cuts
    leaves = np.zeros((len(table), len(synopsis.attributes)), dtype=np.int64)
    for j in sorted({c.attribute for cut in wanted for c in _columns(cut)}):
        attribute = synopsis.attributes[j]
        leaves[:, j] = leaves_of(attribute, table[attribute.name])
    classes = cells_of(synopsis.target_domain, table[synopsis.target])
    return [classes, *(cut.codes(leaves) for cut in wanted)]


def _columns(cut: Cut | ScoreCut) -> tuple[Cut, ...]:
    return cut.inner if isinstance(cut, ScoreCut) else (cut,)


# --- networks ------------------------------------------------------------------------------------------------------


def network_sections(network: Network) -> Iterator[Section]:
    """The network in words, the marginals that were measured, and what the synthetic table is."""
    rows = network.to_frame().to_dict("records")
    links = [f"{row['column']} from {row['parents'] or 'nothing'}" for row in rows]
    yield (
        "The network in words",
        f"Each column is drawn from its parents, in this order: {'; '.join(links)}. Every count behind it carries noise of "
        f"standard deviation {network.expected_rmse:.3g} records; what two columns without a link have in common is lost.",
    )
    for words, width in (("One column", 1), ("Two columns", 2)):
        table = network_marginals(network, width)
        if len(table):
            yield f"{words} at a time: measured and synthetic{largest_gaps(table)}", table.head(MOST_ROWS)
    yield "The synthetic table", table_in_words(len(network.synthetic), list(network.synthetic.columns))


def network_marginals(network: Network, width: int) -> pd.DataFrame:
    """Marginals over one or two columns that are sums of measured tables: a column, or a column with one of its parents.

    Each is shown once, from the first table that holds it; what two columns without a common table have in common was not
    measured and is not shown.
    """
    leaves = _network_leaves(network)
    scale = network.size / max(len(leaves), 1)
    rows: list[dict[str, Any]] = []
    seen: set[tuple[int, ...]] = set()
    for (x, parents), table in network.measured:
        axes = [(x, network.columns[x].height - 1), *parents]
        counts = Counts(
            [network.columns[j].name for j, _ in axes],
            [network.columns[j].labels[level] for j, level in axes],
            table.reshape([network.columns[j].sizes[level] for j, level in axes]).astype(np.float64),
            network.expected_rmse,
            [network.columns[j].maps[level][leaves[:, j]] for j, level in axes],
            scale,
        )
        for chosen in combinations(range(len(axes)), width):
            who = tuple(sorted(axes[i][0] for i in chosen))
            if 0 in chosen and who not in seen:
                seen.add(who)
                rows.extend(counts.over(chosen))
    return in_table(rows)


def _network_leaves(network: Network) -> NDArray[np.int64]:
    """The synthetic table as the network's columns: leaves, or bits."""
    table = network.synthetic
    found = [leaves_of(a, table[a.name]) for a in network.attributes]
    leaves = np.stack([*found, cells_of(network.target_domain, table[network.target])], axis=1)
    return leaves if network.code is None else network.code.encode(leaves)
