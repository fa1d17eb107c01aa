"""Rows for SQL: synopses as a growing folder of Parquet files. ``python -m bernstream.parquet out rows``."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any, Optional, Union
from urllib.parse import quote

from .collection import Collection, open, start_of
from .errors import SynopsisError
from .synopsis import Synopsis


def append(synopses: Collection, folder: Union[str, os.PathLike[str]], points: Optional[int] = None) -> int:
    """Writes a Parquet file for each synopsis that the folder does not have yet, and says how many. Needs pyarrow.

    A file is at ``folder/RELEASE/WINDOW-DIGEST.parquet`` and has the columns of :class:`Collection`. It appears whole or not at
    all, and is never changed, so readers can go on; run it again whenever there is more. Moments have no points: skipped.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("writing Parquet needs pyarrow: pip install pyarrow") from error
    written = 0
    for one in synopses:
        if one.kind == "moments":
            continue
        path = Path(folder) / _name(one)
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        columns: dict[str, Any] = Collection([one]).columns(points)
        time = pa.timestamp("us", tz="UTC")
        kinds = dict.fromkeys(("release", "key"), pa.string())
        kinds.update(dict.fromkeys(("time", "window_start", "window_end"), time))
        if one.kind == "counts":
            kinds.update(dict.fromkeys(one.key_table().key_columns, pa.string()))
            kinds.update(new=pa.bool_(), until=time)
        table = pa.table({name: pa.array(of, kinds.get(name, pa.float64())) for name, of in columns.items()})
        # A name that no reader takes for a file of rows, until it is whole.
        unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
        parquet.write_table(table, unfinished)
        os.replace(unfinished, path)
        written += 1
    return written


def _name(one: Synopsis) -> Path:
    """A safe name, the same for every copy of a message. Releases come from outside: one that is '..' stays a name."""
    release = quote(one.release, safe=" ").replace(".", "%2E")
    own = json.dumps([one.meta["pipeline"], one.key, one.meta["window"]["end"], dict(one.meta["ledger"])], sort_keys=True)
    digest = hashlib.sha256(own.encode()).hexdigest()[:12]
    return Path(release) / f"{start_of(one):%Y-%m-%dT%H%M%SZ}-{digest}.parquet"


def main(arguments: Optional[list[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bernstream.parquet", description="Appends rows of synopses to Parquet files."
    )
    parser.add_argument("source", help="a folder of synopses, or with --brokers a topic")
    parser.add_argument("folder", help="where the Parquet files are, or will be")
    parser.add_argument("--brokers", help="such as localhost:9092")
    parser.add_argument("--points", type=int, help="even points per axis; by default 101, 51 or 21, on one to three axes")
    given = parser.parse_args(arguments)
    try:
        synopses = open(given.source, given.brokers)
        written = append(synopses, given.folder, given.points)
    except (SynopsisError, ImportError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{written} of {len(synopses)} synopses were new in {given.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
