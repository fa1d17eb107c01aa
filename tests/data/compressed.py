"""Makes compressed.lz4.arrows and compressed.zstd.arrows, messages that Arrow itself compressed (pyarrow 26)."""

import pathlib

import pyarrow as pa

rows = 100
table = pa.record_batch(
    {
        "time": pa.array(range(rows), pa.timestamp("us", "UTC")),
        "key": pa.array(["EWR"] * rows),
        "unit": pa.array(range(rows)),
        "x": pa.array([1.5] * rows),
        "y": pa.array([2] * rows, pa.int32()),
    }
)
for codec in ["lz4", "zstd"]:
    options = pa.ipc.IpcWriteOptions(compression=codec)
    path = pathlib.Path(__file__).with_name(f"compressed.{codec}.arrows")
    with pa.ipc.new_stream(str(path), table.schema, options=options) as writer:
        writer.write(table)
