"""Where a request comes from, as far as counting goes."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Any


def counted_address(client: Any) -> str:
    """The address of a client, or for IPv6 its network: whoever has one address there has 2^64 of them.

    Parameters
    ----------
    client : (str, int) or None
        As ASGI tells it. Behind a proxy the server has put the client's address there.

    Examples
    --------
    >>> counted_address(("192.0.2.7", 5)), counted_address(("2001:db8:1:2:3::4", 5)), counted_address(None)
    ('192.0.2.7', '2001:db8:1:2::/64', 'unknown')
    """
    if not client:
        return "unknown"
    told = str(client[0])
    try:
        address = ip_address(told.partition("%")[0])
    except ValueError:
        return told
    if not isinstance(address, IPv6Address):
        return told
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> 64 << 64)}/64"
