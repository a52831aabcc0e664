#!/bin/sh
# The most frequent words of the files named, or of standard input.
set -eu
cat -- "$@" |
  tr -cs '[:alpha:]' '\n' |
  tr '[:upper:]' '[:lower:]' |
  sort | uniq -c | sort -rn | head -n "${TOP:-20}" |
  awk '{ printf "%6d  %s\n", $1, $2 }'
