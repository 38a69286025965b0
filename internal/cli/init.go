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
	a := adopter{state: s}
	cmd := &cobra.Command{
		Use:   "init [PATH]",
		Short: "Write an experiment file: a starter, or one of your own PyTorch code",
		Long: `Write a commented experiment file to start from, which runs at once on made-up pictures. PATH is a file that ends in .hcl, or a folder,
in which ` + starterName + ` is written (default: the current folder). A file that exists is never overwritten.

With --from, the file describes your own input pipeline: a PyTorch DataLoader, or a function that returns one, which stays as it is. The
module is imported, as Python would import it in the current folder, and each of its dataset's transforms becomes a stage:

  pipectl init --from train:loader --step train:train_step
  pipectl init --from 'src/train.py:get_loaders()[0]' --step-time 30ms`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.from != "" {
				if len(args) > 0 {
					return usagef("%q: with --from, -o names the file", args[0])
				}
				return a.run(cmd)
			}
			for _, name := range adoptFlags {
				if cmd.Flags().Changed(name) {
					return usagef("--%s needs --from, which names a DataLoader", name)
				}
			}
			return s.writeStarter(pathArgument(args))
		},
	}
	a.flags(cmd)
	return cmd
}

// writeStarter writes the starter as a file, or into a folder.
func (s *state) writeStarter(name string) error {
	if !strings.HasSuffix(name, ".hcl") {
		name = filepath.Join(name, starterName)
	}
	if err := createNew(name, starter); err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "Wrote %s. Try it:\n\n  pipectl run %[1]s\n", name)
	return nil
}

// createNew makes a file, and the folder it lies in. It doesn't touch one that is there.
func createNew(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	err := create(name, content)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already: give another path, or edit it", name)
	}
	return err
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
