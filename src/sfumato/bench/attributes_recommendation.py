"""The case study: rebuild histories from noisy attributes, train a matrix factorisation, compare with raw data.

The paper leaves open what the recommender is given besides the rebuilt 0/1 histories, so three readings are measured:

- *ratings*: films of a rebuilt history get their public average rating (a released history holds no ratings); the error is
  the mean absolute error on held-out ratings;
- *histories alone*: the same, but exact histories get the public averages too, so that only the histories differ;
- *choices*: the recommender is given who chose what, and the error is the mean absolute error of its prediction (0 to 1)
  on held-out choices and as many films the person did not choose.

"raw" uses the same recommender on the exact histories (with the true ratings, in the first reading); "nobody" is what the
public facts alone give (average ratings; popularity), without anybody's history.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attributes import ItemGroups, allocate, rebuild_counts, release_batch, shrink
from sfumato.bench.attributes_data import Shop, flat_budgets
from sfumato.privacy import Seeded

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


def factorise(
    person: NDArray[np.int64],
    item: NDArray[np.int64],
    value: NDArray[np.float64],
    shape: tuple[int, int],
    *,
    rank: int = 10,
    ridge: float = 6.0,
    rounds: int = 5,
    seed: int = 0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Alternating least squares on the given entries: factors of people and items."""
    rng = np.random.default_rng(seed)
    left, right = np.zeros((shape[0], rank)), rng.normal(0, 0.1, (shape[1], rank))
    by_person, by_item = np.argsort(person, kind="stable"), np.argsort(item, kind="stable")
    for _ in range(rounds):
        left = _solve(person[by_person], item[by_person], value[by_person], right, shape[0], ridge)
        right = _solve(item[by_item], person[by_item], value[by_item], left, shape[1], ridge)
    return left, right


def _solve(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    value: NDArray[np.float64],
    factors: NDArray[np.float64],
    size: int,
    ridge: float,
) -> NDArray[np.float64]:
    ends = np.searchsorted(rows, np.arange(size + 1))
    rank = factors.shape[1]
    grams, sides = np.tile(ridge * np.eye(rank), (size, 1, 1)), np.zeros((size, rank))
    for i in range(size):
        F = factors[columns[ends[i] : ends[i + 1]]]
        grams[i] += F.T @ F
        sides[i] = F.T @ value[ends[i] : ends[i + 1]]
    return np.asarray(np.linalg.solve(grams, sides[:, :, None])[:, :, 0])


def rating_error(
    train: Pairs, rating: NDArray[np.float64], test: Pairs, truth: NDArray[np.float64], shape: tuple[int, int]
) -> float:
    """MAE on held-out ratings of biases plus matrix factorisation."""
    person, item = train
    mean = float(rating.mean())
    of_item = _bias(item, rating - mean, shape[1])
    of_person = _bias(person, rating - mean - of_item[item], shape[0])
    left, right = factorise(person, item, rating - mean - of_item[item] - of_person[person], shape)
    guess = mean + of_item[test[1]] + of_person[test[0]] + (left[test[0]] * right[test[1]]).sum(axis=1)
    return float(np.abs(np.clip(guess, 1, 5) - truth).mean())


def _bias(index: NDArray[np.int64], residual: NDArray[np.float64], size: int, damping: float = 10.0) -> NDArray[np.float64]:
    return np.asarray(np.bincount(index, residual, size) / (np.bincount(index, minlength=size) + damping))


def choice_error(train: Pairs, test: Pairs, truth: NDArray[np.float64], shape: tuple[int, int], *, seed: int = 0) -> float:
    """MAE of predicted choices (0 to 1), trained on choices and as many unchosen items."""
    rng = np.random.default_rng(seed)
    person = np.concatenate([train[0], train[0]])
    item = np.concatenate([train[1], rng.integers(0, shape[1], train[1].size)])
    value = np.concatenate([np.ones(train[0].size), np.zeros(train[0].size)])
    of_item = _bias(item, value - 0.5, shape[1])
    left, right = factorise(person, item, value - 0.5 - of_item[item], shape)
    guess = 0.5 + of_item[test[1]] + (left[test[0]] * right[test[1]]).sum(axis=1)
    return float(np.abs(np.clip(guess, 0, 1) - truth).mean())


def rebuild_histories(shop: Shop, train: Pairs, *, epsilon: float, popularity: NDArray[np.float64], seed: int) -> Pairs:
    """Release every person's histogram at ε, rebuild counts per group, and pick popular items of each group."""
    rng = np.random.default_rng(seed)
    catalogue, groups = shop.catalogue, ItemGroups.of(shop.catalogue)
    policy = allocate(catalogue, budgets=flat_budgets(rng, len(catalogue.attributes)), epsilon=epsilon, utility="mse")
    exact = catalogue.histograms(train[0], train[1], people=shop.people)
    noisy, _ = release_batch(exact, policy, source=Seeded(seed))
    prior = np.bincount(groups.group_of, popularity + 1e-9, groups.sizes.size).astype(np.float64)
    believed, deviations = shrink(noisy, policy)
    counts = rebuild_counts(believed, groups, deviations=deviations, prior=prior)
    person, item = [], []
    for g in range(groups.sizes.size):
        members = np.flatnonzero(groups.group_of == g)
        wanted = counts[:, g]
        who = np.flatnonzero(wanted)
        if not who.size:
            continue
        # Gumbel's trick again: members at random, with odds by public popularity.
        keys = np.log(popularity[members] + 1e-3) + rng.gumbel(size=(who.size, members.size))
        order = np.argsort(-keys, axis=1)
        taken = np.arange(members.size)[None, :] < wanted[who, None]
        person.append(np.repeat(who, wanted[who]))
        item.append(members[order[taken]])
    return np.concatenate(person).astype(np.int64), np.concatenate(item).astype(np.int64)


def recommendation_figures(
    shop: Shop, *, epsilon: float = 0.1, seed: int = 0, most_people: int | None = None
) -> dict[str, Any]:
    """Errors with raw and with rebuilt histories, and the loss between them."""
    rng = np.random.default_rng(seed)
    if most_people is not None and shop.people > most_people:
        keep = shop.person < most_people
        shop = Shop(shop.name, shop.catalogue, shop.person[keep], shop.item[keep], shop.rating[keep])
    held = rng.random(shop.person.size) < 0.2
    train, rating = (shop.person[~held], shop.item[~held]), shop.rating[~held]
    test, truth = (shop.person[held], shop.item[held]), shop.rating[held]
    shape = (shop.people, shop.catalogue.size)
    popularity = np.bincount(train[1], minlength=shape[1]).astype(np.float64)
    average = rating.mean() + _bias(train[1], rating - rating.mean(), shape[1])
    rebuilt = rebuild_histories(shop, train, epsilon=epsilon, popularity=popularity, seed=seed)
    chosen = np.zeros(shape, dtype=bool)
    chosen[shop.person, shop.item] = True
    others = (test[0], rng.integers(0, shape[1], test[0].size))
    fair = ~chosen[others]
    asked = (np.concatenate([test[0], others[0][fair]]), np.concatenate([test[1], others[1][fair]]))
    answer = np.concatenate([np.ones(test[0].size), np.zeros(int(fair.sum()))])
    liked = popularity / popularity.max()
    nobody = {
        "ratings": float(np.abs(average[test[1]] - truth).mean()),
        "choices": float(np.abs(_monotone(liked[asked[1]], answer) - answer).mean()),
    }
    raw = {"ratings": rating_error(train, rating, test, truth, shape), "choices": choice_error(train, asked, answer, shape)}
    private = {
        "ratings": rating_error(rebuilt, average[rebuilt[1]], test, truth, shape),
        "choices": choice_error(rebuilt, asked, answer, shape),
    }
    # The kindest reading: no ratings on either side, so what is lost is only what the histories told beyond popularity.
    same = rating_error(train, average[train[1]], test, truth, shape)
    figures: dict[str, Any] = {
        "data": shop.name,
        "people": shop.people,
        "epsilon": epsilon,
        "loss_if_raw_had_no_ratings_either": private["ratings"] / same - 1,
    }
    for reading in raw:
        figures[reading] = {
            "raw_mae": raw[reading],
            "private_mae": private[reading],
            "nobody_mae": nobody[reading],
            "loss": private[reading] / raw[reading] - 1,
        }
    return figures


def _monotone(score: NDArray[np.float64], answer: NDArray[np.float64], bins: int = 50) -> NDArray[np.float64]:
    """The share of choices at each level of popularity: the best guess from popularity alone."""
    edges = np.quantile(score, np.linspace(0, 1, bins + 1)[1:-1])
    cell = np.searchsorted(edges, score)
    share = np.bincount(cell, answer, bins) / np.maximum(np.bincount(cell, minlength=bins), 1)
    return np.asarray(share[cell])


def recommendation_claims(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """The paper's 8%, for each reading of it."""
    readings = {
        "ratings": figures["ratings"]["loss"],
        "choices": figures["choices"]["loss"],
        "histories alone (public average ratings on both sides)": figures["loss_if_raw_had_no_ratings_either"],
    }
    where = f"{figures['data']}, ε = {figures['epsilon']}: loss of MAE against raw data"
    return [
        {"name": f"{where}, {reading}", "figure": round(loss, 4), "limit": "<= 0.08", "holds": bool(loss <= 0.08)}
        for reading, loss in readings.items()
    ]
