"""Catalogues and histories for the attribute experiments: MovieLens, Yelp and MSNBC from a folder, or one made here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import Catalogue
from sfumato.privacy import NANO

YELP_ATTRIBUTES = 21  # as in the paper: the most common categories of the training businesses
MSNBC_PAGES = [
    *("frontpage", "news", "tech", "local", "opinion", "on-air", "misc", "weather", "msn-news"),
    *("health", "living", "business", "msn-sports", "sports", "summary", "bbs", "travel"),
]


@dataclass(frozen=True, eq=False)
class Shop:
    """A public catalogue and, where there are any, people's choices: (person, item row, rating)."""

    name: str
    catalogue: Catalogue
    person: NDArray[np.int64]
    item: NDArray[np.int64]
    rating: NDArray[np.float64]

    @property
    def people(self) -> int:
        return int(self.person.max(initial=-1)) + 1


def shops(data: Path | None, *, quick: bool = False) -> Iterator[Shop]:
    """The datasets found in the folder, or the made one."""
    if data is None:
        yield made_shop(people=300 if quick else 3000)
        return
    loaders = {"ml1m_movies.parquet": movielens, "yelp2013_businesses.parquet": yelp, "msnbc_sequences.parquet": msnbc}
    found = [load for file, load in loaders.items() if (data / file).exists()]
    if not found:
        raise FileNotFoundError(f"none of {', '.join(loaders)} in {data}")
    for load in found:
        yield load(data)


def flat_budgets(rng: np.random.Generator, m: int) -> NDArray[np.float64]:
    """Budgets that add up to ε = 1, uniformly at random (flat Dirichlet), as in the paper's setting."""
    return np.asarray(np.maximum((rng.dirichlet(np.ones(m)) * NANO).astype(np.int64), 1000) / NANO)


def _table(path: Path, columns: list[str] | None = None) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(path, columns=columns)


def movielens(data: Path) -> Shop:
    """MovieLens-1M: 3,883 films, 18 genres, 6,040 people."""
    films = _table(data / "ml1m_movies.parquet").to_pandas()
    genres = [c for c in films.columns if c.startswith("is_")]
    catalogue = Catalogue.from_matrix(films[genres].to_numpy().astype(np.int64), [g[3:] for g in genres])
    row = np.full(int(films["movie"].max()) + 1, -1)
    row[films["movie"].to_numpy()] = np.arange(len(films))
    ratings = _table(data / "ml1m_ratings.parquet").to_pandas()
    return Shop(
        "MovieLens",
        catalogue,
        ratings["user"].to_numpy().astype(np.int64) - 1,
        row[ratings["movie"].to_numpy()].astype(np.int64),
        ratings["rating"].to_numpy().astype(np.float64),
    )


def yelp(data: Path) -> Shop:
    """Yelp 2013: businesses with their most common categories; reviews of the training part."""
    businesses = _table(data / "yelp2013_businesses.parquet", ["business", "categories", "part"]).to_pandas()
    businesses = businesses[businesses["part"] == "train"].reset_index(drop=True)
    names, counts = np.unique(np.concatenate(businesses["categories"].to_list()).astype(str), return_counts=True)
    chosen = names[np.argsort(-counts, kind="stable")[:YELP_ATTRIBUTES]].tolist()
    tags = {
        int(b): [c for c in cs if c in chosen]
        for b, cs in zip(businesses["business"], businesses["categories"], strict=True)
    }
    catalogue = Catalogue.of(tags, chosen)
    position = {b: i for i, b in enumerate(tags)}
    reviews = _table(data / "yelp2013_reviews.parquet").to_pandas()
    reviews = reviews[reviews["part"].isin(["train", "train_nostars"]) & reviews["business"].isin(position)]
    _, person = np.unique(reviews["user"].to_numpy(), return_inverse=True)
    item = reviews["business"].map(position).to_numpy().astype(np.int64)
    return Shop("Yelp", catalogue, person.astype(np.int64), item, np.ones(item.size))


def msnbc(data: Path) -> Shop:
    """MSNBC: 17 page categories, each an item with one attribute; 989,818 people, 4.7 million views."""
    pages = _table(data / "msnbc_sequences.parquet", ["user", "pages"])
    views = pages["pages"].combine_chunks()
    lengths = np.diff(views.offsets.to_numpy())
    person = np.repeat(np.arange(len(views)), lengths).astype(np.int64)
    item = views.values.to_numpy().astype(np.int64) - 1
    catalogue = Catalogue.from_matrix(np.eye(17, dtype=np.int64), MSNBC_PAGES)
    return Shop("MSNBC", catalogue, person, item, np.ones(item.size))


def made_shop(*, people: int = 3000, items: int = 2000, attributes: int = 18, seed: int = 0) -> Shop:
    """A catalogue of the project's own: genres of uneven popularity that go in pairs, people with tastes."""
    rng = np.random.default_rng(seed)
    popular = rng.dirichlet(np.full(attributes, 0.7))
    matrix = np.zeros((items, attributes), dtype=np.int64)
    main = rng.choice(attributes, items, p=popular)
    matrix[np.arange(items), main] = 1
    for _ in range(4):  # companions: each genre is drawn to its neighbours
        more = rng.random(items) < 0.4
        matrix[np.flatnonzero(more), (main[more] + rng.integers(1, 5, int(more.sum()))) % attributes] = 1
    catalogue = Catalogue.from_matrix(matrix, [f"genre {j + 1}" for j in range(attributes)])
    appeal = rng.pareto(1.2, items) + 0.05
    taste, quality = rng.normal(0, 0.8, (people, attributes)), rng.normal(0, 0.5, items)
    liking = taste @ matrix.T / np.sqrt(matrix.sum(axis=1)) + quality
    size = np.minimum(rng.lognormal(4.5, 0.7, people).astype(int) + 20, items // 3)
    person, item, rating = [], [], []
    for u in range(people):
        # Gumbel's trick: a sample without replacement with odds ∝ appeal * exp(liking).
        keys = np.log(appeal) + 0.5 * liking[u] + rng.gumbel(size=items)
        chosen = np.argpartition(-keys, size[u])[: size[u]]
        person.append(np.full(size[u], u))
        item.append(chosen)
        rating.append(np.clip(np.rint(3.6 + 0.8 * liking[u, chosen] + rng.normal(0, 0.7, size[u])), 1, 5))
    return Shop("made catalogue", catalogue, np.concatenate(person), np.concatenate(item), np.concatenate(rating))
