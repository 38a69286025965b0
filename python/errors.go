package python

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The kinds of Error.
const (
	ImportError    = "import"      // a module is missing, or fails while it is imported
	AttributeError = "attribute"   // a module or object lacks what a reference names
	SignatureError = "signature"   // a callable doesn't take what it would be given
	Exception      = "exception"   // the user's code raised an exception
	ResultError    = "result"      // the user's code returned what it can't
	ExitError      = "exit"        // a process ended
	TimeoutError   = "timeout"     // a call took too long; its process was killed
	OutputError    = "output"      // a process printed too much, and was killed
	StartError     = "interpreter" // the interpreter can't be started
)

// Error is what went wrong in the user's Python code, or with a process that ran it.
type Error struct {
	Kind      string `json:"kind"`
	Type      string `json:"type"` // the exception's class, "ValueError"; "" where there was no exception
	Message   string `json:"message"`
	Traceback string `json:"traceback"` // as Python prints it, without the helper's frames; "" where there is none
	Address   string `json:"address"`   // of the stage at fault, where the process knows better than its caller
	Index     *int   `json:"index"`     // of the sample, likewise
	Output    string `json:"-"`         // the last that the process printed, where it ended
}

// Error says in one line what went wrong. Detail has the rest.
func (e *Error) Error() string {
	if e.Type == "" {
		return e.Message
	}
	message := strings.Join(strings.Fields(e.Message), " ")
	if message == "" {
		return e.Type
	}
	const most = 1000
	if r := []rune(message); len(r) > most {
		message = string(r[:most]) + "…"
	}
	return e.Type + ": " + message
}

// Detail returns the lines that belong below the error: the traceback, or what the process printed last. It may be "".
func (e *Error) Detail() string {
	switch {
	case e.Traceback != "":
		return e.Traceback
	case e.Output != "":
		if last := lastLines(e.Output); last != "" {
			return "It printed last:\n" + last
		}
	}
	return ""
}

// ownFrame matches a line that Python prints of a frame of the helper's, or of importing it.
var ownFrame = regexp.MustCompile(`^ *File "([^"]*/pipectl_python/\w+\.py|[^"]*/importlib/__init__\.py|<frozen importlib[^"]*|<frozen zipimport>)", line \d+,? in |^ *File "<string>", line \d+ in <module>`)

// lastLines returns the end of what a process printed, as much of it as a reader can take in.
func lastLines(output string) string {
	const lines, width = 15, 160
	own := false
	list := slices.DeleteFunc(strings.Split(strings.TrimRight(output, "\n"), "\n"), func(line string) bool {
		own = ownFrame.MatchString(line) || own && strings.HasPrefix(line, "    ") // its source
		return own
	})
	list = list[max(len(list)-lines, 0):]
	for i, line := range list {
		if r := []rune(line); len(r) > width {
			list[i] = "…" + string(r[len(r)-width:])
		}
	}
	return strings.Join(list, "\n")
}

// parseReply stores what a reply of the helper holds in out, which may be nil, or returns the Error it holds.
func parseReply(body []byte, out any) error {
	if len(body) == 0 || body[0] != 'J' {
		return fmt.Errorf("the Python helper gave a malformed reply of %d bytes", len(body))
	}
	var reply struct {
		OK    json.RawMessage `json:"ok"`
		Error *Error          `json:"error"`
	}
	if err := json.Unmarshal(body[1:], &reply); err != nil {
		return fmt.Errorf("reading the Python helper's reply: %w", err)
	}
	if reply.Error != nil {
		return reply.Error
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(reply.OK, out); err != nil {
		return fmt.Errorf("reading the Python helper's reply: %w", err)
	}
	return nil
}
