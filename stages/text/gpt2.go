package text

import (
	"bytes"
	"fmt"
	"strings"
)

// endOfText separates GPT-2's documents.
const endOfText = "<|endoftext|>"

// parseGPT2 reads a vocabulary and merges as GPT-2's vocab.json and merges.txt hold them.
func parseGPT2(vocab, merges []byte) (*tokenizer, error) {
	m := &bpe{unknown: -1}
	if err := m.setVocab(vocab); err != nil {
		return nil, fmt.Errorf("reading vocab: %w", err)
	}
	var lines []mergeLine
	number := 0
	for text := range bytes.Lines(merges) {
		number++
		line := strings.TrimRight(string(text), "\r\n")
		if line == "" || number == 1 && strings.HasPrefix(line, "#version") {
			continue
		}
		var l mergeLine
		if err := l.parse(line); err != nil {
			return nil, fmt.Errorf("reading merges: line %d: %w", number, err)
		}
		lines = append(lines, l)
	}
	if err := m.setMerges(lines); err != nil {
		return nil, fmt.Errorf("reading merges: %w", err)
	}
	m.setBytes()
	t := &tokenizer{split: []preTokenizer{gptSplit{}}, model: m, normalized: new(addedTokens)}
	var added []addedToken
	if id, ok := m.vocab[endOfText]; ok {
		added = append(added, addedToken{ID: id, Content: endOfText})
	}
	t.raw = newAddedTokens(added)
	return t, nil
}
