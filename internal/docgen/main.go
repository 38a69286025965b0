// Docgen writes docs/language.md and docs/stages.md from the specs that also drive decoding. With -check it writes nothing,
// and exits with 1 where a file is not up to date. It runs in the repository's root.
package main

import (
	"bytes"
	"embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/python"
	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/audio"
	"github.com/pipectl/pipectl/stages/sources"
	"github.com/pipectl/pipectl/stages/text"
)

//go:embed *.md.tmpl
var templates embed.FS

func main() {
	check := flag.Bool("check", false, "report files that are not up to date, and write nothing")
	flag.Parse()
	if err := run("docs", *check); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

// run writes, or checks, every document in folder.
func run(folder string, check bool) error {
	var stale []string
	for _, name := range []string{"language.md", "stages.md"} {
		want, err := generate(name)
		if err != nil {
			return fmt.Errorf("generating %s: %w", name, err)
		}
		file := filepath.Join(folder, name)
		if !check {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				return err
			}
			continue
		}
		// A file that can't be read isn't up to date either.
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			stale = append(stale, file)
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("%s not up to date: run `make docs`", strings.Join(stale, " and "))
	}
	return nil
}

// generate returns the text of a document.
func generate(name string) ([]byte, error) {
	registry := stages.Builtin()
	gpu.Add(registry)
	audio.Add(registry)
	sources.Add(registry)
	text.Add(registry)
	python.Add(registry)
	t, err := template.New(name+".tmpl").Funcs(template.FuncMap{
		"attributes": stages.Attributes,
		"table":      table,
		"functions":  func() []config.Function { return config.Functions("", nil) },
		"reference":  config.Reference,
	}).ParseFS(templates, name+".tmpl")
	if err != nil {
		return nil, err
	}
	type block struct {
		Name      string
		Operators []stages.Operator
	}
	var blocks []block
	for _, name := range []string{stages.Load, stages.Prepare, stages.Augment, stages.Train} {
		b := block{Name: name}
		for _, op := range registry.Operators() {
			if op.Block == name {
				b.Operators = append(b.Operators, op)
			}
		}
		blocks = append(blocks, b)
	}
	var out bytes.Buffer
	err = t.Execute(&out, blocks)
	return out.Bytes(), err
}

// table writes attributes as a Markdown table.
func table(attributes []stages.Attribute) string {
	var s strings.Builder
	s.WriteString("| attribute | type | default | |\n|---|---|---|---|\n")
	for _, a := range attributes {
		kind := a.Type
		if limits := a.Limits(); limits != "" {
			kind += ", " + limits
		}
		value := "–"
		if a.Required {
			value = "required"
		} else if text := config.Literal(a.Default); text != "" {
			value = "`" + text + "`"
		}
		fmt.Fprintf(&s, "| `%s` | %s | %s | %s |\n", a.Name, cell(kind), cell(value), cell(a.Doc))
	}
	return s.String()
}

// cell makes a text safe in a table.
func cell(s string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s) }
