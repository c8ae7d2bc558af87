"""How a text table is written: the sign between fields, the quote, the encoding and the decimal sign.

Whatever is said here, a line stays a record and what is malformed spoils its own line only (`sfumato.tables.csv_lines`). So
an encoding is taken only if the byte of a line feed means a line feed wherever it stands: UTF-8, the encodings of one byte
per character, and those of East Asia in which no character holds that byte. In UTF-16 and UTF-32 one byte too many in a
record would shift all that follow, and in ISO-2022 a record can switch the alphabet of the next: those are refused.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sfumato.errors import InputError
from sfumato.tables.words import did_you_mean

_WIDE: Final = ("big5", "big5hkscs", "cp932", "cp949", "cp950", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "shift_jis")
_BAD: Final = "\udcff"  # half a character: no text holds it, so a value with it is missing
KEYS: Final = ("delimiter", "quote", "encoding", "decimal")

codecs.register_error("sfumato-one-byte", lambda error: (_BAD, error.start + 1))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class CsvOptions:
    """How a text table is written.

    Parameters
    ----------
    delimiter : str, optional
        The sign between fields: one ASCII character. A comma, or a tab in a ``.tsv`` file.
    quote : str
        The sign around fields that hold a delimiter; ``""`` if there is none.
    encoding : str
        "utf-8", an encoding of one byte per character such as "latin-1" and "cp1252", or one of East Asia.
    decimal : {".", ","}
        The decimal sign of columns that the schema takes for numbers. With a comma, a value with a point is no number.

    Examples
    --------
    >>> CsvOptions.of({"delimiter": ";", "encoding": "latin-1", "decimal": ","})
    CsvOptions(delimiter=';', quote='"', encoding='iso8859-1', decimal=',')
    >>> CsvOptions(encoding="utf-16")
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: csv encoding 'utf-16' cannot be read line by line: one byte too many in a record would
    change all that follow; convert the file first: iconv -f utf-16 -t utf-8
    """

    delimiter: str | None = None
    quote: str = '"'
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.delimiter is not None and not _is_sign(self.delimiter):
            raise InputError(
                f"csv delimiter is one sign such as ',', ';', '|' or a tab, not a letter or digit; got {self.delimiter!r}"
            )
        if self.quote != "" and not (_is_sign(self.quote) and self.quote not in "\t "):
            raise InputError(f"csv quote is one sign such as '\"', or '' if there is none; got {self.quote!r}")
        if self.quote and self.quote == (self.delimiter or ","):
            raise InputError(f"csv quote and delimiter are both {self.quote!r}; give one of them another sign")
        if self.decimal not in (".", ","):
            raise InputError(f"csv decimal is '.' or ',', the decimal sign; got {self.decimal!r}")
        object.__setattr__(self, "encoding", _encoding(self.encoding))

    @classmethod
    def of(cls, given: CsvOptions | Mapping[str, Any] | None, what: str = "csv") -> CsvOptions | None:
        """From `given`, the keys of a plan file or of a call, which `what` names in errors; None where nothing is said."""
        if given is None or isinstance(given, CsvOptions):
            return given
        if not isinstance(given, Mapping):
            raise InputError(f"{what} holds delimiter, quote, encoding and decimal, as {{delimiter = ';'}}; got {given!r}")
        for key in given:
            if key not in KEYS:
                raise InputError(f"{what} has an unknown key {key!r}; {did_you_mean(str(key), KEYS)}")
        return cls(**given)

    def decoded(self, block: bytes) -> bytes:
        """Whole lines, a `block` of them, as UTF-8; half a character where a byte is none of the encoding; line by line."""
        if self.encoding == "utf-8":
            return block
        if self.encoding in _WIDE:  # a character cut short must not take the line feed with it
            return b"\n".join(self._utf8(line) for line in block.split(b"\n"))
        return self._utf8(block)

    def _utf8(self, text: bytes) -> bytes:
        return text.decode(self.encoding, "sfumato-one-byte").encode("utf-8", "surrogatepass")


def _is_sign(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 1 and (text == "\t" or (" " <= text <= "~" and not text.isalnum()))


def _encoding(name: Any) -> str:
    try:
        found = codecs.lookup(name).name if isinstance(name, str) else ""
    except (LookupError, ValueError):
        found = ""
    if not found:
        raise InputError(f"csv encoding {name!r} is none that is known; use 'utf-8', 'latin-1' or 'cp1252'")
    if found in ("utf-8", "utf-8-sig", "ascii"):
        return "utf-8"
    if found in _WIDE or _one_byte(found):
        return found
    raise InputError(
        f"csv encoding {name!r} cannot be read line by line: one byte too many in a record would change all that follow; "
        f"convert the file first: iconv -f {found} -t utf-8"
    )


def _one_byte(encoding: str) -> bool:
    """Whether each byte is a character of its own, or none, and the first 128 are those of ASCII."""
    if not encoding.startswith(("iso8859", "cp", "koi8", "mac", "tis", "ptcp", "kz1048", "hp-roman8")):
        return False
    for byte in range(256):
        try:
            text = bytes([byte]).decode(encoding)
        except UnicodeDecodeError:
            text = None
        if (byte < 128 and text != chr(byte)) or (text is not None and len(text) != 1):
            return False
    try:  # of two bytes per character, none is one by itself from some byte on: then a pair decodes and a byte does not
        return all(len(bytes([byte, 65]).decode(encoding, "replace")) == 2 for byte in range(128, 256))
    except UnicodeError:
        return False
