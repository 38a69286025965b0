// Package diag shows HCL diagnostics: as text with the source line and a caret under the subject, and as JSON values.
package diag

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Address is the address of the block that a diagnostic is about, such as "prepare.decode". It is put in a diagnostic's
// Extra.
type Address string

// Sort orders diagnostics by file and position, those without a subject first. Equal ones keep their order.
func Sort(diags hcl.Diagnostics) {
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		switch {
		case a.Subject == nil && b.Subject == nil:
			return 0
		case a.Subject == nil:
			return -1
		case b.Subject == nil:
			return 1
		}
		return cmp.Or(
			cmp.Compare(a.Subject.Filename, b.Subject.Filename),
			cmp.Compare(a.Subject.Start.Byte, b.Subject.Start.Byte),
		)
	})
}

func severity(d *hcl.Diagnostic) string {
	if d.Severity == hcl.DiagWarning {
		return "warning"
	}
	return "error"
}

func address(d *hcl.Diagnostic) string {
	a, _ := hcl.DiagnosticExtra[Address](d)
	return string(a)
}

// sorted returns a sorted copy.
func sorted(diags hcl.Diagnostics) hcl.Diagnostics {
	diags = slices.Clone(diags)
	Sort(diags)
	return diags
}

// line is a line of source, without its end, and the byte of the file at which it starts.
type line struct {
	text  string
	start int
}

// lines returns the source lines that r touches, with secrets masked, or none where src doesn't reach that far.
func lines(src []byte, r hcl.Range) []line {
	if src == nil || r.Start.Byte < 0 || r.Start.Byte > r.End.Byte || r.End.Byte > len(src) {
		return nil
	}
	start := bytes.LastIndexByte(src[:r.Start.Byte], '\n') + 1
	var all []line
	for {
		text, _, more := bytes.Cut(src[start:], []byte("\n"))
		all = append(all, line{mask(strings.TrimSuffix(string(text), "\r")), start})
		start += len(text) + 1
		if !more || start >= r.End.Byte {
			return all
		}
	}
}
