"""The float64 fast path against a slow, exact reference on the same bits, and the assumption it rests on."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.privacy import noise
from sfumato.privacy.units import NANO

TAIL = 0x5A5A_A5A5_0F0F_F0F1  # every bit string goes on with this word, for ever
DIGITS = 60


class Scripted:
    """Bits written by hand: first the given words, then `TAIL`."""

    private = False

    def __init__(self, words: list[int]) -> None:
        self.first = np.array(words, dtype=np.uint64)
        self.extra = 0

    def words(self, n: int) -> np.ndarray:
        if self.first.size:
            head, self.first = self.first[:n].copy(), self.first[n:]
            assert head.size == n
            return head
        self.extra += n
        return np.full(n, TAIL, dtype=np.uint64)

    def generator(self) -> np.random.Generator:
        raise AssertionError("noise must not ask for a generator")


def minus_log(u: int) -> Decimal:
    """-ln(U) for the whole bit string that begins with the 63 bits u."""
    bits = 63
    for _ in range(3):
        u, bits = (u << 64) | TAIL, bits + 64
    return -(Decimal(u) / Decimal(1 << bits)).ln()


def reference_geometric(u: int, rate: int) -> int:
    with decimal.localcontext(decimal.Context(prec=DIGITS)):
        return int(minus_log(u) * NANO / rate)


def boundary_word(rate: int, k: int, offset: int) -> int:
    """A word at which floor(-ln(U) 1e9 / rate) steps from k - 1 to k, give or take `offset`."""
    with decimal.localcontext(decimal.Context(prec=60)):
        u = int((Decimal(-k * rate) / NANO).exp() * (1 << 63)) + offset
    return min(max(u, 0), (1 << 63) - 1)


rates = st.one_of(st.integers(1, 10), st.integers(1, NANO), st.integers(NANO, noise.MAX_RATE), st.just(1))
words = st.one_of(
    st.integers(0, (1 << 63) - 1),
    st.integers(0, 1 << 50),
    st.sampled_from([0, 1, 2, (1 << 48) - 1, 1 << 48, (1 << 63) - 1, (1 << 63) - 512, (1 << 63) - 513]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(rates, words), min_size=1, max_size=40))
def test_fast_path_equals_the_reference(pairs):
    r, u = [p[0] for p in pairs], [p[1] for p in pairs]
    drawn = noise.laplace(np.array(r), source=Scripted(u))  # top bit 0: a plus sign, so nothing is rejected
    assert drawn.tolist() == [reference_geometric(w, rate) for rate, w in pairs]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(rates, words), min_size=1, max_size=20))
def test_one_sided_noise_equals_the_reference(pairs):
    drawn = noise.geometric([p[0] for p in pairs], source=Scripted([p[1] for p in pairs]))
    assert drawn.tolist() == [reference_geometric(w, rate) for rate, w in pairs]


@settings(max_examples=150, deadline=None)
@given(rates, st.integers(1, 10**7), st.integers(-2, 2))
def test_fast_path_at_the_very_boundaries(rate, k, offset):
    k = min(k, 43 * NANO // rate)  # further out no 63-bit word begins
    u = boundary_word(rate, max(k, 1), offset)
    assert noise.laplace(np.array([rate]), source=Scripted([u])).tolist() == [reference_geometric(u, rate)]


@pytest.mark.parametrize("seed", range(5))
def test_fast_path_equals_the_margin_per_draw_on_many(monkeypatch, seed):
    """The first step against the second and third, on a block of words of every size."""
    rng = np.random.default_rng(seed)
    u = rng.integers(0, 1 << 63, noise._BLOCK) >> rng.choice(
        [0, 5, 14, 16, 40], noise._BLOCK, p=[0.9, 0.04, 0.04, 0.018, 0.002]
    )
    r = np.maximum((NANO * 10.0 ** rng.uniform(-9, 6, u.size)).astype(np.int64), 1)
    fast = noise.laplace(r, source=Scripted(u.tolist()))
    monkeypatch.setattr(noise, "_FAST_FROM", np.int64((1 << 63) - 1))
    assert (fast == noise.laplace(r, source=Scripted(u.tolist()))).all()


def test_boundaries_need_and_get_more_bits():
    """Where 63 bits do not decide, more are drawn; a sampler without that step would pass the other tests."""
    fell_back = 0
    for k in range(1, 60):
        source = Scripted([boundary_word(10**7, k, 0)])
        noise.laplace(np.array([10**7]), source=source)
        fell_back += source.extra > 0
    assert fell_back == 59


def test_a_margin_too_small_would_be_noticed(monkeypatch):
    """Power of the comparison: with no margin at all, float64 alone answers wrongly near the boundaries."""
    monkeypatch.setattr(noise, "_FAST_MARGIN", 0.0)
    wrong = 0
    for k in range(1, 400):
        for offset in (-1, 0, 1):
            u = boundary_word(10**7, k, offset)
            wrong += noise.laplace(np.array([10**7]), source=Scripted([u])).tolist() != [reference_geometric(u, 10**7)]
    assert wrong > 50


def test_the_margin_covers_its_proof():
    """The inequality in the file, in exact arithmetic, at the largest scale and the smallest u of the fast path."""
    largest_log = Fraction(15 * 693148, 10**6)
    error = (largest_log * (Fraction(1, 2**49) + Fraction(1, 2**51)) + Fraction(1, 2**53) + Fraction(1, 2**48)) * NANO
    assert error < Fraction(noise._FAST_MARGIN) / 2
    assert int(noise._FAST_FROM) == 1 << 48


@pytest.mark.parametrize("length", [1, 3, 20_000])
def test_np_log_is_as_accurate_as_the_proof_assumes(length):
    rng = np.random.default_rng(0)
    u = np.concatenate(
        [
            rng.integers(1, 1 << 62, length),
            (rng.random(length) * 2.0 ** rng.integers(0, 62, length)).astype(np.int64) + 1,
            (1 << 62) - 1 - rng.integers(0, 1 << 40, length),
        ]
    )[: max(length, 3)]
    f = np.concatenate([u.astype(np.float64) * 2.0**-63, 1.0 - rng.integers(1, 1 << 20, length) * 2.0**-53])
    found = np.concatenate([np.log(f[i : i + length]) for i in range(0, f.size, length)])
    with decimal.localcontext(decimal.Context(prec=40)):
        for x, y in zip(
            f[::8].tolist() if length > 3 else f.tolist(), (found[::8] if length > 3 else found).tolist(), strict=True
        ):
            true = Decimal(x).ln()
            assert abs(Decimal(y) - true) <= 4 * Decimal(float(np.spacing(abs(y))))


def test_the_callers_decimal_context_does_not_reach_the_noise():
    u = boundary_word(10**7, 5, 0)
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_UP, traps=[decimal.Inexact])):
        drawn = noise.laplace(np.array([10**7]), source=Scripted([u]))
    assert drawn.tolist() == [reference_geometric(u, 10**7)]


def test_minus_zero_is_drawn_again():
    minus, nearly_one, small = 1 << 63, (1 << 63) - 10**9, 1 << 62
    drawn = noise.laplace(np.array([NANO]), source=Scripted([minus | nearly_one, minus | nearly_one, minus | small >> 2]))
    assert drawn.tolist() == [-reference_geometric(small >> 2, NANO)]
    assert drawn[0] == -2


@pytest.mark.parametrize("bad", [[0], [-1], [noise.MAX_RATE + 1], [0.5], ["1"]])
def test_rates_out_of_range_are_refused(bad):
    with pytest.raises(InputError, match="noise rates"):
        noise.laplace(bad)


def test_shape_is_kept_and_nothing_is_nothing():
    assert noise.laplace(np.full((2, 3), NANO)).shape == (2, 3)
    assert noise.laplace(np.int64(NANO)).shape == ()
    assert noise.laplace(np.empty(0, dtype=np.int64)).shape == (0,)


# --- the choice, by the same method ------------------------------------------------------------------------------------


def shifted(u: list[int]) -> Scripted:
    return Scripted([w << 1 for w in u])  # the choice has no sign: it takes the upper 63 bits


def reference_choice(scores: list[float], rate: int, u: list[int]) -> int:
    with decimal.localcontext(decimal.Context(prec=400)):
        totals = [Decimal(s) * rate / NANO + minus_log(w) for s, w in zip(scores, u, strict=True)]
    return max(range(len(totals)), key=totals.__getitem__)


scores = st.one_of(
    st.integers(-(1 << 52), 1 << 52).map(float),
    st.integers(0, 3).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, 1e-12),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(scores, words), min_size=1, max_size=12), rates)
def test_choice_equals_the_reference(pairs, rate):
    s, u = [p[0] for p in pairs], [p[1] for p in pairs]
    totals = list(zip(s, u, strict=True))
    if len(set(totals)) < len(totals):
        return  # equal scores with equal bits for ever: a tie that has probability 0
    assert noise.choose(np.array(s), rate=rate, source=shifted(u)) == reference_choice(s, rate, u)


@settings(max_examples=60, deadline=None)
@given(st.integers(1 << 20, 1 << 62), st.integers(-3, 3), st.integers(1, 40))
def test_choice_between_scores_that_float64_cannot_tell_apart(u, offset, gap):
    """The second word is placed so that both totals agree to within a few of its last bits."""
    rate = 10**8
    with decimal.localcontext(decimal.Context(prec=60)):
        v = int(Decimal(u) * (Decimal(-gap) / 10).exp()) + offset
    pair = [u, max(v, 1)]
    assert noise.choose([gap, 0], rate=rate, source=shifted(pair)) == reference_choice([gap, 0], rate, pair)


def test_choice_of_extreme_scores():
    assert noise.choose([-1.7e308, 1.7e308, 0.0], rate=noise.MAX_RATE) == 1
    assert noise.choose([5.0], rate=1) == 0
    with pytest.raises(InputError, match=r"2\*\*53"):
        noise.choose(np.array([np.iinfo(np.int64).min, 0]), rate=1)
    for bad in ([], [[1, 2]], [np.nan, 1.0], [np.inf], ["a"]):
        with pytest.raises(InputError, match=r"scores"):
            noise.choose(bad, rate=1)
