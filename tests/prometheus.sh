#!/usr/bin/env bash
# Prints the folder of promtool and prometheus: those on the path, or Debian's, unpacked below target without being installed,
# so that no service starts.
set -euo pipefail
cd "$(dirname "$0")/.."

if command -v promtool prometheus >/dev/null; then
    dirname "$(command -v promtool)"
    exit
fi
folder=$PWD/target/prometheus
if [ ! -x "$folder/usr/bin/promtool" ]; then
    mkdir -p "$folder"
    (cd "$folder" && { apt-get download -q prometheus || { apt-get update -q && apt-get download -q prometheus; }; }) >&2
    dpkg -x "$folder"/prometheus_*.deb "$folder"
    rm "$folder"/prometheus_*.deb
fi
echo "$folder/usr/bin"
