"""A synopsis as an Arrow IPC stream with one row, or one for each key, as in a topic or a file. Needs pyarrow."""

from __future__ import annotations

import struct
from datetime import datetime, timezone
from typing import Any, Union

import numpy as np

from .arrays import Array
from .description import check
from .document import parse
from .errors import SynopsisError
from .forms import Keys
from .found_keys import with_rows
from .keys import parts_of_key, unpacked, with_keys

Bytes = Union[bytes, bytearray, memoryview, Any]

#: The key of the schema metadata that holds the description as JSON.
METADATA_KEY = b"bernstream"
_SCHEMA, _BATCH = 1, 3
_NO_STREAM = "not a synopsis: it is not an Arrow IPC stream, or cut short"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def open_stream(source: Bytes) -> tuple[dict[str, Any], Array]:
    """The description and the values of a message. The bytes may be hostile."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("synopses as Arrow need pyarrow: pip install pyarrow") from error
    bytes_ = memoryview(source).cast("B").tobytes()
    _check_framing(bytes_)
    try:
        with pa.ipc.open_stream(pa.py_buffer(bytes_)) as reader:
            schema, table = reader.schema, reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError) as error:
        raise SynopsisError(f"not a synopsis: its Arrow stream cannot be read: {error}") from None
    if METADATA_KEY not in (schema.metadata or {}):
        raise SynopsisError(f"not a synopsis: its schema has no metadata '{METADATA_KEY.decode()}'")
    document = parse(schema.metadata[METADATA_KEY])
    if isinstance(basis := document.get("basis"), dict) and isinstance(basis.get("keys"), dict):
        return _key_table(document, table, pa)
    about = check(document)
    points = about.basis.count(len(about.axes))
    expected = _expected(pa, [("lattice_values", pa.list_(pa.float64(), points), False)])
    _check_columns(schema, expected, pa)
    if table.num_rows != 1 or any(table.column(name).null_count for name, _, nullable in expected if not nullable):
        raise SynopsisError("not a synopsis: it does not have exactly one row")
    micros = [_micros(at) for at in about.window]
    row = [table.column(name)[0] for name in ("window_start", "window_end", "key", "sequence")]
    if [row[0].value, row[1].value, row[2].as_py(), row[3].as_py()] != [
        *micros,
        about.key,
        document["ledger"]["sequence"],
    ]:
        raise SynopsisError("not a synopsis: its columns and its description disagree")
    column = table.column("lattice_values").chunk(0)
    values = getattr(column, "storage", column).flatten()
    if values.null_count:
        raise SynopsisError("not a synopsis: a lattice value is missing")
    return document, np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def _expected(pa: Any, values: list[tuple[str, Any, bool]], parts: tuple[str, ...] = ()) -> list[tuple[str, Any, bool]]:
    """Name, type and nullability of each column, those of the values last."""
    time = pa.timestamp("us", tz="UTC")
    own = [("window_start", time, False), ("window_end", time, False), ("key", pa.string(), True)]
    of_parts = [(name, pa.string(), False) for name in parts]
    return [*own, ("sequence", pa.uint64(), False), *of_parts, *values]


def _check_columns(schema: Any, expected: list[tuple[str, Any, bool]], pa: Any) -> None:
    # Tensors are an extension type if pyarrow supports them, and otherwise a list.
    found = [(field.name, getattr(field.type, "storage_type", field.type), field.nullable) for field in schema]
    if [(name, _plain(kind, pa), nullable) for name, kind, nullable in found] != expected:
        raise SynopsisError("not a synopsis: its columns are not those of a synopsis")


def _key_table(document: dict[str, Any], table: Any, pa: Any) -> tuple[dict[str, Any], Array]:
    """The description with the keys of the rows, and the values of one column after the other."""
    if "key" not in table.column_names or not pa.types.is_string(table.schema.field("key").type):
        raise SynopsisError("not a synopsis: its columns are not those of a table by key")
    if any(column.null_count for column in table.columns):
        raise SynopsisError("not a synopsis: a number or a key is missing")
    document, told = unpacked(with_rows(with_keys(document, table.column("key").to_pylist()), table, pa))
    about = check(document)
    assert isinstance(about.basis, Keys)
    values = [(column.statistic, pa.float64(), False) for column in about.basis.columns]
    of_found = [] if about.basis.found is None else [("new", pa.bool_(), False), ("until", pa.timestamp("us", tz="UTC"), False)]
    _check_columns(table.schema, _expected(pa, [*values, *of_found], about.key_columns), pa)
    each = [parts_of_key(key, about.key_columns) for key in about.basis.keys]
    for place, name in enumerate(about.key_columns):
        if table.column(name).to_pylist() != [parts[place] for parts in each]:
            raise SynopsisError("not a synopsis: its columns and its description disagree")
    start, end = (_micros(at) for at in about.window)
    same = {"window_start": start, "window_end": end, "sequence": document["ledger"]["sequence"]}
    for name, expected in same.items():
        column = table.column(name)
        numbers = column if name == "sequence" else column.cast(pa.int64())
        if not np.all(numbers.to_numpy() == expected):
            raise SynopsisError("not a synopsis: its columns and its description disagree")
    columns = [table.column(name).to_numpy() for name, *_ in values]
    if len(told) != about.basis.count(0) - about.basis.table or not np.all(np.isfinite(told)):
        raise SynopsisError("not a synopsis: its numbers of units are not those of its bins")
    return document, np.array(np.concatenate([*columns, told]), dtype=np.float64)


def _plain(kind: Any, pa: Any) -> Any:
    """A fixed-size list regardless of whether its items are declared nullable: nulls are checked separately."""
    return pa.list_(kind.value_type, kind.list_size) if pa.types.is_fixed_size_list(kind) else kind


def _micros(at: datetime) -> int:
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _check_framing(source: bytes) -> None:
    """A schema, one uncompressed batch, the end mark, nothing else."""
    rest = source
    for expected in (_SCHEMA, _BATCH):
        header, rest = _frame(rest)
        try:
            kind, body, is_compressed = _message(header)
        except (struct.error, IndexError):
            raise SynopsisError("not a synopsis: its Arrow framing is broken") from None
        if kind != expected:
            raise SynopsisError("not a synopsis: its Arrow stream has something else where its batch belongs")
        if is_compressed:
            raise SynopsisError("not a synopsis: its Arrow stream is compressed, which synopses never are")
        if not 0 <= body <= len(rest):
            raise SynopsisError("not a synopsis: it is cut short or its lengths are wrong")
        rest = rest[body:]
    if _frame(rest) != (b"", b""):
        raise SynopsisError("not a synopsis: its Arrow stream has more than one batch")


def _frame(source: bytes) -> tuple[bytes, bytes]:
    """Splits off one message header; the end mark is an empty one."""
    if len(source) < 8 or source[:4] != b"\xff\xff\xff\xff":
        raise SynopsisError(_NO_STREAM)
    (length,) = struct.unpack_from("<i", source, 4)
    if not 0 <= length <= len(source) - 8:
        raise SynopsisError(_NO_STREAM)
    return source[8 : 8 + length], source[8 + length :]


def _message(header: bytes) -> tuple[int, int, bool]:
    """Kind, length of the body and whether it is compressed, from the flatbuffer of a message."""

    def field(table: int, number: int) -> int:
        """The position of a field of a table; 0 if it is absent."""
        vtable = table - _at(header, "<i", table)
        size = _at(header, "<H", vtable)
        offset = _at(header, "<H", vtable + 4 + 2 * number) if 4 + 2 * number < size else 0
        return table + offset if offset else 0

    message = _at(header, "<I", 0)
    kind_at, header_at, body_at = field(message, 1), field(message, 2), field(message, 3)
    kind = _at(header, "<B", kind_at) if kind_at else 0
    body = _at(header, "<q", body_at) if body_at else 0
    inner = header_at + _at(header, "<I", header_at)
    return kind, body, kind == _BATCH and field(inner, 3) != 0


def _at(header: bytes, form: str, place: int) -> int:
    if place < 0:
        raise IndexError(place)
    return int(struct.unpack_from(form, header, place)[0])
