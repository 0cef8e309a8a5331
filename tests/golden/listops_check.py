#!/usr/bin/env python3
"""Checks ListOps files in the public format against a second implementation.

usage: listops_check.py [--min LENGTH] [--max LENGTH] FILE.tsv...

Parses every source as binary pairs, `( left right )`, evaluates it, and compares with the target;
checks the header, min < length < max, and that no source comes twice in any of the files.
Pure Python 3. Exits 1 if anything is wrong.
"""

import argparse
import collections
import statistics
import sys

OPERATORS = {
    "[MIN": min,
    "[MAX": max,
    "[MED": lambda values: int(statistics.median(values)),
    "[SM": lambda values: sum(values) % 10,
}


class Malformed(Exception):
    pass


def pair(left, right):
    """The meaning of `( left right )`: an operator gathers values until `]` applies it."""
    if isinstance(left, str) and left in OPERATORS and isinstance(right, int):
        return (left, [right])
    if isinstance(left, tuple) and isinstance(right, int):
        left[1].append(right)
        return left
    if isinstance(left, tuple) and right == "]":
        return OPERATORS[left[0]](left[1])
    raise Malformed(f"a pair of {left!r} and {right!r}")


def evaluate(source):
    """The value of a source in binary form and its length without parentheses."""
    stack, length = [], 0
    for word in source.split(" "):
        if word == ")":
            if len(stack) < 3 or stack[-3] != "(":
                raise Malformed("a parenthesis that does not hold two parts")
            stack[-3:] = [pair(stack[-2], stack[-1])]
        elif word == "(":
            stack.append(word)
        elif word in OPERATORS or word == "]":
            stack.append(word)
            length += 1
        elif len(word) == 1 and word in "0123456789":
            stack.append(int(word))
            length += 1
        else:
            raise Malformed(f"the word {word!r}")
    if len(stack) != 1 or not isinstance(stack[0], int):
        raise Malformed("no single value at the end")
    return stack[0], length


def check_line(line, bounds, seen):
    """What is wrong with a line (or None), its value and its length."""
    source, tab, target = line.partition("\t")
    if not tab:
        return "no tab", None, 0
    try:
        value, length = evaluate(source)
    except Malformed as error:
        return f"malformed: {error}", None, 0
    if source in seen:
        return f"the same source as {seen[source]}", value, length
    if target != str(value):
        return f"the target is {target!r}, the value is {value}", value, length
    if not bounds[0] < length < bounds[1]:
        return f"length {length} is not between {bounds[0]} and {bounds[1]}", value, length
    return None, value, length


def check_file(path, bounds, seen):
    """Prints what is wrong and a summary; returns the number of wrong lines."""
    wrong, lengths, labels = 0, [], collections.Counter()
    with open(path, encoding="ascii", newline="") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\r\n")
            where = f"{path}:{number}"
            if number == 1:
                problem = None if line == "Source\tTarget" else f"the header is {line!r}"
            else:
                problem, value, length = check_line(line, bounds, seen)
                seen.setdefault(line.partition("\t")[0], where)
                lengths.append(length)
                labels[value] += 1
            if problem:
                wrong += 1
                print(f"{where}: {problem}")
    if not lengths:
        print(f"{path}: no examples")
        return wrong + 1
    shares = " ".join(f"{label}:{labels[label] / len(lengths):.1%}" for label in range(10))
    print(f"{path}: {len(lengths)} examples, {wrong} wrong, lengths {min(lengths)} to "
          f"{max(lengths)}, mean {statistics.mean(lengths):.1f}, labels {shares}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description="Checks ListOps files in the public format.")
    parser.add_argument("--min", type=int, default=500, help="lengths are above (500)")
    parser.add_argument("--max", type=int, default=2000, help="lengths are below (2000)")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    seen = {}
    wrong = sum(check_file(path, (options.min, options.max), seen) for path in options.files)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
