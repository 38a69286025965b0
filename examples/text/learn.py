"""Learns merges.txt from the book.

    python3 learn.py
"""
import collections
import re

from text import HERE, Documents, clean, merged


def learn(words, count):
    """The count most frequent pairs of neighbours, in turn, each merged in all words before the next is looked for."""
    split = {word: list(word) for word in words}
    for _ in range(count):
        pairs = collections.Counter()
        for word, pieces in split.items():
            for pair in zip(pieces, pieces[1:]):
                pairs[pair] += words[word]
        best = max(sorted(pairs), key=pairs.get)
        yield best
        for word, pieces in split.items():
            if best[0] in pieces:
                split[word] = merged(pieces, best)


if __name__ == "__main__":
    words = collections.Counter(re.findall(r"[a-z]+", " ".join(map(clean, Documents()))))
    (HERE / "merges.txt").write_text("".join(f"{left} {right}\n" for left, right in learn(words, 1000)))
