#!/usr/bin/env python3
"""Counts the lines of a text file. Arguments come as --name value; the answer goes to standard output."""
import argparse
import json
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", required=True)
    args = parser.parse_args()
    try:
        with open(args.file, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
    except OSError as error:
        sys.exit(f"cannot read {args.file}: {error.strerror}")
    print(json.dumps({"lines": len(lines), "empty": sum(1 for line in lines if not line.strip())}))


if __name__ == "__main__":
    main()
