#!/usr/bin/python3
"""Trains small byte-pair encodings on corpus.txt (the beginning of "Alice's Adventures in Wonderland", 1865), writes their
files, and says what they make of some texts.

The library tokenizers isn't needed: ids are computed here by the definition of each step. Regular expressions are those
of the models, executed by the package regex, 2022.10.31: Debian 12's python3-regex.
"""
import json
import os
import random
import unicodedata
from collections import Counter

import regex

os.chdir(os.path.dirname(os.path.abspath(__file__)))
random.seed(6)

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
MODERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3, QWEN = MODERN % "{1,3}", MODERN % ""
upper, lower, ending = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{upper}*{lower}+{ending}|[^\r\n\p{{L}}\p{{N}}]?{upper}+{lower}*{ending}"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"

visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
hidden = [b for b in range(256) if b not in visible]
CHARS = {b: chr(b) for b in visible} | {b: chr(256 + i) for i, b in enumerate(hidden)}
byte_level = lambda word: [CHARS[b] for b in word.encode()]


def merge(symbols, pair, joined):
    out, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            out.append(joined)
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def train(words, alphabet, count):
    """Returns merges: again and again the most frequent pair, of several the first in the alphabet."""
    words, merges = [(list(w), n) for w, n in Counter(map(tuple, words)).items()], []
    for _ in range(count):
        pairs = Counter()
        for w, n in words:
            for pair in zip(w, w[1:]):
                pairs[pair] += n
        pair = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(pair)
        words = [(merge(w, pair, "".join(pair)), n) for w, n in words]
    vocab = {}
    for token in [*alphabet, *map("".join, merges)]:
        vocab.setdefault(token, len(vocab))
    return vocab, merges


def encode(symbols, vocab, merges):
    """Byte-pair encoding: the pair that was learnt first is merged everywhere, until there is none."""
    ranks = {pair: i for i, pair in enumerate(merges)}
    while True:
        pairs = [p for p in zip(symbols, symbols[1:]) if p in ranks]
        if not pairs:
            return symbols
        pair = min(pairs, key=ranks.get)
        symbols = merge(symbols, pair, "".join(pair))


corpus = open("corpus.txt").read()
alphabet = [CHARS[b] for b in [*visible, *hidden]]
texts = [
    "", " ", "Alice", "Alice was beginning to get very tired.", "  two  spaces\n\n\nlines \n x\t\ty \r\n", "don't DON'T we'Re it'll I'D they've 'tis",
    "naïve café Ⅷ ½ 12345 3.14159 ١٢٣", "日本語のテキスト。 한국어 русский язык", "🙂 family: 👨‍👩‍👧 flags: 🇫🇷", "<|end|>again<|end|> <|end|>", "x\u00a0y\u2003z\u2028w\u0085v",
    "e\u0301 \u1e9b\u0323 Å ﬁ İstanbul", "conversations? (remarkable); waistcoat-pocket", "a_b c__d e-f", "word" * 40, "the\u017f 'ſ", "tail  ",
]


def model(vocab, merges, **options):
    return {"type": "BPE", "vocab": vocab, "merges": [" ".join(m) for m in merges], **options}


def added(content, id, **options):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True, **options}


def split_added(text, tokens):
    """Yields the parts of text, and the ids of the added tokens between them."""
    while text:
        places = [(text.find(t["content"]), t) for t in tokens if t["content"] in text]
        if not places:
            yield text
            return
        at, t = min(places, key=lambda p: p[0])
        before, text = text[:at], text[at + len(t["content"]) :]
        if t["lstrip"]:
            before = before.rstrip()
        if t["rstrip"]:
            text = text.lstrip()
        if before:
            yield before
        yield t["id"]


def words_of(vocab, merges, words, symbols, whole=False):
    ids = []
    for word in words:
        split = symbols(word)
        if whole and "".join(split) in vocab:
            ids.append(vocab["".join(split)])
        else:
            ids += [vocab[s] for s in encode(split, vocab, merges)]
    return ids


expected = {}


def save(name, tokenizer, parts, before=(), after=()):
    """parts maps a text between added tokens to ids; the first argument says whether it is the beginning."""
    json.dump(tokenizer, open(name + ".json", "w"), ensure_ascii=False, separators=(",", ":"))
    expected[name] = []
    for text in texts:
        ids = []
        for part in split_added(text, tokenizer["added_tokens"]):
            ids += [part] if isinstance(part, int) else parts(part)
        expected[name].append([*before, *ids, *after])


# GPT-2's two files, and the same as tokenizer.json with a space before each text.
vocab, merges = train([byte_level(w) for w in regex.findall(GPT2, corpus)], alphabet, 250)
vocab["<|endoftext|>"] = len(vocab)
json.dump(vocab, open("vocab.json", "w"), ensure_ascii=False, separators=(",", ":"))
open("merges.txt", "w").write("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
expected["gpt2"] = [words_of(vocab, merges, regex.findall(GPT2, t), byte_level) for t in texts]
end = added("<|end|>", len(vocab))
save("prefix_space", {
    "added_tokens": [end], "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}, "model": model(vocab, merges),
}, lambda t: words_of(vocab, merges, regex.findall(GPT2, t if t[0] == " " else " " + t), byte_level))

# As Llama 3: words that are tokens stay whole, and a special token comes first.
vocab, merges = train([byte_level(w) for w in regex.findall(LLAMA3, corpus)], alphabet, 120)
vocab["conversations"] = len(vocab)
tokens = [added("<|begin|>", len(vocab)), added("<|end|>", len(vocab) + 1, lstrip=True)]
save("llama3", {
    "added_tokens": tokens, "normalizer": None,
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": LLAMA3}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
    "post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}, {
        "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|begin|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [], "special_tokens": {"<|begin|>": {"id": "<|begin|>", "ids": [tokens[0]["id"]], "tokens": ["<|begin|>"]}}}]},
    "model": model(vocab, merges, ignore_merges=True),
}, lambda t: words_of(vocab, merges, regex.findall(LLAMA3, t), byte_level, whole=True), before=[tokens[0]["id"]])

# As Qwen 2: NFC, digits one by one, merges as lists.
vocab2, merges2 = train([byte_level(w) for w in regex.findall(QWEN, corpus)], alphabet, 60)
qwen = model(vocab2, merges2)
qwen["merges"] = merges2
save("qwen2", {
    "added_tokens": [added("<|end|>", len(vocab2), normalized=True, special=False, rstrip=True)], "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": QWEN}, "behavior": "Removed", "invert": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]},
    "model": qwen,
}, lambda t: words_of(vocab2, merges2, regex.findall(QWEN, unicodedata.normalize("NFC", t)), byte_level))

# As CLIP: lower case, ends of words marked, two special tokens.
clip_symbols = lambda word: [*byte_level(word)[:-1], byte_level(word)[-1] + "</w>"]
clean = lambda t: "".join(c.lower() for c in regex.sub(r"\s+", " ", unicodedata.normalize("NFC", t)))
vocab3, merges3 = train([clip_symbols(w) for w in regex.findall(CLIP, clean(corpus))], alphabet + [a + "</w>" for a in alphabet], 60)
save("clip", {
    "added_tokens": [added("<|end|>", len(vocab3))],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, {"type": "Lowercase"}]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": CLIP}, "behavior": "Removed", "invert": True}, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}]},
    "post_processor": {"type": "RobertaProcessing", "sep": ["<|end|>", len(vocab3)], "cls": ["<|start|>", len(vocab3) + 1], "trim_offsets": False, "add_prefix_space": False},
    "model": model(vocab3, merges3, continuing_subword_prefix="", end_of_word_suffix="</w>"),
}, lambda t: words_of(vocab3, merges3, [w for p in regex.findall(CLIP, clean(t)) for w in regex.findall(GPT2, p)], clip_symbols), before=[len(vocab3) + 1], after=[len(vocab3)])

# As Llama 2: no pre-tokenizer, characters without a token as bytes.
marked = "▁" + corpus.replace(" ", "▁")
vocab4, merges4 = train([list(w) for w in regex.findall("▁?[^▁]+", marked)], ["<unk>", *(f"<0x{b:02X}>" for b in range(256)), *sorted(set(marked))], 60)
symbols4 = lambda text: [s for c in text for s in ([c] if c in vocab4 else [f"<0x{b:02X}>" for b in c.encode()])]
save("llama2", {
    "added_tokens": [added("<unk>", 0)],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
    "pre_tokenizer": None, "model": model(vocab4, merges4, unk_token="<unk>", fuse_unk=True, byte_fallback=True),
}, lambda t: words_of(vocab4, merges4, ["▁" + t.replace(" ", "▁")], symbols4))

# The pieces that the expressions split random texts into, as numbers of bytes.
some = "aZé日ßſǅ 5½٣Ⅷ  \t\n\r\u00a0\u2003\u2028\u0085'''stmdrevl.!_-¿💡\u0301\u200d"
splits = []
for _ in range(300):
    text = "".join(random.choices(some, k=random.randint(1, 14)))
    splits.append([text, *([len(w.encode()) for w in regex.findall(p, text)] for p in (GPT2, LLAMA3, QWEN, O200K))])

json.dump({"texts": texts, "ids": expected, "o200k": O200K, "splits": splits}, open("expected.json", "w"), ensure_ascii=False, separators=(",", ":"))
