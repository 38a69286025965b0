// Says what Hugging Face's library tokenizers makes of some texts, with the models of this folder and all kinds of parts of
// a tokenizer.json around them. It was run with npm's package tokenizers 0.23.2, the library's own binding, and Node.js 20:
//
//   npm install --prefix /tmp/hf tokenizers@0.23.2
//   node make_ids.mjs /tmp/hf
import fs from 'node:fs'
import { createRequire } from 'node:module'

const { Tokenizer } = createRequire(`${process.argv[2]}/`)('tokenizers')
const read = (name) => JSON.parse(fs.readFileSync(new URL(name, import.meta.url)))

const texts = [
  '', ' ', 'the', "  Two  spaces, don't WE'LL\n\n x\r\n\ty ", '<|x|> a <|x|>>word words sword É E\u0301\u212b<|x|>   x  <|x|>  ', 'abcdx Abcd a abc\u200dthe thethe',
  '½²x Ⅷ١٢३ 1234567', '日本語。한국어 العربية मानक', '👨‍👩‍👧🇫🇷👍🏽 ﬁ㎏ İßẞſ', '\u0000\u001f\u0085\u00a0\u2028\u200b\ufeff\uffff\u{e0001}\u{10ffff}',
  '▁ ▁▁Ġ<0x0A></s><s>', "a_b-c (d), [e]? e.g. 3.14 $1 x's'Sthe CamelCase", 'aaaaaaaaaaaaaaa!?!?',
]

const gpt4 = String.raw`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
const qwen3 = String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
const bloom = String.raw` ?[^(\s|[.,!?…。，、।۔،])]+`
const bytes = (prefix = false, regex = true) => ({ type: 'ByteLevel', add_prefix_space: prefix, trim_offsets: true, use_regex: regex })
const before = (...parts) => ({ pre_tokenizer: { type: 'Sequence', pretokenizers: [...parts, bytes(false, false)] } })
const split = (pattern, behavior = 'Isolated', invert = false) => ({ type: 'Split', pattern, behavior, invert })
const normalized = (...normalizers) => ({ normalizer: { type: 'Sequence', normalizers }, pre_tokenizer: bytes() })
const added = (id, content, options) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...options })
const metaspace = (options) => ({ pre_tokenizer: { type: 'Metaspace', replacement: '▁', ...options } })
const template = {
  type: 'TemplateProcessing', pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
  single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }, { SpecialToken: { id: '</s>', type_id: 0 } }],
  special_tokens: { '<s>': { id: '<s>', ids: [508, 3], tokens: ['<s>', '$'] }, '</s>': { id: '</s>', ids: [507], tokens: ['</s>'] } },
}
const ends = { sep: ['</s>', 507], cls: ['<s>', 508] }

const cases = []
// add adds a case: a model of this folder with some of its options, and the other parts of its file.
const add = (name, model, file, options = {}) => cases.push({ name, model, options, file: { added_tokens: [], ...file } })

for (const prefix of [false, true]) for (const regex of [false, true]) add(`ByteLevel ${prefix} ${regex}`, 'prefix_space', { pre_tokenizer: bytes(prefix, regex) })
for (const [name, regex] of Object.entries({ gpt4, qwen3, bloom })) add(name, 'prefix_space', before(split({ Regex: regex })))
for (const behavior of ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous']) {
  for (const invert of [false, true]) {
    add(`Split ${behavior} ${invert}`, 'prefix_space', before(split({ Regex: '[A-Za-z]?\\s*' }, behavior, invert)))
    add(`Split the ${behavior} ${invert}`, 'prefix_space', before(split({ String: 'the' }, behavior, invert)))
  }
}
for (const regex of ['(?i:the)', String.raw`[^\w\s]+`, String.raw`\W`, String.raw`\p{Lu}+`]) add(`Split ${regex}`, 'prefix_space', before(split({ Regex: regex }, 'Removed')))
for (const individual_digits of [false, true]) add(`Digits ${individual_digits}`, 'prefix_space', before({ type: 'Digits', individual_digits }))
for (const behavior of ['Removed', 'Isolated', 'Contiguous']) add(`Punctuation ${behavior}`, 'prefix_space', before({ type: 'Punctuation', behavior }))
for (const type of ['Whitespace', 'WhitespaceSplit']) add(type, 'prefix_space', before({ type }))
for (const type of ['NFC', 'NFD', 'NFKC', 'NFKD', 'Lowercase']) add(type, 'prefix_space', normalized({ type }))
add('Strip, Replace', 'prefix_space', normalized({ type: 'NFD' }, { type: 'StripAccents' }, { type: 'Strip', strip_left: true, strip_right: true },
  { type: 'Replace', pattern: { Regex: '\\s+|[b-d]' }, content: '$0' }, { type: 'Prepend', prepend: '_' }))

const llama = { type: 'Sequence', normalizers: [{ type: 'Prepend', prepend: '▁' }, { type: 'Replace', pattern: { String: ' ' }, content: '▁' }] }
const specials = [added(0, '<unk>'), added(360, '<s>'), added(361, '</s>'), added(362, 'word', { normalized: true })]
for (const options of [{}, { byte_fallback: false }, { byte_fallback: false, fuse_unk: false }, { ignore_merges: true }]) {
  add(`llama2 ${JSON.stringify(options)}`, 'llama2', { normalizer: llama, added_tokens: specials }, options)
}
for (const prepend_scheme of ['always', 'first', 'never']) {
  for (const split of [false, true]) add(`Metaspace ${prepend_scheme} ${split}`, 'llama2', { ...metaspace({ prepend_scheme, split }), added_tokens: specials })
}
add('Metaspace of words', 'llama2', { pre_tokenizer: { type: 'Sequence', pretokenizers: [{ type: 'WhitespaceSplit' }, metaspace({ prepend_scheme: 'first' }).pre_tokenizer] } })

for (const place of [{}, { lstrip: true }, { rstrip: true }, { single_word: true, lstrip: true }]) {
  for (const late of [false, true]) {
    const options = { ...place, normalized: late }
    add(`added ${JSON.stringify(options)}`, 'prefix_space', {
      normalizer: { type: 'Lowercase' }, pre_tokenizer: bytes(),
      added_tokens: ['<|x|>', '<|x|>>', 'word', '  ', 'É', 'Ab'].map((content, i) => added(507 + i, content, options)),
    })
  }
}
// Ids that aren't the next, contents that come twice, are in the vocabulary or overlap.
add('added ids', 'prefix_space', { pre_tokenizer: bytes(), added_tokens: [added(900, 'abc'), added(600, 'bcd'), added(507, 'abc', { lstrip: true }), added(508, 'É'), added(700, 'thet')] })

add('BertProcessing', 'prefix_space', { pre_tokenizer: bytes(), post_processor: { type: 'BertProcessing', ...ends } })
add('RobertaProcessing', 'prefix_space', { pre_tokenizer: bytes(true), post_processor: { type: 'RobertaProcessing', ...ends, trim_offsets: true, add_prefix_space: true } })
add('TemplateProcessing', 'prefix_space', { pre_tokenizer: bytes(), post_processor: { type: 'Sequence', processors: [bytes(), template] } })

// Words whose tokens within and at the end are marked.
const words = (prefix, suffix) => {
  const vocab = { '<unk>': 0 }, merges = []
  const token = (text) => (vocab[text] ??= Object.keys(vocab).length)
  for (const c of 'abcdehinorstwx ') for (const inner of ['', prefix]) for (const last of ['', suffix]) token(inner + c + last)
  const merge = (left, right) => { merges.push([left, right]); token(left + right.slice(prefix.length)) }
  merge('t', prefix + 'h'), merge('th', prefix + 'e'), merge('th', prefix + 'e' + suffix), merge(prefix + 'r', prefix + 'd'), merge(prefix + 'a', prefix + 'a')
  return { vocab, merges, unk_token: '<unk>', byte_fallback: false, continuing_subword_prefix: prefix, end_of_word_suffix: suffix }
}
for (const prefix of ['', '##']) {
  for (const suffix of ['', '</w>']) {
    for (const fuse_unk of [false, true]) add(`words ${prefix}${suffix} ${fuse_unk}`, 'llama2', { pre_tokenizer: { type: 'WhitespaceSplit' } }, { ...words(prefix, suffix), fuse_unk })
  }
}

for (const name of ['clip', 'llama2', 'llama3', 'prefix_space', 'qwen2']) {
  const { model, ...file } = read(`${name}.json`)
  add(name, name, file)
}

for (const c of cases) {
  const file = { version: '1.0', truncation: null, padding: null, normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null, ...c.file }
  const tokenizer = Tokenizer.fromString(JSON.stringify({ ...file, model: { ...read(`${c.model}.json`).model, ...c.options } }))
  c.ids = []
  for (const text of texts) c.ids.push((await tokenizer.encode(text)).getIds())
}
const lines = cases.map((c) => JSON.stringify(c)).join(',\n')
fs.writeFileSync(new URL('ids.json', import.meta.url), `{"texts":${JSON.stringify(texts)},"cases":[\n${lines}\n]}\n`)
