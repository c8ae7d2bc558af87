"""Small spreadsheets for the tests, written by hand: .xlsx and .ods are zipped XML."""

from __future__ import annotations

import datetime
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

_TOP = '<?xml version="1.0" encoding="UTF-8"?>'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_MIME = "application/vnd.openxmlformats-officedocument.spreadsheetml"
EPOCH = datetime.datetime(1899, 12, 30)


def _cell(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, datetime.datetime):
        days = (value - EPOCH) / datetime.timedelta(days=1)
        return f'<c r="{place}" s="1"><v>{days!r}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{place}"><v>{value!r}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def write_xlsx(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    """A workbook; None is an empty cell, a datetime a number in the format of a date."""
    with zipfile.ZipFile(path, "w") as book:
        parts = [f"worksheets/sheet{i}.xml" for i in range(1, len(sheets) + 1)]
        kinds = "".join(f'<Override PartName="/xl/{p}" ContentType="{_MIME}.worksheet+xml"/>' for p in parts)
        book.writestr(
            "[Content_Types].xml",
            f'{_TOP}<Types xmlns="{_PACKAGE}/content-types">'
            f'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{_MIME}.sheet.main+xml"/>{kinds}</Types>',
        )
        book.writestr("_rels/.rels", _links([("officeDocument", "xl/workbook.xml")]))
        named = "".join(f'<sheet name={quoteattr(n)} sheetId="{i}" r:id="rId{i}"/>' for i, n in enumerate(sheets, 1))
        book.writestr(
            "xl/workbook.xml", f'{_TOP}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{named}</sheets></workbook>'
        )
        book.writestr("xl/_rels/workbook.xml.rels", _links([*(("worksheet", p) for p in parts), ("styles", "styles.xml")]))
        formats = '<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs>'
        book.writestr("xl/styles.xml", f'{_TOP}<styleSheet xmlns="{_MAIN}">{formats}</styleSheet>')
        for part, rows in zip(parts, sheets.values(), strict=True):
            written = [
                f'<row r="{i}">{"".join(_cell(f"{chr(65 + j)}{i}", v) for j, v in enumerate(row))}</row>'
                for i, row in enumerate(rows, 1)
            ]
            book.writestr(
                f"xl/{part}", f'{_TOP}<worksheet xmlns="{_MAIN}"><sheetData>{"".join(written)}</sheetData></worksheet>'
            )
    return path


def _links(targets: list[tuple[str, str]]) -> str:
    each = "".join(f'<Relationship Id="rId{i}" Type="{_OFFICE}/{k}" Target="{t}"/>' for i, (k, t) in enumerate(targets, 1))
    return f'{_TOP}<Relationships xmlns="{_PACKAGE}/relationships">{each}</Relationships>'


def write_ods(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    """The same as an OpenDocument sheet."""
    of = "urn:oasis:names:tc:opendocument:xmlns"

    def cell(value: Any) -> str:
        if value is None:
            return "<table:table-cell/>"
        if isinstance(value, bool):
            said = f'office:value-type="boolean" office:boolean-value="{str(value).lower()}"'
        elif isinstance(value, datetime.datetime):
            said = f'office:value-type="date" office:date-value="{value.isoformat()}"'
        elif isinstance(value, int | float):
            said = f'office:value-type="float" office:value="{value!r}"'
        else:
            said = 'office:value-type="string"'
        return f"<table:table-cell {said}><text:p>{escape(str(value))}</text:p></table:table-cell>"

    tables = "".join(
        f"<table:table table:name={quoteattr(name)}>"
        + "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
        + "</table:table>"
        for name, rows in sheets.items()
    )
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        kept = '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
        book.writestr(
            "META-INF/manifest.xml",
            f'{_TOP}<manifest:manifest xmlns:manifest="{of}:manifest:1.0">{kept}</manifest:manifest>',
        )
        book.writestr(
            "content.xml",
            f'{_TOP}<office:document-content xmlns:office="{of}:office:1.0" xmlns:table="{of}:table:1.0" '
            f'xmlns:text="{of}:text:1.0"><office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>'
            "</office:document-content>",
        )
    return path
