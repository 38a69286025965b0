package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// starter is the file that init writes.
//
//go:embed starter.hcl
var starter []byte

// starterName is what init calls its file in a folder.
const starterName = "pipectl.hcl"

func newInitCommand(s *state) *cobra.Command {
	return &cobra.Command{
		Use:   "init [PATH]",
		Short: "Write a commented experiment file to start from",
		Long: `Write a commented experiment file to start from, which runs at once on made-up pictures. PATH is a file that ends in .hcl, or a folder,
in which ` + starterName + ` is written (default: the current folder). A file that exists is never overwritten.`,
		Args: atMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := pathArgument(args)
			if !strings.HasSuffix(name, ".hcl") {
				name = filepath.Join(name, starterName)
			}
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			err := create(name, starter)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s exists already: give another path, or edit it", name)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(s.stdout, "Wrote %s. Try it:\n\n  pipectl run %[1]s\n", name)
			return nil
		},
	}
}

// create makes a file with its whole content, or none. It returns fs.ErrExist where there is one.
func create(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(name)
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
