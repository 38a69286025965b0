package text

import (
	"regexp"
	"strings"
)

// The classes of Oniguruma, whose expressions tokenizer.json holds, where Go's have ASCII alone: as they stand in brackets.
const (
	spaceClass = `\t-\r\x{85}\p{Z}`
	wordChars  = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}\x{200C}\x{200D}`
	digitClass = `\p{Nd}`
)

// spacesAtEnd is what the expressions of GPT-2 and its successors end with: of white space before something else the last
// character isn't in the match, if there are several.
const spacesAtEnd = `|\s+(?!\S)|\s+`

// compile returns the expression of a pattern, where Go's package regexp can take it with the same meaning.
func (p *pattern) compile() (*regexp.Regexp, error) {
	switch {
	case p.Regex == nil && p.String == nil:
		return nil, unsupported("a pattern that is neither a String nor a Regex")
	case p.Regex == nil:
		return nil, unsupported("an empty pattern")
	}
	if expression, ok := translate(*p.Regex); ok {
		if re, err := regexp.Compile(expression); err == nil {
			return re, nil
		}
	}
	return nil, unsupported("the regular expression " + *p.Regex)
}

// translate writes an expression of Oniguruma's for Go. It reports false for what only looks the same: boundaries, which
// know ASCII words alone, nested brackets and possessive quantifiers; what Go doesn't know is left to its compiler.
func translate(expression string) (string, bool) {
	var out strings.Builder
	brackets := false
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case c == '\\' && i+1 < len(expression):
			i++
			escape := expression[i]
			set, negated := "", false
			switch escape {
			case 's':
				set = spaceClass
			case 'S':
				set, negated = spaceClass, true
			case 'w':
				set = wordChars
			case 'W':
				set, negated = wordChars, true
			case 'd':
				set = digitClass
			case 'D':
				set, negated = digitClass, true
			case 'r', 'n', 't', 'p', 'P':
				out.WriteString(expression[i-1 : i+1])
				continue
			default:
				if escape >= 0x80 || escape >= '0' && escape <= '9' || escape|0x20 >= 'a' && escape|0x20 <= 'z' {
					return "", false
				}
				out.WriteString(expression[i-1 : i+1])
				continue
			}
			switch {
			case brackets && negated:
				return "", false
			case brackets:
				out.WriteString(set)
			case negated:
				out.WriteString("[^" + set + "]")
			default:
				out.WriteString("[" + set + "]")
			}
			continue
		case brackets && (c == '[' || c == '&' && strings.HasPrefix(expression[i:], "&&")):
			return "", false
		case brackets && c == ']':
			brackets = false
		case !brackets && c == '[':
			brackets = true
			// A bracket that closes right away stands for itself.
			if rest := strings.TrimPrefix(expression[i+1:], "^"); strings.HasPrefix(rest, "]") {
				return "", false
			}
		case !brackets && c == '+' && i > 0 && strings.IndexByte("+*?}", expression[i-1]) >= 0 && !(i > 1 && expression[i-2] == '\\'):
			return "", false
		case !brackets && strings.HasPrefix(expression[i:], "(?") && !strings.HasPrefix(expression[i:], "(?:") && !strings.HasPrefix(expression[i:], "(?i:"):
			return "", false // options differ, and look-around isn't known
		case !brackets && (c == '^' || c == '$'):
			return "", false // ends of lines there, of the text here
		}
		out.WriteByte(c)
	}
	return out.String(), true
}
