package sources

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// wdsSample is a sample of a shard: where its data is, and its label; or what is wrong with it.
type wdsSample struct {
	name  string // of its data's member; its key while there is none
	off   int64  // where the data starts
	size  int64  // of the data in bytes
	label string
	err   error
}

// wdsShard is what was found in a shard.
type wdsShard struct {
	samples []wdsSample
	endless bool // it ends after a member, without the mark that ends an archive
}

// wdsMember is a file in a shard.
type wdsMember struct {
	name      string
	off, size int64
}

// wdsGroup is a sample whose members are being collected.
type wdsGroup struct {
	key     string
	members map[string]wdsMember // by their extension
	label   []byte               // what is in the label's member
	err     error
}

// mostLabel is the size in bytes of a member that a label is read from.
const mostLabel = 1 << 20

// index finds the samples of a shard, at most so many, from the headers of its members, which it reads so many bytes at a time. What is wrong with a sample is in the sample, and
// what makes the rest of the shard unreadable in one more. An error of index itself is one of reading.
//
// Members whose names are the same up to the first dot of their last part, and follow each other, are a sample; the rest of the name is
// its extension. This is how github.com/webdataset/webdataset groups them.
func (s *WebDataset) index(ctx context.Context, f storage.File, window, most int) (found wdsShard, err error) {
	r := &tarReader{ctx: ctx, f: f, window: make([]byte, 0, window)}
	if err := r.compressed(); err != nil {
		return found, err
	}
	var group *wdsGroup
	flush := func() {
		if group != nil {
			found.samples = append(found.samples, s.sample(group))
			group = nil
		}
	}
	damaged := func(at int64, format string, args ...any) (wdsShard, error) {
		flush()
		found.samples = append(found.samples, wdsSample{name: fmt.Sprintf("rest from byte %d", at), err: fmt.Errorf(format, args...)})
		return found, nil
	}
	archive := tar.NewReader(r)
	end := int64(0) // of the last member
	for len(found.samples) < most {
		h, err := archive.Next()
		switch {
		case r.err != nil:
			return found, r.err
		case errors.Is(err, io.EOF):
			more, err := r.more()
			if err != nil {
				return found, err
			}
			if more >= 0 {
				return damaged(more, "at byte %d more follows after the mark that ends the archive, as where archives were joined, which tar doesn't read: pack what is in them as one", more)
			}
			flush()
			found.endless = end >= f.Size()
			return found, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return damaged(end, "the shard ends at byte %d, where a member or its header goes on: it is truncated", f.Size())
		case err != nil:
			return damaged(end, "at byte %d there is no header of a member, or a damaged one (%s)", end, strings.TrimPrefix(err.Error(), "archive/tar: "))
		}
		m := wdsMember{h.Name, r.pos, h.Size}
		if end = m.off; !sparse(h) {
			end += (m.size + 511) / 512 * 512
		}
		key, extension := splitKey(h.Name)
		link := h.Typeflag == tar.TypeLink || h.Typeflag == tar.TypeSymlink
		if key == "" || !holdsData(h.Typeflag) && !(link && s.needs(extension)) {
			continue
		}
		if group == nil || group.key != key {
			flush()
			group = &wdsGroup{key: key, members: make(map[string]wdsMember)}
		}
		_, twice := group.members[extension]
		switch {
		case sparse(h):
			group.err = fmt.Errorf("member %s at byte %d is sparse, which isn't supported; make the shard anew, without tar's --sparse", m.name, m.off)
		case link:
			group.err = fmt.Errorf("member %s at byte %d is a link to %s, which isn't followed; make the shard anew, with tar's --dereference and --hard-dereference", m.name, m.off, h.Linkname)
		case twice:
			group.err = fmt.Errorf("member %s at byte %d is there twice", m.name, m.off)
		case m.size > f.Size()-m.off:
			group.err = fmt.Errorf("member %s at byte %d has %d bytes, and the shard ends after %d of them: it is truncated", m.name, m.off, m.size, f.Size()-m.off)
			flush()
			return found, nil
		case s.Label == extension && m.size > mostLabel:
			group.err = fmt.Errorf("member %s at byte %d has %d bytes, too many for a label", m.name, m.off, m.size)
		case s.Label == extension:
			if group.label, err = io.ReadAll(archive); r.err != nil {
				return found, r.err
			} else if err != nil {
				group.err = fmt.Errorf("member %s at byte %d: %w", m.name, m.off, err)
			}
		}
		group.members[extension] = m
	}
	return found, nil
}

// holdsData reports whether a member of a type is a file's bytes.
func holdsData(typ byte) bool {
	return typ == tar.TypeReg || typ == tar.TypeCont || typ == tar.TypeGNUSparse
}

// needs reports whether members with an extension may be the item or its label.
func (s *WebDataset) needs(extension string) bool {
	return extension == s.Label || slices.Contains(strings.Split(s.Data, ";"), extension)
}

// splitKey splits a member's name into its sample's key and its extension, in lower case. The key is "" for what is no part of a
// sample: names without an extension, hidden files, and what the format sets apart by two underscores.
func splitKey(name string) (key, extension string) {
	folder, base := path.Split(name)
	base, extension, ok := strings.Cut(base, ".")
	if !ok || base == "" {
		return "", ""
	}
	if first, _, _ := strings.Cut(name, "/"); len(first) >= 4 && strings.HasPrefix(first, "__") && strings.HasSuffix(first, "__") {
		return "", ""
	}
	return folder + base, strings.ToLower(extension)
}

// sparse reports whether a member leaves out its zeros, so that its data doesn't lie in the archive as it is.
func sparse(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for name := range h.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// sample returns what a group is.
func (s *WebDataset) sample(g *wdsGroup) wdsSample {
	out := wdsSample{name: g.key, err: g.err}
	if out.err != nil {
		return out
	}
	found := false
	for extension := range strings.SplitSeq(s.Data, ";") {
		if m, ok := g.members[extension]; ok {
			out.name, out.off, out.size, found = m.name, m.off, m.size, true
			break
		}
	}
	label, labelled := g.members[s.Label]
	switch {
	case !found:
		out.err = g.missing("data", s.Data)
	case out.size > mostData:
		out.err = fmt.Errorf("member %s at byte %d has %s, too many for an item", out.name, out.off, stages.Bytes(out.size))
	case s.Label == "":
	case !labelled:
		out.err = g.missing("label", s.Label)
	default:
		var err error
		if out.label, err = s.label(g.label); err != nil {
			out.err = fmt.Errorf("member %s at byte %d: %w", label.name, label.off, err)
		}
	}
	return out
}

// missing says which member a sample lacks.
func (g *wdsGroup) missing(attribute, extensions string) error {
	var have []string
	first := int64(-1)
	for extension, m := range g.members {
		have = append(have, extension)
		if first < 0 || m.off < first {
			first = m.off
		}
	}
	slices.Sort(have)
	return fmt.Errorf("the sample %s at byte %d has no member %s for %s; it has %s. A sample's members must stand together, as tar --sort=name packs them", g.key, first, extensions, attribute, strings.Join(have, ", "))
}

// label returns the label that a member holds, as text.
func (s *WebDataset) label(data []byte) (string, error) {
	text := string(bytes.TrimSpace(data))
	if s.LabelKey != "" {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return "", fmt.Errorf("it is no JSON object: %w", err)
		}
		value, ok := fields[s.LabelKey]
		if !ok {
			return "", fmt.Errorf("it has no key %q", s.LabelKey)
		}
		text = string(value)
		if value[0] == '"' {
			if err := json.Unmarshal(value, &text); err != nil {
				return "", err
			}
		}
	}
	if s.Labels == "numbers" {
		if n, err := strconv.ParseInt(text, 10, 32); err != nil || n < 0 || n == 1<<31-1 {
			return "", fmt.Errorf(`the label is %.40q, which is no whole number from 0; set labels = "names" if it is a class's name`, text)
		}
	}
	return text, nil
}

// tarReader reads a shard's headers. It knows where it is, and passes over what lies between them. It reads a little ahead, since a small
// member's next header is close.
type tarReader struct {
	ctx    context.Context
	f      storage.File
	pos    int64
	window []byte
	start  int64 // of the window
	err    error // of reading the file
}

func (r *tarReader) Read(p []byte) (int, error) {
	if r.pos >= r.f.Size() {
		return 0, io.EOF
	}
	if r.pos < r.start || r.pos >= r.start+int64(len(r.window)) {
		r.start, r.window = r.pos, r.window[:min(int64(cap(r.window)), r.f.Size()-r.pos)]
		if r.err = readAt(r.ctx, r.f, r.window, r.start); r.err != nil {
			r.window = r.window[:0]
			return 0, r.err
		}
	}
	n := copy(p, r.window[r.pos-r.start:])
	r.pos += int64(n)
	return n, nil
}

// more returns where the first byte is that isn't zero, from where the reader is; -1 where there is none.
func (r *tarReader) more() (int64, error) {
	var block [512]byte
	for {
		n, err := r.Read(block[:])
		for i, b := range block[:n] {
			if b != 0 {
				return r.pos - int64(n-i), nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return -1, nil
		case err != nil:
			return 0, err
		}
	}
}

// compressed returns what is to be done about a shard that is compressed.
func (r *tarReader) compressed() error {
	var magic [4]byte
	n, err := io.ReadFull(r, magic[:])
	r.pos = 0
	if n < len(magic) {
		if r.err == nil {
			err = errors.New("it is empty")
		}
		return err
	}
	return plainText(magic[:])
}

// Seek makes archive/tar pass over members without reading them.
func (r *tarReader) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += r.pos
	case io.SeekEnd:
		off += r.f.Size()
	}
	if off < 0 {
		return 0, errors.New("seek before the start")
	}
	r.pos = off
	return off, nil
}
