#!/usr/bin/env python3
"""Counts the lines of a text file.

Arguments come as --name value, a boolean as --name alone when it is true, a list or object as JSON text
(type=json.loads); the answer goes to standard output.
"""
import argparse
import json
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", required=True)
    parser.add_argument("--words", action="store_true")
    parser.add_argument("--long", type=int, default=120)
    args = parser.parse_args()
    try:
        with open(args.file, encoding="utf-8", errors="replace") as f:
            text = f.read()
    except OSError as error:
        sys.exit(f"cannot read {args.file}: {error.strerror}")
    lines = text.splitlines()
    answer = {
        "lines": len(lines),
        "empty": sum(1 for line in lines if not line.strip()),
        "long": sum(1 for line in lines if len(line) >= args.long),
    }
    if args.words:
        answer["words"] = len(text.split())
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
