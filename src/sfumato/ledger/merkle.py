"""Merkle trees as in RFC 9162 (Certificate Transparency 2.0, section 2.1), with SHA-256. Pure: hashes in, hashes out.

What is hashed begins with the byte 0 for a leaf and 1 for a node, so no leaf can be passed off as a node. The tree over n
leaves splits them at the largest power of two below n; the hash of the whole commits to every leaf, to its place and to n.

*Inclusion*: the hashes of the subtrees beside the way from a leaf to the root. Who has the leaf, its index, n and the root
computes the root from them; with another leaf at that index they would have to find a collision of SHA-256.

*Consistency*: the hashes from which both the root over the first m leaves and the root over n >= m leaves are computed. If
both come out, the first m leaves of the longer tree are those of the shorter one: nothing was changed, left out or put in.

Proofs are made from *perfect* subtrees, those of 2^level leaves that begin at a multiple of 2^level. A log that keeps these
(one new one per leaf on average) makes any proof from O(log n) of them; see `sfumato.ledger.log`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

SIZE = 32
Node = tuple[int, int]  # level, index: the leaves from index * 2**level on, 2**level of them
Span = tuple[int, int]  # first leaf, and the one after the last
EMPTY = hashlib.sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf."""
    return hashlib.sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash over two subtrees."""
    return hashlib.sha256(b"\1" + left + right).digest()


def completed(number: int, leaf: bytes, left_of: Callable[[Node], bytes]) -> list[bytes]:
    """The perfect subtrees, smallest first, that the leaf `number` completes; `left_of` gives one that was there before.

    >>> completed(0, leaf_hash(b"a"), {}.get), completed(2, leaf_hash(b"c"), {}.get)
    ([], [])
    """
    found, now, level = [], leaf, 0
    while number >> level & 1:
        now = node_hash(left_of((level, (number >> level) - 1)), now)
        level += 1
        found.append(now)
    return found


def needed_to_append(number: int) -> list[Node]:
    """The perfect subtrees that `completed` asks for.

    >>> needed_to_append(3), needed_to_append(4)
    ([(0, 2), (1, 0)], [])
    """
    level, found = 0, []
    while number >> level & 1:
        found.append((level, (number >> level) - 1))
        level += 1
    return found


def nodes_of(span: Span) -> list[Node]:
    """The perfect subtrees of which a subtree of the tree is made, from left to right.

    >>> nodes_of((0, 7)), nodes_of((4, 6))
    ([(2, 0), (1, 2), (0, 6)], [(1, 2)])
    """
    start, end = span
    found = []
    while start < end:
        level = (end - start).bit_length() - 1
        found.append((level, start >> level))
        start += 1 << level
    return found


def folded(hashes: Sequence[bytes]) -> bytes:
    """The hash of a subtree, from those of its perfect parts."""
    if not hashes:
        return EMPTY
    now = hashes[-1]
    for left in reversed(hashes[:-1]):
        now = node_hash(left, now)
    return now


def inclusion_spans(index: int, size: int) -> list[Span]:
    """The subtrees whose hashes prove that the leaf `index` is in a tree of `size` leaves, from below (PATH of the RFC)."""
    if not 0 <= index < size:
        raise ValueError("no such leaf")
    start, end, found = 0, size, []
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            found.append((middle, end))
            end = middle
        else:
            found.append((start, middle))
            start = middle
    return found[::-1]


def consistency_spans(old: int, new: int) -> list[Span]:
    """The subtrees whose hashes prove that the tree of `old` leaves is the beginning of that of `new` (PROOF of the RFC)."""
    if not 0 <= old <= new:
        raise ValueError("a tree only grows")
    if old in (0, new):  # every tree begins with the empty one, and with itself
        return []
    start, end, found, whole = 0, new, [], True
    while end != old:
        middle = start + _split(end - start)
        if old <= middle:
            found.append((middle, end))
            end = middle
        else:
            found.append((start, middle))
            start, whole = middle, False
    if not whole:
        found.append((start, end))
    return found[::-1]


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


def included(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether a path leads from a leaf to the root (RFC 9162, 2.1.3.2).

    >>> a, b = leaf_hash(b"a"), leaf_hash(b"b")
    >>> included(a, 0, 2, [b], node_hash(a, b)), included(a, 1, 2, [b], node_hash(a, b))
    (True, False)
    """
    if not 0 <= index < size or any(len(part) != SIZE for part in (leaf, root, *path)):
        return False
    first, last, now = index, size - 1, leaf
    for part in path:
        if last == 0:
            return False
        if first & 1 or first == last:
            now = node_hash(part, now)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            now = node_hash(now, part)
        first, last = first >> 1, last >> 1
    return last == 0 and now == root


def consistent(old: int, old_root: bytes, new: int, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Whether the tree of `old` leaves is the beginning of that of `new` (RFC 9162, 2.1.4.2)."""
    if not 0 <= old <= new or any(len(part) != SIZE for part in (old_root, new_root, *path)):
        return False
    if old == 0:
        return old_root == EMPTY and not path
    if old == new:
        return old_root == new_root and not path
    parts = list(path)
    if old & (old - 1) == 0:  # a perfect tree is its own first part
        parts.insert(0, old_root)
    if not parts:
        return False
    first, last = old - 1, new - 1
    while first & 1:
        first, last = first >> 1, last >> 1
    before = after = parts[0]
    for part in parts[1:]:
        if last == 0:
            return False
        if first & 1 or first == last:
            before, after = node_hash(part, before), node_hash(part, after)
            while not first & 1 and first:
                first, last = first >> 1, last >> 1
        else:
            after = node_hash(after, part)
        first, last = first >> 1, last >> 1
    return last == 0 and before == old_root and after == new_root
