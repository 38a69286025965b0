package text

import (
	"regexp"
	"strings"
)

// The classes of Oniguruma, whose expressions tokenizer.json holds, where Go's have ASCII alone: as they stand in brackets.
const (
	spaceClass = `\t-\r\x{85}\p{Z}`
	wordChars  = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}`
	wordsAlone = `²³¹¼-¾` // what is a word's outside brackets too
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

// translate writes an expression of Oniguruma's for Go. It reports false for what only looks the same, such as boundaries,
// which know ASCII words alone, and possessive quantifiers; what Go doesn't know is left to its compiler.
func translate(expression string) (string, bool) {
	units := regexp.MustCompile(`\\[pP]\{\w+\}|\\.|\[\^?|&&|\(\?i?:|\(\??|\{\d*(?:,\d*)?\}|(?s:.)`).FindAllString(expression, -1)
	var out strings.Builder
	var folded []bool // whether case is ignored, for each open group
	brackets, before := 0, ""
	for i, unit := range units {
		switch {
		case len(unit) > 3 && unit[0] == '\\': // a property
			if len(folded) > 0 && folded[len(folded)-1] {
				return "", false // it isn't folded there
			}
		case len(unit) > 1 && unit[0] == '\\':
			var ok bool
			if unit, ok = escape(unit, brackets > 0); !ok {
				return "", false
			}
		case unit == "]" && brackets > 0:
			if brackets--; brackets > 0 {
				if before == "-" {
					return "", false
				}
				unit = ""
			}
		case unit[0] == '[':
			// A bracket that closes right away stands for itself. Brackets within brackets add to them, unless they are negated,
			// a class of POSIX or next to a hyphen, which would become a range.
			if next := append(units, "")[i+1]; next == "]" || brackets > 0 && (unit != "[" || next == ":" || next == "-" || before == "-") {
				return "", false
			}
			if brackets++; brackets > 1 {
				unit = ""
			}
		case brackets > 0:
			if unit == "&&" || unit == "-" && before == "]" {
				return "", false
			}
		case unit == "+" && quantifier(before), unit == "?" && strings.HasSuffix(before, "}") && !strings.Contains(before, ","):
			return "", false // possessive; optional as a whole
		case unit == "(" || unit == "(?:" || unit == "(?i:":
			folded = append(folded, unit == "(?i:" || len(folded) > 0 && folded[len(folded)-1])
		case unit == ")" && len(folded) > 0:
			folded = folded[:len(folded)-1]
		case unit == "(?" || unit == "^" || unit == "$" || strings.HasPrefix(unit, "{,"):
			return "", false // options differ and look-around isn't known; ends of lines there, of the text here; from 0 on there
		}
		out.WriteString(unit)
		before = units[i]
	}
	return out.String(), brackets == 0
}

// quantifier reports whether a unit of an expression says how often what is before it comes.
func quantifier(unit string) bool {
	return unit == "*" || unit == "+" || unit == "?" || len(unit) > 1 && unit[0] == '{'
}

// escape translates a backslash with the character that follows it.
func escape(unit string, brackets bool) (string, bool) {
	set, negated := "", false
	switch c := unit[1]; c {
	case 's', 'S':
		set, negated = spaceClass, c == 'S'
	case 'w', 'W':
		if set, negated = wordChars, c == 'W'; !brackets {
			set += wordsAlone
		}
	case 'd', 'D':
		set, negated = digitClass, c == 'D'
	case 'r', 'n', 't':
		return unit, true
	default:
		return unit, c < 0x80 && !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z')
	}
	switch {
	case brackets:
		return set, !negated
	case negated:
		return "[^" + set + "]", true
	}
	return "[" + set + "]", true
}
