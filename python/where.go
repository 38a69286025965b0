package python

import "strings"

const (
	stackHead     = "(most recent call first):\n" // of Python's faulthandler
	tracebackHead = "Traceback (most recent call last):\n"
)

// withoutHelper returns what a process printed without what says nothing of the user's code: in the stacks that Python's faulthandler
// prints, the frames of this helper and of what calls it, and the threads that none of the helper's frames is in; the list of modules
// behind them; and tracebacks of the thread through which workers hand over memory, where one is killed meanwhile.
func withoutHelper(printed string) string {
	var out []string
	lines := strings.SplitAfter(printed, "\n")
	for len(lines) > 0 {
		line := lines[0]
		lines = lines[1:]
		switch {
		case strings.HasSuffix(line, stackHead):
			n := indented(lines)
			own := n
			for i, frame := range lines[:n] {
				if strings.Contains(frame, "/pipectl_python/") {
					own = i
					break
				}
			}
			if own < n || !strings.HasPrefix(line, "Thread ") {
				out = append(append(out, line), lines[:own]...)
			}
			lines = lines[n:]
		case line == tracebackHead && len(lines) > 0 && strings.Contains(lines[0], "/multiprocessing/resource_sharer.py"):
			n := indented(lines)
			lines = lines[min(n+1, len(lines)):] // the exception, too
		case !strings.HasPrefix(line, "Extension modules: "):
			out = append(out, line)
		}
	}
	return strings.TrimRight(strings.Join(out, ""), "\n")
}

// indented returns how many lines from the first on are indented.
func indented(lines []string) int {
	for i, line := range lines {
		if !strings.HasPrefix(line, "  ") {
			return i
		}
	}
	return len(lines)
}
