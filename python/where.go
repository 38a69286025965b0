package python

import "strings"

// withoutHelper returns what a process printed without the frames, in stacks that Python's faulthandler printed, of this helper and of
// what calls it, and without the stacks of threads that none of the helper's frames is in.
func withoutHelper(printed string) string {
	var out, stack []string
	helper, other := false, false
	end := func() {
		if !other || helper {
			out = append(out, stack...)
		}
		stack, helper, other = nil, false, false
	}
	inStack := false
	for line := range strings.Lines(printed) {
		head := strings.HasSuffix(line, "(most recent call first):\n")
		switch {
		case head:
			end()
			inStack, other = true, strings.HasPrefix(line, "Thread ")
			stack = append(stack, line)
		case inStack && (strings.HasPrefix(line, "  File ") || strings.HasPrefix(line, "  ...")):
			helper = helper || strings.Contains(line, "/pipectl_python/")
			if !helper {
				stack = append(stack, line)
			}
		default:
			end()
			inStack = false
			out = append(out, line)
		}
	}
	end()
	return strings.TrimRight(strings.Join(out, ""), "\n")
}
