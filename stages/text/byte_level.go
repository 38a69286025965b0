package text

// setBytes finds the tokens of single bytes for a byte-level model, as GPT-2 brought them in: in the vocabulary a byte is the
// character that Latin-1 has there, if that is a visible one, or else a character from U+0100 on, in order.
func (m *bpe) setBytes() {
	m.byteLevel = true
	next := rune(0x100)
	for b := range m.chars {
		if b > ' ' && b < 0x7F || b > 0xA0 && b != 0xAD {
			m.chars[b] = rune(b)
		} else {
			m.chars[b] = next
			next++
		}
		for inner, prefix := range [2]string{"", m.prefix} {
			for last, suffix := range [2]string{"", m.suffix} {
				token, ok := m.vocab[prefix+string(m.chars[b])+suffix]
				if !ok {
					token = -1
				}
				m.bytes[inner][last][b] = token
			}
		}
	}
}
