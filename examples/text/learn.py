"""Learns merges.txt from the book, and writes tokenizer.json, which has Hugging Face's library give the ids of text.py.

    python3 learn.py
"""
import collections
import json
import re

from text import HERE, Documents, Tokenizer, clean, merged


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


def described(tokenizer):
    """A tokenizer.json that cleans, splits and merges as text.py does."""
    replacements = ("Æ", "Ae"), ("æ", "ae"), ("_", "")
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "NFKD"},
            *({"type": "Replace", "pattern": {"String": old}, "content": new} for old, new in replacements),
            {"type": "Replace", "pattern": {"Regex": "[^\\t-\\r -~]"}, "content": ""},
            {"type": "Lowercase"},
        ]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "Punctuation", "behavior": "Isolated"}]},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", "vocab": {"<pad>": 0, **tokenizer.ids}, "merges": [" ".join(pair) for pair in tokenizer.merges]},
    }


if __name__ == "__main__":
    words = collections.Counter(re.findall(r"[a-z]+", " ".join(map(clean, Documents()))))
    (HERE / "merges.txt").write_text("".join(f"{left} {right}\n" for left, right in learn(words, 1000)))
    (HERE / "tokenizer.json").write_text(json.dumps(described(Tokenizer()), separators=(",", ":")) + "\n")
