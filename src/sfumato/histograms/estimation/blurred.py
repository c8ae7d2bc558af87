"""A count with a normal prior, seen through Laplace noise: how likely the noisy count is, and what to make of it.

With ``y = x + L``, x normal with mean m and deviation t, L Laplace with scale s, and ``d = y - m``, the density of y is
``(A + B) exp(t² / 2s²) / 2s`` where ``A = exp(-d/s) Φ(d/t - t/s)`` and ``B = exp(d/s) Φ(-d/t - t/s)``. Its derivative in m
is that of its logarithm by Stein's identity: the posterior mean of x is ``m + (t²/s) (A - B) / (A + B)``.
"""

from __future__ import annotations

import numpy as np

from sfumato.histograms.budgets import Floats


def log_normal_share(x: Floats) -> Floats:
    """The logarithm of the normal distribution function, also far out.

    >>> log_normal_share(np.array([0.0, -40.0])).round(3).tolist()
    [-0.693, -804.608]
    """
    from scipy.special import log_ndtr  # slow to import: not before it is needed

    return np.asarray(log_ndtr(x))


def seen_through_noise(apart: Floats, spread: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Log-density of a noisy count `apart` from the prior's mean, and by how much the posterior mean leaves that mean.

    Shapes are broadcast; `spread` is the prior's deviation, `scale` that of the noise.

    >>> near, far = seen_through_noise(np.array([0.0, 50.0]), np.array(2.0), np.array(1.0))[1]
    >>> float(near), bool(3.9 < far <= 4.0)  # the noise has longer tails: what is far off is mostly noise
    (0.0, True)
    """
    up = log_normal_share(apart / spread - spread / scale) - apart / scale
    down = log_normal_share(-apart / spread - spread / scale) + apart / scale
    top = np.maximum(up, down)
    a, b = np.exp(up - top), np.exp(down - top)
    density = top + np.log(a + b) + (spread / scale) ** 2 / 2 - np.log(2 * scale)
    return density, spread**2 / scale * (a - b) / (a + b)
