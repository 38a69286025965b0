package sources

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pipectl/pipectl/stages/storage"
)

// npyArray is an array, and the file that begins with its header.
type npyArray struct {
	npyHeader
	file  storage.File
	spool *spoolFile // what it was unpacked to; nil if it wasn't
}

// Close gives up what was unpacked. The file that the array is from stays open.
func (a npyArray) Close() error {
	if a.spool == nil {
		return nil
	}
	return a.spool.Close()
}

// openArray finds an array in a .npz archive, or the one of a .npy file. attribute is where its name was given.
func openArray(ctx context.Context, f storage.File, attribute, name string) (a npyArray, err error) {
	entry, err := findArray(ctx, f, attribute, name)
	if err != nil {
		return a, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	switch {
	case entry == nil:
		a.file = f
	case entry.Method == zip.Store:
		a.file, err = storedIn(f, entry)
	default:
		if a.spool, err = newSpoolFile(); err == nil {
			err = unpackTo(a.spool, entry)
		}
		a.file = unpackedMember{f, a.spool.file, int64(entry.UncompressedSize64)}
	}
	if err == nil {
		a.npyHeader, err = readNpyHeader(ctx, a.file)
	}
	return a, err
}

// lookAtArray reads an array's header, and unpacks no more than that of it.
func lookAtArray(ctx context.Context, f storage.File, attribute, name string) (npyHeader, error) {
	entry, err := findArray(ctx, f, attribute, name)
	switch {
	case err != nil:
		return npyHeader{}, err
	case entry == nil:
		return readNpyHeader(ctx, f)
	case entry.Method == zip.Store:
		if f, err = storedIn(f, entry); err != nil {
			return npyHeader{}, err
		}
		return readNpyHeader(ctx, f)
	}
	r, err := entry.Open()
	if err != nil {
		return npyHeader{}, unreadable(entry, err)
	}
	defer r.Close()
	start, err := io.ReadAll(io.LimitReader(r, mostNpy))
	if err != nil {
		return npyHeader{}, unreadable(entry, err)
	}
	return readNpyHeader(ctx, unpackedMember{f, bytes.NewReader(start), int64(entry.UncompressedSize64)})
}

// findArray finds an array in a .npz archive, which is a zip archive of .npy files. It returns nil for a .npy file.
func findArray(ctx context.Context, f storage.File, attribute, name string) (*zip.File, error) {
	var start [4]byte
	if err := readAt(ctx, f, start[:min(int64(len(start)), f.Size())], 0); err != nil {
		return nil, err
	}
	if magic := string(start[:]); magic != "PK\x03\x04" && magic != "PK\x05\x06" {
		if name != "" {
			return nil, &problemError{Attribute: attribute, Summary: "No archive", Detail: fmt.Sprintf("Only the arrays of .npz archives have names, and there is a file that is none. Leave %s out.", attribute)}
		}
		return nil, nil
	}
	archive, err := zip.NewReader(fileWithin{ctx, f}, f.Size())
	if err != nil {
		return nil, fmt.Errorf("it is no whole .npz archive: %w", err)
	}
	var names []string
	var found *zip.File
	for _, entry := range archive.File {
		array, ok := strings.CutSuffix(entry.Name, ".npy")
		if !ok {
			continue
		}
		names = append(names, array)
		if array == name || name == "" {
			found = entry
		}
	}
	switch {
	case name == "" && len(names) > 1:
		return nil, &problemError{Attribute: attribute, Summary: "Several arrays", Detail: fmt.Sprintf("There are the arrays %s. Name one of them: %s = %q.", strings.Join(names, ", "), attribute, names[0])}
	case found == nil && name == "":
		return nil, errors.New("it is a .npz archive without an array")
	case found == nil:
		return nil, &problemError{Attribute: attribute, Summary: "No such array", Detail: noSuch("array", name, names)}
	case found.Flags&1 != 0:
		return nil, fmt.Errorf("%s is encrypted; write it with numpy.savez", found.Name)
	case found.Method != zip.Store && found.Method != zip.Deflate:
		return nil, fmt.Errorf("%s is packed by zip's method %d, which isn't supported; write it with numpy.savez", found.Name, found.Method)
	}
	return found, nil
}

// unreadable says what is wrong with a file in an archive.
func unreadable(entry *zip.File, err error) error {
	return fmt.Errorf("unpacking %s: %w", entry.Name, withoutPath(err))
}

// unpackTo unpacks a file of an archive, and verifies its size and checksum.
func unpackTo(spool *spoolFile, entry *zip.File) error {
	r, err := entry.Open()
	if err != nil {
		return unreadable(entry, err)
	}
	defer r.Close()
	size := int64(entry.UncompressedSize64)
	if err := spool.fill(io.LimitReader(r, size+1)); err != nil {
		return unreadable(entry, err)
	}
	if n := spool.end.Load(); n != size {
		return unreadable(entry, fmt.Errorf("it has more than the %d bytes that it should have", size))
	}
	return nil
}

// storedIn returns a file in an archive that lies there as it is.
func storedIn(f storage.File, entry *zip.File) (storage.File, error) {
	start, err := entry.DataOffset()
	if err != nil {
		return nil, unreadable(entry, err)
	}
	size := entry.UncompressedSize64
	if start < 0 || start > f.Size() || size > uint64(f.Size()-start) {
		return nil, fmt.Errorf("%s has %d bytes from %d, and the archive has %d: it is damaged", entry.Name, size, start, f.Size())
	}
	return storedMember{f, start, int64(size)}, nil
}

// storedMember is a part of a file.
type storedMember struct {
	storage.File
	start, size int64
}

func (m storedMember) Size() int64 { return m.size }

func (m storedMember) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	most := min(int64(len(p)), max(m.size-off, 0))
	n, err := m.File.ReadAtContext(ctx, p[:most], m.start+off)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// unpackedMember is what was unpacked of a file.
type unpackedMember struct {
	storage.File
	data io.ReaderAt
	size int64
}

func (m unpackedMember) Size() int64 { return m.size }

func (m unpackedMember) ReadAtContext(_ context.Context, p []byte, off int64) (int, error) {
	return m.data.ReadAt(p, off)
}
