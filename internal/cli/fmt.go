package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/hcl/config"
)

// formatter is one `pipectl fmt`.
type formatter struct {
	*state
	write, check, diff bool

	diags   hcl.Diagnostics
	files   map[string][]byte // that the diagnostics point to
	changed int               // files whose layout isn't the canonical one
}

func newFmtCommand(s *state) *cobra.Command {
	f := &formatter{state: s, files: map[string][]byte{}}
	cmd := &cobra.Command{
		Use:   "fmt [PATH…]",
		Short: "Rewrite files in the canonical layout",
		Long: `Rewrite files in the canonical layout, and list those that change. A PATH is a file, a folder, whose *.hcl are meant, or "-" for
the standard input, which is written to the standard output. Default: the current folder.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			return f.run(args)
		},
	}
	cmd.Flags().BoolVar(&f.write, "write", true, "rewrite the files; --write=false only lists them")
	cmd.Flags().BoolVar(&f.check, "check", false, "rewrite nothing, and exit with 3 if a file isn't in the canonical layout")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "show what changes")
	return cmd
}

func (f *formatter) run(args []string) error {
	f.write = f.write && !f.check
	for _, arg := range args {
		if err := f.argument(arg); err != nil {
			return err
		}
	}
	if f.diags.HasErrors() {
		return &diagnosticsError{f.diags, f.files, exitInvalid}
	}
	if f.check && f.changed > 0 {
		return &toldError{exitInvalid}
	}
	return nil
}

// argument formats what one argument stands for.
func (f *formatter) argument(arg string) error {
	if arg == "-" {
		src, err := io.ReadAll(f.In)
		if err != nil {
			return fmt.Errorf("reading the standard input: %w", err)
		}
		out, ok := f.format("<stdin>", src)
		if ok && !f.check && !f.diff {
			f.stdout.Write(out)
		}
		return nil
	}
	info, err := os.Stat(arg)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.file(arg)
	}
	entries, err := os.ReadDir(arg)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".hcl") || strings.HasPrefix(e.Name(), ".") || e.IsDir() {
			continue
		}
		if err := f.file(filepath.Join(arg, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// file formats one file.
func (f *formatter) file(name string) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	out, ok := f.format(name, src)
	if !ok || bytes.Equal(src, out) {
		return nil
	}
	fmt.Fprintln(f.stdout, name)
	if !f.write {
		return nil
	}
	return replace(name, out)
}

// format returns the canonical layout of src, and shows the difference where that is asked for. It reports false where src
// can't be parsed.
func (f *formatter) format(name string, src []byte) ([]byte, bool) {
	out, diags := config.Format(src, name)
	if diags.HasErrors() {
		f.files[name] = src
		f.diags = append(f.diags, diags...)
		return nil, false
	}
	if !bytes.Equal(src, out) {
		f.changed++
		if f.diff {
			f.stdout.Write(diff.Diff(name, src, name+" (formatted)", out))
		}
	}
	return out, true
}

// replace gives a file a new content in one go, so that no crash leaves half of it.
func replace(name string, content []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails once it is renamed
	_, err = tmp.Write(content)
	if syncErr := tmp.Sync(); err == nil {
		err = syncErr
	}
	if chmodErr := tmp.Chmod(info.Mode().Perm()); err == nil {
		err = chmodErr
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return os.Rename(tmp.Name(), name)
}
