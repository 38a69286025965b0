package sources

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// mostShards is how many names the braces of one pattern may stand for.
const mostShards = 1 << 20

// expandBraces replaces each pattern by the names that its braces stand for, as bash does: {a,b} is each of a list, {000..127} and
// {0..126..2} are each of a range of numbers. Braces that hold neither are part of the name, and so are those of a file that there is.
func expandBraces(patterns []stages.Path) ([]stages.Path, error) {
	var names []stages.Path
	for _, p := range patterns {
		if strings.Contains(string(p), "{") && exists(string(p)) {
			names = append(names, p)
			continue
		}
		list, err := braces(string(p))
		if err != nil {
			return nil, fmt.Errorf("the pattern %s stands for %w", storage.Redacted(string(p)), err)
		}
		for _, name := range list {
			names = append(names, stages.Path(name))
		}
	}
	return names, nil
}

var errTooMany = fmt.Errorf("more than %d names", mostShards)

func braces(s string) ([]string, error) {
	for open := strings.IndexByte(s, '{'); open >= 0; {
		choices, rest, err := alternatives(s[open+1:])
		if err != nil {
			return nil, err
		}
		if choices != nil {
			tails, err := braces(rest)
			if err != nil || len(choices)*len(tails) > mostShards {
				return nil, errTooMany
			}
			var names []string
			for _, choice := range choices {
				heads, err := braces(choice)
				if err != nil || len(names)+len(heads)*len(tails) > mostShards {
					return nil, errTooMany
				}
				for _, head := range heads {
					for _, tail := range tails {
						names = append(names, s[:open]+head+tail)
					}
				}
			}
			return names, nil
		}
		next := strings.IndexByte(s[open+1:], '{')
		if next < 0 {
			break
		}
		open += 1 + next
	}
	return []string{s}, nil
}

// alternatives reads what follows an opening brace: what the braces may stand for, nil if nothing, and what comes after them.
func alternatives(s string) (choices []string, rest string, err error) {
	depth, start := 0, 0
	for i, c := range []byte(s) {
		switch {
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == ',' && depth == 0:
			choices = append(choices, s[start:i])
			start = i + 1
		case c == '}':
			rest = s[i+1:]
			if choices != nil {
				return append(choices, s[start:i]), rest, nil
			}
			choices, err = numbers(s[:i])
			return choices, rest, err
		}
	}
	return nil, "", nil
}

// numbers returns the numbers of a range, "first..last" or "first..last..step", with as many digits as the longer of its ends where one
// of them starts with a zero; nil if it is none.
func numbers(s string) ([]string, error) {
	parts := strings.Split(s, "..")
	if len(parts) != 2 && len(parts) != 3 {
		return nil, nil
	}
	var values [3]int
	width := 0
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return nil, nil
		}
		values[i] = n
		if i < 2 && len(p) > 1 && p[0] == '0' {
			width = max(len(parts[0]), len(parts[1]))
		}
	}
	first, last, step := values[0], values[1], max(values[2], 1)
	down := last < first
	count := (max(first, last) - min(first, last)) / step
	if count >= mostShards {
		return nil, errTooMany
	}
	list := make([]string, count+1)
	for i := range list {
		n := first + i*step
		if down {
			n = first - i*step
		}
		list[i] = fmt.Sprintf("%0*d", width, n)
	}
	return list, nil
}
