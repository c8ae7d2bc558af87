"""Mutants of noise, prices, the Meter and budgets."""

from __future__ import annotations

from .model import Mutant

LAW = ("tests/privacy/test_noise_law.py", "tests/privacy/test_noise_exact.py")
METER = ("tests/privacy/test_meter.py", "tests/privacy/test_meter_brute_force.py", "src/sfumato/privacy/meter.py")
EXACT = ("tests/privacy/test_exact.py",)
ONE = ("tests/privacy/test_one_meter_one_limit.py",)
UNITS = ("tests/privacy/test_units_and_budgets.py", "src/sfumato/privacy/units.py", "src/sfumato/privacy/budgets.py")
LOSS = ("tests/privacy/test_loss.py", "src/sfumato/privacy/losses.py", *METER)

MUTANTS = (
    Mutant("margin-zero", "float64 decides draws it cannot decide", "privacy/noise.py", "_FAST_MARGIN = 2.0**-14", "_FAST_MARGIN = 0.0", LAW),
    Mutant("margin-of-a-draw-zero", "the second margin is gone", "privacy/noise.py", "    margin = (minus_log * _RELATIVE + _ABSOLUTE + 1.0 / f) * scale\n    minus_log *= scale", "    margin = 0 * scale\n    minus_log *= scale", LAW),
    Mutant("zero-twice", "zero comes up twice as often as it should", "privacy/noise.py", "    if rejected.size:\n        out[rejected]", "    if False:\n        out[rejected]", LAW),
    Mutant("noise-on-one-side", "the sign of the noise is known", "privacy/noise.py", "    minus = words >> 63  #", "    minus = words * 0  #", LAW),
    Mutant("scale-too-small", "the noise is half as wide", "privacy/noise.py", "    low = np.divide(-NANO, rates)", "    low = np.divide(-NANO, 2 * rates)", LAW),
    Mutant("choice-without-noise", "the best candidate always wins", "privacy/noise.py", "    value = shifted + minus_log\n", "    value = shifted + 0 * minus_log\n", (*LAW, "tests/testing/test_replay_meter.py")),
    Mutant("choice-at-twice-the-rate", "a choice loses twice its price", "privacy/noise.py", "(real - real.max()) * (rate / NANO)", "(real - real.max()) * (2 * rate / NANO)", (*LAW, "tests/testing/test_replay_meter.py")),
    Mutant("sample-keeps-more", "a sample keeps more than its price says", "privacy/noise.py", "np.count_nonzero(words < limit)", "np.count_nonzero(words < limit + limit // np.uint64(4))", LAW),
    Mutant("geometric-half", "the noise of a partition is half as wide", "privacy/noise.py", "    return _geometric(u, checked.reshape(-1), source).reshape(checked.shape)", "    return _geometric(u, 2 * checked.reshape(-1), source).reshape(checked.shape)", (*LAW, "tests/privacy/test_partition_price.py", "tests/audit/test_audit_power.py::test_expected_evidence_is_what_comes")),
    Mutant("sphere-half", "noise on a model is half as long", "privacy/noise.py", "    norm = -np.log(uniform[2 * half :]).sum() / beta", "    norm = -np.log(uniform[2 * half :]).sum() / (2 * beta)", LAW),
    Mutant("coordinates-half", "noise per coefficient is half as wide", "privacy/noise.py", "* -np.log(uniform) / rate", "* -np.log(uniform) / (2 * rate)", LAW),
    Mutant("same-stream-after-fork", "two processes add the same noise", "privacy/source.py", "process = (os.getpid(), _forks)", "process = (0, 0)", ("tests/privacy/test_source.py",)),
    Mutant("one-key-for-ever", "the cipher is never given a new key", "privacy/source.py", " or local.used > _REKEY_AFTER:", ":", ("tests/privacy/test_source.py",)),
    Mutant("seeded-is-private", "noise from a seed counts as private", "privacy/source.py", "    private = False\n\n    def __init__(self, seed", "    private = True\n\n    def __init__(self, seed", ("tests/privacy/test_source.py", *METER)),
    Mutant("histogram-priced-by-mean", "the price is not that of the worst bin", "privacy/pricing.py", "            return Nano(int(rates.max(initial=0)))", "            return Nano(int(rates.mean()) if rates.size else 0)", METER),
    Mutant("all-priced-as-one", "a record that moves all coordinates pays for one", "privacy/pricing.py", "        return Nano(sum(rates.reshape(-1).tolist()))", "        return Nano(int(rates.max()))", METER),
    Mutant("matrix-priced-by-first-row", "the price is not that of the worst item", "privacy/pricing.py", "        return int((matrix.astype(np.int64, copy=False) @ rates).max())", "        return int((matrix.astype(np.int64, copy=False) @ rates)[0])", (*METER, "src/sfumato/privacy/pricing.py")),
    Mutant("factor-forgotten", "rows per person and replacement cost nothing", "privacy/pricing.py", "groups.astype(np.int64) * (unit * factor)", "groups.astype(np.int64) * unit", METER),
    Mutant("attributes-without-factor", "attributes forget rows per person", "privacy/pricing.py", "        nano[parties.groups + j] = heaviest * part * factor", "        nano[parties.groups + j] = heaviest * part", METER),
    Mutant("negative-touches", "a negative entry lowers the price", "privacy/pricing.py", " or matrix.size == 0 or int(matrix.min()) < 0:", " or matrix.size == 0:", METER),
    Mutant("partition-half-price", "as in the authors' code of DAWA", "privacy/partition.py", "    return max(int(r) * (int(m) + top) for", "    return max(int(r) * top for", ("tests/privacy/test_partition_price.py", "src/sfumato/privacy/partition.py")),
    Mutant("rows-per-person-not-priced", "several rows cost as much as one", "privacy/meter.py", "        factor = self.rows_per_person * (2 if doubled", "        factor = 1 * (2 if doubled", METER),
    Mutant("replacement-not-doubled", "a replaced record costs as much as a missing one", "privacy/meter.py", " * (2 if doubled and self.neighbours == \"replacement\" else 1)", "", METER),
    Mutant("value-before-price", "the value is computed before its price is accepted", "privacy/meter.py", "        rates = noise.check_rates(rate)\n        charged = self._pay(self._noise_price(rates, weights, touches, attributes), label, \"laplace\")\n        exact = as_int64(self._open_for_noise(values))", "        rates = noise.check_rates(rate)\n        exact = as_int64(self._open_for_noise(values))\n        charged = self._pay(self._noise_price(rates, weights, touches, attributes), label, \"laplace\")", (*METER, *EXACT)),
    Mutant("choice-rounded-down", "the price of a choice is cut to whole nano-ε", "privacy/losses.py", "    up = np.ceil(product)\n", "    up = np.floor(product)\n", LOSS),
    Mutant("price-not-widened", "a float price may lie below the true one", "privacy/losses.py", "    return np.ceil(values * _WIDEN).astype(np.int64)", "    return np.floor(values).astype(np.int64)", LOSS),
    Mutant("sampling-for-free", "a sample loses its probability times the loss", "privacy/losses.py", "    small = np.log1p(probability * np.expm1(np.minimum(loss, 700.0)))", "    small = probability * np.minimum(loss, 700.0)", LOSS),
    Mutant("jacobian-forgotten", "objective perturbation without its second term", "privacy/losses.py", "    return ceil_nano((moves * w * beta + np.log1p(curvature * w / penalty)) * NANO)", "    return ceil_nano((moves * w * beta) * NANO)", LOSS),
    Mutant("replacement-moves-once", "replacing a row in an objective costs as much as blanking it", "privacy/losses.py", "ceil_nano((moves * w * beta", "ceil_nano((1 * w * beta", LOSS),
    Mutant("limit-not-checked", "a Meter spends beyond its limit", "privacy/account.py", "            if party is not None:\n", "            if False:\n", METER),
    Mutant("limit-of-open-blocks", "what an open branch has spent is forgotten by the limit", "privacy/account.py", "            after = self.total(price)\n", "            after = price\n", (*METER, "tests/privacy/test_loss.py")),
    Mutant("parallel-forgets", "a branch that closes takes its loss with it", "privacy/account.py", "        self._blocks[-1].spent = self._blocks[-1].join(inner.seen_from_outside(inner.spent))", "        pass", METER),
    Mutant("everything-parallel", "calls in sequence take the maximum", "privacy/loss.py", "        return Loss(self.nano + later.nano)", "        return Loss(np.maximum(self.nano, later.nano))", METER),
    Mutant("call-outside-a-branch", "a call beside the branches is forgotten by their maximum", "privacy/account.py", "        if self._blocks[-1].kind == \"parallel\":", "        if False:", METER),
    Mutant("sample-never-drawn", "a call in a sampled block sees everybody", "privacy/account.py", "        if not all(block.drawn for block in self._blocks):", "        if False:", METER),
    Mutant("not-made-of-the-sample", "an exact value gets the price of a sample", "privacy/account.py", "        if any(block.kind == \"sampled\" and block.number not in samples for block in self._blocks):", "        if False:", EXACT),
    Mutant("forked-meter", "a forked Meter spends the same limit again", "privacy/account.py", "        if os.getpid() != self._process:", "        if False:", ONE),
    Mutant("copied-meter", "a copied Meter spends the same limit again", "privacy/composition.py", "    def __copy__(self) -> NoReturn:", "    def copied(self) -> NoReturn:", ONE),
    Mutant("pickled-meter", "a stored Meter spends the same limit again", "privacy/composition.py", "    def __reduce_ex__(self, _protocol: Any) -> NoReturn:", "    def reduced(self, _protocol: Any) -> NoReturn:", ONE),
    Mutant("levels-are-no-limit", "people lose more than they granted", "privacy/composition.py", "    if parties.budgets is not None:\n        np.minimum", "    if False:\n        np.minimum", METER),
    Mutant("more-rows-than-priced", "a table with several rows per person is priced for one", "privacy/composition.py", "        if value.rows_per_person > self.rows_per_person:", "        if False:", EXACT),
    Mutant("unsound-is-accepted", "a mechanism known to be unsound runs with real noise", "privacy/composition.py", "        if self._source.private:\n            raise", "        if False:\n            raise", METER),
    Mutant("replacement-sampled", "sampling is priced against replacement as against absence", "privacy/composition.py", "        if self.neighbours != \"absence\":\n            raise", "        if False:\n            raise", METER),
    Mutant("failure-tells-its-kind", "an error inside a private value reaches the caller", "privacy/exact.py", "        value = make(tell) if tell else _quietly(make)", "        value = make(tell)", EXACT),
    Mutant("private-index", "a private value may index a private value", "privacy/exact.py", "        if isinstance(index, Exact) or (isinstance(index, tuple) and any(isinstance(i, Exact) for i in index)):", "        if False:", EXACT),
    Mutant("zip-forgets-rows", "a zipped value forgets how many rows a person owns", "privacy/exact.py", "            rows_per_person=max(e.rows_per_person for e in everything),", "            rows_per_person=self.rows_per_person,", EXACT),
    Mutant("zip-forgets-samples", "a zipped value forgets its samples", "privacy/exact.py", "            samples=frozenset[int]().union(*(e.samples for e in everything)),", "            samples=frozenset(),", EXACT),
    Mutant("grants-rounded-up", "a budget is rounded up", "privacy/units.py", "    return Nano(int(_fraction(epsilon, what) * NANO // 1))", "    return Nano(int(-(-_fraction(epsilon, what) * NANO // 1)))", UNITS),
    Mutant("costs-rounded-down", "a cost is rounded down", "privacy/units.py", "    return Nano(int(-(-_fraction(epsilon, what) * NANO // 1)))", "    return Nano(int(_fraction(epsilon, what) * NANO // 1))", UNITS),
    Mutant("column-budgets-rounded-up", "budgets of a column are rounded up", "privacy/units.py", "    return (nearest - (nearest / NANO > values)).astype(np.int64)", "    return np.ceil(values * NANO).astype(np.int64)", UNITS),
    Mutant("column-budgets-to-the-nearest", "budgets of a column are rounded to the nearest", "privacy/units.py", "    return (nearest - (nearest / NANO > values)).astype(np.int64)", "    return nearest.astype(np.int64)", UNITS),
    Mutant("share-rounded-up", "a share of a budget is rounded up", "privacy/budgets.py", "    return np.asarray(whole * top + rest * top // bottom)", "    return np.asarray(whole * top - (-rest * top // bottom))", UNITS),
    Mutant("levels-rounded-up", "decimals of a roster are rounded up", "privacy/budgets.py", "values // step * step, values)", "-(-values // step) * step, values)", UNITS),
    Mutant("charge-cuts-fractions", "a charge of 0.9 nano-ε is cut to nothing", "privacy/charge.py", "    if given.size and given.dtype.kind not in \"iu\":", "    if False:", ("tests/privacy", "tests/ledger/test_ledger_spending.py")),
    Mutant("share-of-attributes-unchecked", "a charge inside its total may pass an attribute's limit", "privacy/charge.py", "        return all(self.attributes.get(name, self.total) <= value for name, value in limit.attributes.items())", "        return True", ("tests/privacy", "src/sfumato/privacy/charge.py")),
    Mutant("sum-wraps-around", "a sum at the end of 64 bits wraps to the other end", "privacy/integers.py", "    return np.where(wrapped, np.where(noise > 0, _INT64.max, _INT64.min), total)", "    return total", ("tests/privacy/test_meter.py", "src/sfumato/privacy/integers.py")),
    Mutant("unsigned-wraps-around", "an unsigned count above 2^63 becomes negative", "privacy/integers.py", "        exact = np.minimum(exact, np.uint64(_INT64.max))", "        pass", ("tests/privacy/test_meter.py", "src/sfumato/privacy/integers.py")),
    Mutant("stream-parts-forgotten", "a part of a stream is noised as if it were the whole", "privacy/items.py", "rates // parts, {\"parts\": parts}", "rates, {\"parts\": parts}", ("tests/attributes/test_attribute_streams.py", "tests/testing/test_replay_meter.py")),
    Mutant("forked-stream", "a paid stream is drawn from in a fork", "privacy/items.py", "        meter._account.require_here()\n", "", ONE),
    Mutant("history-of-a-person", "a whole person is priced as one item", "privacy/items.py", "    if meter.neighbours != \"item\":", "    if False:", ("tests/privacy", "tests/attributes/test_attribute_streams.py")),
)
