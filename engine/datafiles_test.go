package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/internal/machine"
)

// memoryPages is a page cache that drops all files but those that stick.
type memoryPages struct {
	dropped []string
	sticky  []string
	hidden  bool  // it tells of none
	err     error // of Drop
}

func (m *memoryPages) Drop(path string) error {
	m.dropped = append(m.dropped, path)
	return m.err
}

func (m *memoryPages) Resident(path string) (resident, pages int, err error) {
	if m.hidden {
		return 0, 0, fs.ErrPermission
	}
	if slices.Contains(m.sticky, path) || !slices.Contains(m.dropped, path) {
		return 10, 10, nil
	}
	return 0, 10, nil
}

// TestCold measures probes with the data set dropped before each interval that reads it, and with none of that asked for.
func TestCold(t *testing.T) {
	files := []string{"a", "b", "c", "d"}
	for _, tt := range []struct {
		name    string
		cold    bool
		files   []string
		cache   *memoryPages
		probe   Probe
		dropped []string
		want    float64
	}{
		{"warm", false, files, &memoryPages{}, Probe{}, nil, 1},
		{"warm, unlisted", false, nil, &memoryPages{}, Probe{}, nil, -1},
		{"cold", true, files, &memoryPages{}, Probe{}, files, 0},
		{"cold, some stay", true, files, &memoryPages{sticky: []string{"b"}}, Probe{}, files, 0.25},
		{"cold, hidden", true, files, &memoryPages{hidden: true}, Probe{}, files, -1},
		{"cold, files that can't be opened", true, files, &memoryPages{err: fs.ErrNotExist}, Probe{}, files, 0},
		{"cold, isolated", true, files, &memoryPages{}, Probe{From: 1, To: 2}, files, 0},
		{"cold, from a cache", true, files, &memoryPages{}, Probe{To: 2}, nil, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := chain(&countSource{items: 64, files: tt.files}, 4, nothing, prepare("a", double))
			e.Bisect.Cold = tt.cold
			p := openWith(t, e, Options{PageCache: tt.cache})
			iv, err := p.Measure(t.Context(), tt.probe, 1, 4)
			if err != nil {
				t.Fatal(err)
			}
			if iv.Resident != tt.want {
				t.Errorf("%v of the pages are resident, want %v", iv.Resident, tt.want)
			}
			if d := cmp.Diff(tt.dropped, tt.cache.dropped); d != "" {
				t.Errorf("dropped (-want +got):\n%s", d)
			}
		})
	}
}

func TestColdUnsupported(t *testing.T) {
	e := chain(&countSource{items: 64, files: []string{"a"}}, 4, nothing)
	e.Bisect.Cold = true
	p := openWith(t, e, Options{PageCache: &memoryPages{err: fmt.Errorf("dropping: %w", errors.ErrUnsupported)}})
	_, err := p.Measure(t.Context(), Probe{}, 0, 1)
	want := "load.items: files can be dropped from the page cache on Linux alone; remove cold from the bisect block"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestColdWithoutFiles refuses to drop the files of a source that has none.
func TestColdWithoutFiles(t *testing.T) {
	e := chain(&countSource{items: 64}, 4, nothing)
	e.Bisect.Cold = true
	_, problems, err := Describe(t.Context(), e, Options{})
	if err != nil || len(problems) != 1 || problems[0].Address != BisectBlock || problems[0].Attribute != "cold" {
		t.Errorf("%+v, %v", problems, err)
	}
}

// TestSampledFiles asks only some of many files for their pages, evenly.
func TestSampledFiles(t *testing.T) {
	var files []string
	for i := range 10 * sampledFiles {
		files = append(files, fmt.Sprint(i))
	}
	cache := &memoryPages{dropped: files, sticky: files[:5*sampledFiles]}
	p := openWith(t, chain(&countSource{items: 64, files: files}, 4, nothing), Options{PageCache: cache})
	if iv, err := p.Measure(t.Context(), Probe{}, 0, 1); err != nil || iv.Resident != 0.5 {
		t.Errorf("%v, %v, want 0.5", iv.Resident, err)
	}
}

// TestClocks reads the clocks at an interval's end, and counts from one interval to the next.
func TestClocks(t *testing.T) {
	readings := []machine.Clocks{{Frequency: -1, Throttles: 5}, {Frequency: 3e9, Throttles: 5}, {Frequency: 2e9, Throttles: 8}, {Frequency: -1, Throttles: -1}}
	next := 0
	p := openWith(t, chain(&countSource{items: 64}, 4, nothing), Options{ReadClocks: func() machine.Clocks {
		next++
		return readings[next-1]
	}})
	var got [][2]float64
	for range readings[1:] {
		iv, err := p.Measure(t.Context(), Probe{}, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, [2]float64{iv.Frequency, float64(iv.Overheats)})
	}
	if d := cmp.Diff([][2]float64{{3e9, 0}, {2e9, 3}, {-1, -1}}, got); d != "" {
		t.Errorf("frequency and overheats (-want +got):\n%s", d)
	}
}
