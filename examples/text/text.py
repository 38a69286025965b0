"""Tokenises a book by byte-pair encoding and counts which token follows which: a bigram model. The standard library is enough.

    python3 text.py
"""
import collections
import functools
import math
import random
import re
import string
import time
import unicodedata
from pathlib import Path

HERE = Path(__file__).resolve().parent
LENGTH = 128  # tokens of a sample
PAD = 0


class Documents:
    """The pages of a book, read from its file as they are asked for."""

    def __init__(self, book="opticks.txt", lines=16):
        self.book = HERE / book
        starts = [0]
        with open(self.book, "rb") as file:
            while any([file.readline() for _ in range(lines)]):
                starts.append(file.tell())
        self.pages = list(zip(starts, starts[1:]))

    def __len__(self):
        return len(self.pages)

    def __getitem__(self, index):
        start, end = self.pages[index]
        with open(self.book, "rb") as file:
            file.seek(start)
            return file.read(end - start).decode()


def clean(text):
    """Plain letters in lower case, without the marks of italics."""
    letters = unicodedata.normalize("NFKD", text).replace("Æ", "Ae").replace("æ", "ae").replace("_", "")
    return re.sub(r"\s+", " ", letters.encode("ascii", "ignore").decode().lower())


class Tokenizer:
    """Byte-pair encoding (Sennrich, Haddow and Birch, 2016) of each word by the merges of a file, most frequent first."""

    def __init__(self, merges="merges.txt"):
        self.merges = [tuple(line.split()) for line in (HERE / merges).read_text().splitlines()]
        pieces = list(string.printable) + [left + right for left, right in self.merges]
        self.ids = {piece: number for number, piece in enumerate(pieces, PAD + 1)}

    @property
    def ranks(self):
        return {pair: rank for rank, pair in enumerate(self.merges)}

    def __call__(self, text):
        return [self.ids[piece] for word in re.findall(r"\w+|[^\w\s]", text) for piece in self.split(word)]

    def split(self, word):
        ranks = self.ranks
        pieces = list(word)
        while len(pieces) > 1:
            best = min(zip(pieces, pieces[1:]), key=lambda pair: ranks.get(pair, len(ranks)))
            if best not in ranks:
                break
            pieces = merged(pieces, best)
        return pieces


def merged(pieces, pair):
    """The pieces with each occurrence of the pair made one."""
    result = []
    for piece in pieces:
        if result and (result[-1], piece) == pair:
            result[-1] += piece
        else:
            result.append(piece)
    return result


class CachedTokenizer(Tokenizer):
    """The fix: the table of ranks is made once, not for every word."""

    ranks = functools.cached_property(Tokenizer.ranks.fget)


def window(tokens):
    """A random stretch of LENGTH tokens, or all if there are fewer."""
    start = random.randrange(max(1, len(tokens) - LENGTH + 1))
    return tokens[start:start + LENGTH]


def pad(samples):
    """A batch: the samples, filled up to the length of the longest."""
    longest = max(map(len, samples))
    return [sample + [PAD] * (longest - len(sample)) for sample in samples]


class Bigrams:
    """A model of which token follows which. A step returns the batch's mean loss before it learns from it."""

    def __init__(self):
        self.pairs, self.firsts = collections.Counter(), collections.Counter()

    def __call__(self, batch):
        pairs = [pair for sample in batch for pair in zip(sample, sample[1:]) if PAD not in pair]
        loss = -sum(math.log((self.pairs[pair] + 1) / (self.firsts[pair[0]] + 1000)) for pair in pairs) / len(pairs)
        self.pairs.update(pairs)
        self.firsts.update(first for first, _ in pairs)
        return loss


class DenseBigrams(Bigrams):
    """The same on a batch of pipectl's own stages: an array of samples × LENGTH tokens, and labels."""

    def __call__(self, batch):
        tokens, _ = batch
        return super().__call__(tokens.tolist())


def main(epochs=4, size=8):
    for tokenizer in Tokenizer(), CachedTokenizer():
        documents, step = Documents(), Bigrams()
        start = time.perf_counter()
        for _ in range(epochs):
            order = random.sample(range(len(documents)), len(documents))
            for first in range(0, len(order), size):
                loss = step(pad([window(tokenizer(clean(documents[i]))) for i in order[first:first + size]]))
        elapsed = time.perf_counter() - start
        print(f"{type(tokenizer).__name__}: {epochs * len(documents) / elapsed:.0f} samples/s, loss {loss:.2f}")


if __name__ == "__main__":
    main()
