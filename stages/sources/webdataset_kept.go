package sources

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/zeebo/xxh3"

	"github.com/pipectl/pipectl/stages/storage"
)

// keptShard is a wdsShard as an index file holds it.
type keptShard struct {
	Samples []keptSample
	Endless bool
}

// keptSample is a wdsSample.
type keptSample struct {
	Name      string
	Off, Size int64
	Label     string
	Err       string
}

// shard returns what is in a shard, from the folder of indices where it has that.
func (s *WebDataset) shard(ctx context.Context, path string, f storage.File) (wdsShard, error) {
	kept := ""
	if s.Index != "" && f.Version() != "" {
		// What is found follows from these alone.
		key := fmt.Sprintf("%q %d %q %q %q %q %q", path, f.Size(), f.Version(), s.Data, s.Label, s.LabelKey, s.Labels)
		kept = filepath.Join(string(s.Index), fmt.Sprintf("%x.index", sha256.Sum256([]byte(key))))
		found, err := readIndex(kept)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errDamaged) {
			return found, err
		}
	}
	found, err := s.index(ctx, f, window(path), math.MaxInt)
	if err == nil && kept != "" {
		err = writeIndex(kept, found)
	}
	return found, err
}

var errDamaged = errors.New("the index is damaged")

// readIndex reads an index file: a checksum and a gob.
func readIndex(path string) (wdsShard, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return wdsShard{}, err
	}
	if len(data) < 8 || binary.LittleEndian.Uint64(data) != xxh3.Hash(data[8:]) {
		return wdsShard{}, errDamaged
	}
	var kept keptShard
	if err := gob.NewDecoder(bytes.NewReader(data[8:])).Decode(&kept); err != nil {
		return wdsShard{}, errDamaged
	}
	found := wdsShard{make([]wdsSample, len(kept.Samples)), kept.Endless}
	for i, k := range kept.Samples {
		found.samples[i] = wdsSample{name: k.Name, off: k.Off, size: k.Size, label: k.Label}
		if k.Err != "" {
			found.samples[i].err = errors.New(k.Err)
		}
	}
	return found, nil
}

// writeIndex writes an index file, which is there whole or not at all.
func writeIndex(path string, found wdsShard) error {
	kept := keptShard{make([]keptSample, len(found.samples)), found.endless}
	for i, s := range found.samples {
		kept.Samples[i] = keptSample{Name: s.name, Off: s.off, Size: s.size, Label: s.label}
		if s.err != nil {
			kept.Samples[i].Err = s.err.Error()
		}
	}
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	if err := gob.NewEncoder(&b).Encode(kept); err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(b.Bytes(), xxh3.Hash(b.Bytes()[8:]))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("keeping the index: %w", err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".index-*")
	if err != nil {
		return fmt.Errorf("keeping the index: %w", err)
	}
	_, err = temporary.Write(b.Bytes())
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("keeping the index: %w", errors.Join(err, os.Remove(temporary.Name())))
	}
	return nil
}
