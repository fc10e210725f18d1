#!/bin/sh
# Counts the lines of a text file. Arguments come as --name value; the answer goes to standard output.
set -eu

file=
while [ $# -gt 0 ]; do
  case $1 in
    --file) file=$2; shift 2 ;;
    *) echo "unknown argument: $1" >&2; exit 2 ;;
  esac
done
[ -n "$file" ] || { echo '--file is missing' >&2; exit 2; }
[ -r "$file" ] || { echo "cannot read $file" >&2; exit 1; }

awk 'BEGIN { empty = 0 } /^[ \t\r]*$/ { empty++ } END { printf "{\"lines\": %d, \"empty\": %d}\n", NR, empty }' "$file"
