package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// CSV holds the attributes of `load "csv"`.
type CSV struct {
	Path        stages.Path `hcl:"path" doc:"The CSV file, with a header."`
	Root        stages.Path `hcl:"root,optional" doc:"The folder that the items' paths start from. Default: the CSV file's own."`
	PathColumn  string      `hcl:"path_column,optional" doc:"The column with the items' paths or URLs."`
	LabelColumn string      `hcl:"label_column,optional" doc:"The column with the items' labels; \x60\"\"\x60 where they have none."`
	Labels      string      `hcl:"labels,optional" enum:"auto,numbers,names" doc:"What labels are: whole numbers from 0, or names of classes, which are numbered 0, 1, … in the order of their names. By default they are numbers if all of them can be."`
	Delimiter   string      `hcl:"delimiter,optional" doc:"The character between fields, such as \x60\"\\t\"\x60."`
	Shuffle     bool        `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

func csvOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Load,
		Type:    "csv",
		Summary: "Reads the files that a CSV file lists.",
		Doc: `An item is the bytes of a file that a row names. The CSV file is as RFC 4180 has it: fields may be quoted, a quote within one is doubled, lines end
in LF or CRLF; a byte order mark and empty lines are left out. It must be UTF-8.

Before anything runs, the rows are checked, and that the files they name are on this machine; files elsewhere are not looked at.`,
		New: func() any {
			return &CSV{PathColumn: "path", LabelColumn: "label", Labels: "auto", Delimiter: ","}
		},
	}
}

// Validate reports a file that is missing, has other columns, or has rows that can't be items.
func (s *CSV) Validate() []stages.Problem {
	if r, n := utf8.DecodeRuneInString(s.Delimiter); n != len(s.Delimiter) || strings.ContainsRune("\"\r\n\uFEFF\uFFFD", r) {
		return []stages.Problem{{Attribute: "delimiter", Summary: "Not a delimiter", Detail: "A delimiter is one character, neither a quote nor the end of a line."}}
	}
	ctx, cancel := context.WithTimeout(storage.FirstLook(context.Background()), planTime)
	defer cancel()
	client := storage.New()
	defer client.Close()
	table, err := s.read(ctx, client)
	if err != nil {
		return []stages.Problem{fileProblem("path", storage.Redacted(string(s.Path)), err)}
	}
	const shown = 5
	var missing []string
	count := 0
	for _, it := range table.items {
		if storage.Remote(it.path) || ctx.Err() != nil {
			continue
		}
		info, err := os.Stat(it.path)
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("not a regular file")
		}
		if err == nil {
			continue
		}
		if count++; count <= shown {
			what := fmt.Sprint(withoutPath(err))
			if errors.Is(err, fs.ErrNotExist) {
				what = "not found"
			}
			missing = append(missing, fmt.Sprintf("line %d: %s: %s", it.line, it.path, what))
		}
	}
	if count == 0 {
		return nil
	}
	attribute := "path"
	if s.Root != "" {
		attribute = "root"
	}
	return []stages.Problem{{
		Attribute: attribute,
		Summary:   "Files not found",
		Detail:    fmt.Sprintf("The CSV file names files that can't be read, %d of %d. Relative paths start from root. %s%s.", count, len(table.items), strings.Join(missing, "; "), more(count-len(missing))),
	}}
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; and %d more", n)
}

// Output returns the type of a file.
func (s *CSV) Output() stages.Type { return stages.Type{Kind: stages.Encoded} }

// Shuffled reports whether each epoch's items come in a new order.
func (s *CSV) Shuffled() bool { return s.Shuffle }

// Open reads the CSV file.
func (s *CSV) Open(ctx context.Context, _ uint64) (stages.Source, error) {
	client := storage.New()
	table, err := s.read(ctx, client)
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("reading %s: %w", storage.Redacted(string(s.Path)), withoutPath(err))
	}
	return &csvSource{csvTable: table, list: storage.Redacted(string(s.Path)), client: client}, nil
}

// read reads the CSV file.
func (s *CSV) read(ctx context.Context, client *storage.Client) (csvTable, error) {
	r, err := client.Stream(ctx, string(s.Path))
	if err != nil {
		return csvTable{}, err
	}
	defer r.Close()
	return s.parse(r)
}

// join returns the whole path that a row's path stands for.
func (s *CSV) join(name string) string {
	if storage.Remote(name) || filepath.IsAbs(name) {
		return name
	}
	root := string(s.Root)
	if root == "" {
		root = string(s.Path)
		root = root[:strings.LastIndexAny(root, "/"+string(filepath.Separator))+1]
	}
	if storage.Remote(root) {
		return strings.TrimSuffix(root, "/") + "/" + name
	}
	return filepath.Join(root, name)
}

// csvSource reads the files.
type csvSource struct {
	csvTable
	list   string // the CSV file's path
	client *storage.Client
}

func (s *csvSource) Len() int     { return len(s.items) }
func (s *csvSource) Classes() int { return s.classes }

func (s *csvSource) Close() error {
	s.client.Close()
	return nil
}

// Name returns the file's path, and where the CSV file names it.
func (s *csvSource) Name(i int) string {
	return fmt.Sprintf("%s (%s, line %d)", storage.Redacted(s.items[i].path), s.list, s.items[i].line)
}

// Files yields the paths of the items' files. It is nil where one isn't this machine's.
func (s *csvSource) Files() iter.Seq[string] {
	if slices.ContainsFunc(s.items, func(it csvItem) bool { return storage.Remote(it.path) }) {
		return nil
	}
	return func(yield func(string) bool) {
		for _, it := range s.items {
			if !yield(it.path) {
				return
			}
		}
	}
}

// mostFile is the size in bytes from which a file is taken for no item.
const mostFile = 2 << 30

// Read reads the file of item i.
func (s *csvSource) Read(c *stages.Call, i int, out *stages.Element) (int32, error) {
	it := s.items[i]
	err := s.client.ReadFile(c.Context, it.path, func(size int64) ([]byte, error) {
		if size > mostFile {
			return nil, fmt.Errorf("a file of %s is too large for an item", stages.Bytes(size))
		}
		return out.Bytes(stages.Type{Kind: stages.Encoded}, int(size)), nil
	})
	return it.label, withoutPath(err)
}
