"""Where random bits come from: the operating system by default, a seed for experiments only.

`Secure` is AES-256 in counter mode keyed by the operating system. Each thread has its own key, and a forked child draws
a new one, so no two processes or threads ever see the same stream. `Seeded` is a reproducible Philox stream; whatever it
touches is marked *not private*.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Generator: TypeAlias = np.random.Generator  # what post-processing draws from
_REKEY_AFTER = 1 << 32  # bytes; far below the 2**68 at which counter blocks would repeat
_ZEROS = memoryview(bytes(1 << 20))
_SMALL = 1 << 10  # bytes that come straight from the operating system: a device that draws a few need not load a cipher
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Source(Protocol):
    """A stream of independent uniform 64-bit words."""

    @property
    def private(self) -> bool:
        """Whether a release drawn from it is private."""

    def words(self, n: int) -> NDArray[np.uint64]:
        """The next `n` words, in an array of their own."""

    def generator(self) -> Generator:
        """A NumPy generator for *post-processing* (sampling a table from a finished synopsis), never for noise."""


class Secure:
    """Cryptographic bits: AES-256-CTR keyed by the operating system, one stream per thread and process.

    As long as a thread has drawn little at a time, its bits are the operating system's own.

    >>> Secure().words(3).shape
    (3,)
    """

    private = True

    def __init__(self) -> None:
        self._local = threading.local()

    def _stream(self, wanted: int) -> Any:
        local = self._local
        # A forked child inherits the parent's cipher state: without this check both would add the same noise. The fork
        # counter sees a child whose pid is its parent's (pid 1 of a new container), the pid a fork outside Python.
        process = (os.getpid(), _forks)
        if getattr(local, "process", None) != process or local.used > _REKEY_AFTER:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

            local.stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
            local.process, local.used = process, 0
        local.used += wanted
        return local.stream

    def words(self, n: int) -> NDArray[np.uint64]:
        """The next `n` words."""
        size = 8 * n
        if size <= _SMALL and not hasattr(self._local, "process"):
            return np.frombuffer(bytearray(os.urandom(size)), dtype=np.uint64)
        stream = self._stream(size)
        buffer = bytearray(size + 15)  # update_into asks for one block of slack
        view = memoryview(buffer)
        for start in range(0, size, len(_ZEROS)):
            piece = min(len(_ZEROS), size - start)
            stream.update_into(_ZEROS[:piece], view[start : start + piece + 15])
        return np.frombuffer(buffer, dtype=np.uint64, count=n)

    def generator(self) -> Generator:
        """A NumPy generator for post-processing."""
        return np.random.Generator(np.random.Philox(key=int.from_bytes(os.urandom(16), "little")))

    def __repr__(self) -> str:
        return "Secure()"


class Seeded:
    """Reproducible bits for tests and experiments. Nothing drawn from it is private.

    Parameters
    ----------
    seed : int or SeedSequence

    Examples
    --------
    >>> Seeded(7).words(2).tolist() == Seeded(7).words(2).tolist()
    True
    >>> Seeded(7).private
    False
    """

    private = False

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        self.seed = seed
        self._bits = np.random.Philox(seed)

    def words(self, n: int) -> NDArray[np.uint64]:
        """The next `n` words."""
        return np.asarray(self._bits.random_raw(n), dtype=np.uint64)

    def generator(self) -> Generator:
        """A NumPy generator for post-processing."""
        return np.random.Generator(np.random.Philox(int(self.words(1)[0])))

    def __repr__(self) -> str:
        return f"Seeded({self.seed})"


SECURE = Secure()
"""The source that is used unless another one is given."""
