package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// packedRows are the rows of a row group, unpacked: the values of a column as bytes.
type packedRows struct {
	data   []byte // in memory, or that isn't in the spool yet
	starts []int64
	sizes  []int32 // in bytes; nullRow, nullValue or hugeValue where the row is no item
	err    error   // why there are no rows after these

	spool   *spoolFile // where data goes; nil if it stays in memory
	spooled int        // rows whose data is there
	value   [8]byte    // room for a number
}

const (
	nullRow   = -1 // there is no value
	nullValue = -2 // there is none among the values of a list
	hugeValue = -3 // there is one that int64 doesn't have
)

// spoolChunk is how much data is written to the spool at a time, at least.
const spoolChunk = 1 << 20

// begin starts a row.
func (p *packedRows) begin() error {
	if p.spool != nil && len(p.data) >= spoolChunk {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.starts, p.sizes = append(p.starts, int64(len(p.data))), append(p.sizes, 0)
	return nil
}

// add appends bytes to the last row.
func (p *packedRows) add(b []byte) error {
	last := len(p.sizes) - 1
	switch {
	case last < 0:
		return errors.New("a row group starts within a row: the file is damaged")
	case p.sizes[last] < 0:
		return nil
	case len(b) > math.MaxInt32-int(p.sizes[last]):
		return fmt.Errorf("row %d is larger than 2 GiB", last)
	}
	p.data = append(p.data, b...)
	p.sizes[last] += int32(len(b))
	return nil
}

// spoil marks the last row as one that is no item.
func (p *packedRows) spoil(why int32) {
	if last := len(p.sizes) - 1; last >= 0 {
		p.sizes[last] = why
	}
}

// cut takes the last row away.
func (p *packedRows) cut() {
	if n := len(p.starts); n > p.spooled {
		p.starts, p.sizes = p.starts[:n-1], p.sizes[:n-1]
	}
}

// flush moves data to the spool.
func (p *packedRows) flush() error {
	base, err := p.spool.write(p.data)
	if err != nil {
		return err
	}
	for i := p.spooled; i < len(p.starts); i++ {
		p.starts[i] += base
	}
	p.data, p.spooled = p.data[:0], len(p.starts)
	return nil
}

// size returns how many bytes row i has.
func (p *packedRows) size(i int) (int, error) {
	switch {
	case i >= len(p.sizes):
		return 0, p.err
	case p.sizes[i] == nullRow:
		return 0, errors.New("there is no value: it is null")
	case p.sizes[i] == nullValue:
		return 0, errors.New("a value of the list is null")
	case p.sizes[i] == hugeValue:
		return 0, errors.New("a value is 2⁶³ or more")
	}
	return int(p.sizes[i]), nil
}

// read fills dst with row i.
func (p *packedRows) read(i int, dst []byte) error {
	if p.spool == nil {
		copy(dst, p.data[p.starts[i]:])
		return nil
	}
	return p.spool.read(dst, p.starts[i])
}

// spoolFile is a temporary file that only this process sees.
type spoolFile struct {
	file *os.File
	end  atomic.Int64
}

func newSpoolFile() (*spoolFile, error) {
	file, err := os.CreateTemp("", "pipectl-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // where a file that is open can't be removed, Close does it
	return &spoolFile{file: file}, nil
}

func (s *spoolFile) write(p []byte) (off int64, err error) {
	off = s.end.Add(int64(len(p))) - int64(len(p))
	if _, err := s.file.WriteAt(p, off); err != nil {
		return 0, fmt.Errorf("unpacking to the temporary folder %s: %w; TMPDIR sets another", os.TempDir(), withoutPath(err))
	}
	return off, nil
}

// fill writes all that r gives. Errors of r are given as they are.
func (s *spoolFile) fill(r io.Reader) error {
	buffer := make([]byte, spoolChunk)
	for {
		n, err := r.Read(buffer)
		if _, e := s.write(buffer[:n]); e != nil {
			return e
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *spoolFile) read(p []byte, off int64) error {
	if _, err := s.file.ReadAt(p, off); err != nil && (len(p) > 0 || !errors.Is(err, io.EOF)) {
		return fmt.Errorf("reading what was unpacked: %w", withoutPath(err))
	}
	return nil
}

func (s *spoolFile) Close() error {
	err := s.file.Close()
	if e := os.Remove(s.file.Name()); !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}

// rowGroups unpacks each row group when it is first needed, once where there is a spool; otherwise the last few are kept.
type rowGroups struct {
	spool  *spoolFile
	keep   int // bytes of the last groups that are kept in memory
	least  int // groups that are kept in any case
	mu     sync.Mutex
	groups map[int]*rowGroup
	recent []int // the groups in memory, the last used last
	bytes  int   // in memory
}

type rowGroup struct {
	mu   sync.Mutex
	done bool
	rows packedRows
}

// get returns the rows of a group, which decode appends.
func (r *rowGroups) get(ctx context.Context, n int, decode func(*packedRows) error) (*packedRows, error) {
	r.mu.Lock()
	g := r.groups[n]
	if g == nil {
		g = &rowGroup{rows: packedRows{spool: r.spool}}
		r.groups[n] = g
	}
	if r.spool == nil && (len(r.recent) == 0 || r.recent[len(r.recent)-1] != n) {
		if i := slices.Index(r.recent, n); i >= 0 {
			r.recent = slices.Delete(r.recent, i, i+1)
		}
		r.recent = append(r.recent, n)
	}
	r.mu.Unlock()

	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done {
		return &g.rows, nil
	}
	err := decode(&g.rows)
	if r.spool != nil {
		if e := g.rows.flush(); err == nil {
			err = e
		}
		g.rows.data, g.rows.starts, g.rows.sizes = nil, g.rows.starts[:g.rows.spooled], g.rows.sizes[:g.rows.spooled]
	}
	if ctx.Err() != nil {
		g.rows = packedRows{spool: r.spool} // another reader may have more time
		return nil, cmp.Or(err, ctx.Err())
	}
	g.rows.err, g.done = err, true
	r.drop(len(g.rows.data))
	return &g.rows, nil
}

// drop forgets the groups that were not used for the longest time, to make room for more bytes.
func (r *rowGroups) drop(more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += more
	for len(r.recent) > r.least && r.bytes > r.keep {
		n := r.recent[0]
		g := r.groups[n]
		if !g.mu.TryLock() {
			return // it is being unpacked, so the rest will be dropped when that is done
		}
		r.bytes -= len(g.rows.data)
		g.mu.Unlock()
		delete(r.groups, n)
		r.recent = r.recent[1:]
	}
}
