#!/bin/sh
# Counts the lines of a text file. Arguments come as --name value, a boolean as --name alone when it is true, a list or
# object as JSON text; the answer goes to standard output.
set -eu

file= words=no long=120
while [ $# -gt 0 ]; do
  case $1 in
    --file) file=$2; shift 2 ;;
    --words) words=yes; shift ;;
    --long) long=$2; shift 2 ;;
    *) echo "unknown argument: $1" >&2; exit 2 ;;
  esac
done
[ -n "$file" ] || { echo '--file is missing' >&2; exit 2; }
[ -r "$file" ] || { echo "cannot read $file" >&2; exit 1; }

awk -v words="$words" -v long="$long" '
/^[ \t\r]*$/ { empty++ }
length($0) >= long + 0 { many++ }
{ n += NF }
END {
  printf "{\"lines\": %d, \"empty\": %d, \"long\": %d", NR, empty, many
  if (words == "yes") printf ", \"words\": %d", n
  print "}"
}' "$file"
