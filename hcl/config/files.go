package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const (
	extension     = ".hcl"
	varsExtension = ".vars.hcl"      // values, not experiments
	autoExtension = ".auto.vars.hcl" // values that are read without being asked for
	varsFile      = "pipectl.vars.hcl"
)

// Limits that keep a hostile or mistaken file from exhausting the parser's stack or the memory.
const (
	maxFileSize  = 256 << 10
	maxNesting   = 100
	maxOperators = 10000
	maxExponent  = 308
)

// readFiles reads the experiment files of o.Path.
func (l *loader) readFiles() {
	if l.Path == "" {
		l.Path = "."
	}
	names := []string{l.Path}
	info, err := os.Stat(l.Path)
	switch {
	case err != nil:
		l.partial = true
		l.unreadable(l.Path, err)
		return
	case info.IsDir():
		if names, err = list(l.Path); err != nil {
			l.partial = true
			l.unreadable(l.Path, err)
			return
		}
		names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, varsExtension) })
		if len(names) == 0 {
			l.partial = true
			l.report(&hcl.Diagnostic{
				Severity: hcl.DiagError,
				Summary:  "No experiment file",
				Detail: fmt.Sprintf("The folder %s has no file that ends in %s. Give the path of an experiment file, or write one "+
					"with `pipectl init`.", l.Path, extension),
			})
		}
	case strings.HasSuffix(l.Path, varsExtension):
		l.partial = true
		l.report(&hcl.Diagnostic{
			Severity: hcl.DiagError,
			Summary:  "Not an experiment file",
			Detail:   fmt.Sprintf("Files that end in %s hold values for variables. Pass %s with --var-file.", varsExtension, l.Path),
		})
		return
	}
	for _, name := range names {
		body, ok := l.parse(name)
		l.partial = l.partial || !ok
		l.bodies = append(l.bodies, body)
	}
}

// list returns the paths of a folder's *.hcl files in the order of their names, hidden ones left out.
func list(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	var names []string
	for _, e := range entries {
		name := filepath.Join(folder, e.Name())
		if !strings.HasSuffix(e.Name(), extension) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		// Stat follows links; a broken one is kept, as is what is no regular file, to be reported when it is read.
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			names = append(names, name)
		}
	}
	return names, err
}

// autoVars returns the paths of the files of values that are read without being asked for, in their order.
func (l *loader) autoVars() []string {
	folder := l.Path
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		folder = filepath.Dir(folder)
	}
	all, _ := list(folder) // a folder that can't be listed was reported by readFiles
	var names []string
	if name := filepath.Join(folder, varsFile); slices.Contains(all, name) {
		names = append(names, name)
	}
	for _, name := range all {
		if strings.HasSuffix(name, autoExtension) {
			names = append(names, name)
		}
	}
	return names
}

// parse reads a file and returns what the parser could make of it; ok is false where that isn't all.
func (l *loader) parse(name string) (body *hclsyntax.Body, ok bool) {
	src, ok := l.Contents[name]
	if !ok {
		var err error
		if src, err = read(name); err != nil {
			l.unreadable(name, err)
			return new(hclsyntax.Body), false
		}
	}
	l.config.Files[name] = src
	if d := excess(src, name); d != nil {
		l.report(d)
		return new(hclsyntax.Body), false
	}
	f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	l.diags = append(l.diags, diags...)
	return f.Body.(*hclsyntax.Body), !diags.HasErrors()
}

var (
	errIrregular = errors.New("it is not a regular file")
	errTooLarge  = fmt.Errorf("it is larger than %d KiB", maxFileSize>>10)
)

func read(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe would wait for a writer
		return nil, errIrregular
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err == nil && len(src) > maxFileSize {
		err = errTooLarge
	}
	return src, err
}

func (l *loader) unreadable(name string, err error) {
	advice := "Check the path and its permissions."
	switch pe := (*fs.PathError)(nil); {
	case errors.As(err, &pe):
		err = pe.Err // without the path, which follows
	case errors.Is(err, errIrregular):
		advice = "Give the path of a file on disk."
	case errors.Is(err, errTooLarge):
		advice = "Check that it is the right one, or split it into several."
	}
	l.report(&hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  "Unreadable file",
		Detail:   fmt.Sprintf("%s can't be read: %v. %s", name, err, advice),
	})
}

// excess reports text that would overflow the parser's stack, or numbers so extreme that writing their digits takes
// forever.
func excess(src []byte, name string) *hcl.Diagnostic {
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos) // ParseConfig reports what is wrong with them
	depth, operators := 0, 0
	for _, t := range tokens {
		fail := func(summary, detail string) *hcl.Diagnostic {
			return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &t.Range}
		}
		switch t.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			if depth++; depth > maxNesting {
				return fail("Nested too deeply", fmt.Sprintf("Brackets can be nested %d levels deep. Move inner parts to locals.", maxNesting))
			}
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenTemplateSeqEnd:
			depth--
		case hclsyntax.TokenBang, hclsyntax.TokenMinus, hclsyntax.TokenPlus, hclsyntax.TokenStar, hclsyntax.TokenSlash,
			hclsyntax.TokenPercent, hclsyntax.TokenQuestion, hclsyntax.TokenAnd, hclsyntax.TokenOr:
			if operators++; operators > maxOperators {
				return fail("Too many operators", fmt.Sprintf("A file can have %d operators.", maxOperators))
			}
		case hclsyntax.TokenNumberLit:
			_, exponent, _ := strings.Cut(strings.ToLower(string(t.Bytes)), "e")
			if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || max(e, -e) > maxExponent) {
				return fail("Number out of range", fmt.Sprintf("Numbers can have exponents from -%d to %[1]d.", maxExponent))
			}
		}
	}
	return nil
}
