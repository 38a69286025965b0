package sources

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// csvTable is what the rows of a CSV file say.
type csvTable struct {
	items   []csvItem
	classes int // 0 without labels
}

type csvItem struct {
	path  string
	label int32
	line  int32
}

// mostFaults is how many faulty rows are told of.
const mostFaults = 5

// csvFaults are the faults of rows, the first of them in words.
type csvFaults struct {
	words []string
	count int
}

func (f *csvFaults) add(line int, format string, args ...any) {
	if f.count++; f.count <= mostFaults {
		f.words = append(f.words, fmt.Sprintf("line %d ", line)+fmt.Sprintf(format, args...))
	}
}

func (f *csvFaults) err() error {
	if f.count == 0 {
		return nil
	}
	return errors.New(strings.Join(f.words, "; ") + more(f.count-len(f.words)))
}

// parse reads a CSV file.
func (s *CSV) parse(file io.Reader) (csvTable, error) {
	b := bufio.NewReaderSize(file, 1<<20)
	prefix, _ := b.Peek(4) // an error comes again when b is read
	if err := plainText(prefix); err != nil {
		return csvTable{}, err
	}
	if strings.HasPrefix(string(prefix), "\xef\xbb\xbf") {
		if _, err := b.Discard(3); err != nil {
			return csvTable{}, err
		}
	}
	r := csv.NewReader(&utf8Reader{r: b})
	r.Comma, _ = utf8.DecodeRuneInString(s.Delimiter)
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return csvTable{}, errors.New("it is empty")
	}
	if err != nil {
		return csvTable{}, csvError(err)
	}
	paths, err := s.column("path_column", header, s.PathColumn)
	if err != nil {
		return csvTable{}, err
	}
	labels := -1
	if s.LabelColumn != "" {
		if labels, err = s.column("label_column", header, s.LabelColumn); err != nil {
			return csvTable{}, err
		}
	}
	r.ReuseRecord = true
	var t csvTable
	var names []string
	var faults csvFaults
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, csv.ErrFieldCount) {
			line, _ := r.FieldPos(0)
			faults.add(line, "has %d fields, where the header has %d", len(row), len(header))
			continue
		}
		if err != nil {
			if err = csvError(err); faults.count > 0 {
				err = fmt.Errorf("%w; %w", faults.err(), err)
			}
			return t, err
		}
		line, _ := r.FieldPos(paths)
		if row[paths] == "" {
			faults.add(line, "has no path")
			continue
		}
		if what := storage.CheckScheme(row[paths]); what != "" {
			faults.add(line, "has a path that %s", what)
			continue
		}
		t.items = append(t.items, csvItem{path: s.join(strings.Clone(row[paths])), line: int32(min(line, math.MaxInt32))})
		if labels >= 0 {
			names = append(names, strings.Clone(row[labels]))
		}
	}
	if err := faults.err(); err != nil {
		return t, err
	}
	if len(t.items) == 0 {
		return t, errors.New("it has no rows below its header")
	}
	if labels >= 0 {
		err = s.number(&t, names)
	}
	return t, err
}

// column finds a column of the header.
func (s *CSV) column(attribute string, header []string, name string) (int, error) {
	i := slices.Index(header, name)
	p := stages.Problem{Attribute: attribute}
	switch {
	case i < 0:
		p.Summary, p.Detail = "No such column", noSuch("column", name, header)
		for _, d := range []string{"\t", ";", ","} {
			if len(header) == 1 && d != s.Delimiter && strings.Contains(header[0], d) {
				p.Detail += fmt.Sprintf(" If they are several, set delimiter = %q.", d)
			}
		}
		if attribute == "label_column" {
			p.Detail += ` Where items have no labels, set label_column = "".`
		}
	case slices.Contains(header[i+1:], name):
		p.Summary, p.Detail = "Column not unique", fmt.Sprintf("Several columns have the name %q. Rename all but one.", name)
	default:
		return i, nil
	}
	return 0, (*problemError)(&p)
}

// csvError says what is wrong with a row that can't be parsed.
func csvError(err error) error {
	var p *csv.ParseError
	if !errors.As(err, &p) {
		return withoutPath(err)
	}
	switch {
	case errors.Is(err, csv.ErrQuote):
		return fmt.Errorf("line %d, column %d: a quote is missing, or stands within a quoted field without being doubled; the field starts on line %d", p.Line, p.Column, p.StartLine)
	case errors.Is(err, csv.ErrBareQuote):
		return fmt.Errorf("line %d, column %d: a quote stands within a field that isn't quoted", p.Line, p.Column)
	}
	return fmt.Errorf("line %d: %w", p.Line, p.Err)
}

// number turns labels into numbers.
func (s *CSV) number(t *csvTable, labels []string) error {
	var faults csvFaults
	number := func(label string) (int32, bool) {
		n, err := strconv.ParseInt(label, 10, 32)
		return int32(n), err == nil
	}
	firstName, firstNumber := -1, -1
	for i, label := range labels {
		if label == "" {
			faults.add(int(t.items[i].line), "has no label")
		}
		if _, ok := number(label); ok && firstNumber < 0 {
			firstNumber = i
		} else if !ok && firstName < 0 {
			firstName = i
		}
	}
	if err := faults.err(); err != nil {
		return err
	}
	if s.Labels == "auto" && firstName >= 0 && firstNumber >= 0 {
		return fmt.Errorf("some labels are numbers (line %d: %s) and some are names (line %d: %s); set labels to \"names\" if all are names",
			t.items[firstNumber].line, labels[firstNumber], t.items[firstName].line, labels[firstName])
	}
	if s.Labels == "names" || s.Labels == "auto" && firstName >= 0 {
		classes := slices.Compact(slices.Sorted(slices.Values(labels)))
		numbers := make(map[string]int32, len(classes))
		for i, class := range classes {
			numbers[class] = int32(i)
		}
		for i, label := range labels {
			t.items[i].label = numbers[label]
		}
		t.classes = len(classes)
		return nil
	}
	for i, label := range labels {
		n, ok := number(label)
		if !ok || n < 0 || n == math.MaxInt32 {
			faults.add(int(t.items[i].line), "has the label %q, which is no whole number from 0", label)
			continue
		}
		t.items[i].label = n
		t.classes = max(t.classes, int(n)+1)
	}
	return faults.err()
}
