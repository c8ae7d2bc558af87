"""Text tables (CSV, TSV), line by line: a line is a record, and what is malformed spoils its own line only.

No reader of whole files can promise that: a quote that opens and never closes takes all that follows into one value. Here
nothing is carried from one line to the next.

- A line ends with a line feed (a carriage return before it goes with it). An empty line is no record.
- Fields are parted by the delimiter; one that begins with a quote ends at its closing quote, ``""`` standing for a quote.
- A line with an unclosed quote, with text after a closing quote, with more or fewer fields than the header, or of more than
  16 MB is skipped. So a value cannot hold a line break.
- A value with a byte that is none of the encoding (UTF-8 unless said), or empty and not in quotes, is missing.

Most lines have no quotes, or all of theirs closed: those are gathered and parsed by Arrow, block by block, which gives the
same fields faster.
"""

from __future__ import annotations

import glob
import gzip
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from sfumato.errors import InputError
from sfumato.tables.csv_options import CsvOptions

BLOCK: Final = 1 << 24
MAX_LINE: Final = 1 << 24
MAX_HEADER: Final = 1 << 20

Fields = list[bytes | None]


def fields_of(line: bytes, delimiter: bytes, quote: bytes = b'"') -> Fields | None:
    """The fields of one line, None for one that is empty; None instead of all if the line is malformed.

    >>> fields_of(b'31,"a ""b"", c",,""', b",")
    [b'31', b'a "b", c', None, b'']
    >>> fields_of(b'31,"never closed', b",") is None
    True
    """
    found: Fields = []
    place = 0
    while True:
        if quote and line[place : place + 1] == quote:
            quoted = _quoted(quote).match(line, place)
            if quoted is None:
                return None
            found.append(quoted[1].replace(quote + quote, quote))
            end = quoted.end()
            if end < len(line) and line[end : end + 1] != delimiter:
                return None
        else:
            end = line.find(delimiter, place)
            end = len(line) if end < 0 else end
            found.append(line[place:end] or None)
        if end >= len(line):
            return found
        place = end + 1


@dataclass
class Lines:
    """A text table, possibly in several files with the same columns.

    Attributes
    ----------
    paths : list of str
    delimiter : bytes
    names : tuple of str
        The columns, from the first line of the first file.
    options : CsvOptions
        How the files are written.
    seen : Counter
        How many lines the last reading met: "records", and "malformed" ones, which were skipped. As private as the table.
    """

    paths: list[str]
    delimiter: bytes
    names: tuple[str, ...]
    options: CsvOptions
    seen: Counter[str] = field(default_factory=Counter)

    @classmethod
    def at(cls, path: str, options: CsvOptions | None = None) -> Lines:
        """The table at `path`, which may be a glob. Reads the first line of each file, which names the columns."""
        options = options or CsvOptions()
        paths = sorted(glob.glob(path)) or [path]
        delimiter = (options.delimiter or ("\t" if ".tsv" in Path(path).name else ",")).encode()
        headers = [_header(p, delimiter, options) for p in paths]
        for other, header in zip(paths, headers, strict=True):
            if set(header) != set(headers[0]):
                raise InputError(f"{other!r} does not have the columns of {paths[0]!r}; give the files one header")
        return cls(paths, delimiter, headers[0], options)

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Arrow record batches of text with some of the columns, in their order."""
        import pyarrow as pa

        self.seen.clear()
        schema = pa.schema([(name, pa.string()) for name in columns])
        for path in self.paths:
            names = _header(path, self.delimiter, self.options)
            wanted = [names.index(column) for column in columns]
            for block in _blocks(path, self.seen):
                for arrays in self._parsed(self.options.decoded(block), names, wanted):
                    self.seen["records"] += len(arrays[0])
                    yield pa.record_batch(arrays, schema=schema)

    def _parsed(self, block: bytes, names: tuple[str, ...], wanted: list[int]) -> Iterator[list[Any]]:
        block += b"\n"
        rows: list[Fields | None] = []
        quote = self.options.quote.encode()
        if (quote and quote in block) or block.count(b"\r") != block.count(b"\r\n"):
            closed = _closed(self.delimiter, quote)
            plain: list[bytes] = []
            quoted: list[bytes] = []
            odd: list[bytes] = []
            for line in block.split(b"\n"):
                if b"\r" in line[:-1]:
                    odd.append(line)
                elif not quote or quote not in line:
                    plain.append(line)
                else:
                    (quoted if closed.fullmatch(line) else odd).append(line)
            block = b"\n".join(plain)
            if quoted and (arrays := self._by_arrow(b"\n".join(quoted), len(names), wanted, self.options.quote)):
                yield arrays
            elif quoted:
                odd += quoted
            rows = [fields_of(line.removesuffix(b"\r"), self.delimiter, quote) for line in odd]
        if block.strip(b"\r\n"):
            arrays = self._by_arrow(block, len(names), wanted, False)
            if arrays is None:  # some line has another number of fields
                lines = [line for line in block.split(b"\n") if line.strip(b"\r")]
                whole = [line for line in lines if line.count(self.delimiter) == len(names) - 1]
                self.seen["malformed"] += len(lines) - len(whole)
                arrays = self._by_arrow(b"\n".join(whole), len(names), wanted, False) if whole else None
            if arrays is not None:
                yield arrays
        right = [row for row in rows if row is not None and len(row) == len(names)]
        self.seen["malformed"] += len(rows) - len(right)
        if right:
            yield [_text([row[j] for row in right]) for j in wanted]

    def _by_arrow(self, block: bytes, width: int, wanted: list[int], quote: str | bool) -> list[Any] | None:
        """The fields of lines in which Arrow can carry nothing over: without quotes, or with all of them closed.

        None if some line has not `width` fields.
        """
        import pyarrow as pa
        from pyarrow import csv

        names = [f"c{j}" for j in range(width)]
        read = csv.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False)
        parse = csv.ParseOptions(delimiter=self.delimiter.decode(), quote_char=quote, escape_char=False)
        convert = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            include_columns=[f"c{j}" for j in wanted],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            check_utf8=False,
        )
        try:
            table = csv.read_csv(pa.BufferReader(block), read, parse, convert)
        except pa.ArrowInvalid:
            return None
        return [_text(table[f"c{j}"]) for j in wanted]


@cache
def _quoted(quote: bytes) -> re.Pattern[bytes]:
    """A field in quotes."""
    q = re.escape(quote)
    return re.compile(q + rb"([^" + q + rb"]*(?:" + q + q + rb"[^" + q + rb"]*)*)" + q)


@cache
def _closed(delimiter: bytes, quote: bytes) -> re.Pattern[bytes]:
    """A line whose quotes stand around whole fields, and are all closed."""
    if not quote:
        return re.compile(rb"[^\r]*\r?")
    stop, q = re.escape(delimiter), re.escape(quote)
    one = rb"(?:" + q + rb"[^" + q + rb"]*(?:" + q + q + rb"[^" + q + rb"]*)*" + q + rb"|[^" + q + stop + rb"]*)"
    return re.compile(one + rb"(?:" + stop + one + rb")*\r?")


def _text(values: Any) -> Any:
    """Bytes as text, NULL where they are none."""
    import pyarrow as pa

    array = pa.array(values, pa.binary()) if isinstance(values, list) else values
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_decoded(v) for v in array.to_pylist()], pa.string())


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _opened(path: str) -> IO[bytes]:
    opener: Any = gzip.open if path.endswith(".gz") else open
    stream: IO[bytes] = opener(path, "rb")
    return stream


def _header(path: str, delimiter: bytes, options: CsvOptions) -> tuple[str, ...]:
    with _opened(path) as stream:
        raw = stream.readline(MAX_HEADER)
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path!r} is UTF-16, which cannot be read line by line; convert it: iconv -f utf-16 -t utf-8")
    line = options.decoded(raw)
    found = fields_of(line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n"), delimiter, options.quote.encode())
    names = tuple((name or b"").decode(errors="replace") for name in found or ())
    if not any(names):
        raise InputError(f"{path!r} has no header line; the first line must name the columns")
    if len(set(names)) < len(names):
        raise InputError(f"the first line of {path!r}, which must name the columns, has two that are the same; rename one")
    return names


def _blocks(path: str, seen: Counter[str]) -> Iterator[bytes]:
    """Whole lines without the header, in blocks; a line that is too long is left out."""
    with _opened(path) as stream:
        while (start := stream.readline(MAX_HEADER)) and not start.endswith(b"\n"):
            pass  # the header
        rest, lost = b"", False  # an unfinished line, and whether it is one that is too long
        while block := stream.read(BLOCK):
            end = block.rfind(b"\n")
            if end < 0:
                lost = lost or len(rest) + len(block) > MAX_LINE
                rest = b"" if lost else rest + block
                continue
            first = block.find(b"\n")
            if lost or len(rest) + first > MAX_LINE:
                seen["malformed"] += 1
                whole = block[first + 1 : end]
            else:
                whole = rest + block[:end]
            rest, lost = block[end + 1 :], False
            yield whole
        if lost:
            seen["malformed"] += 1
        elif rest:
            yield rest
