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

// keptSample is a wdsSample as an index file holds it.
type keptSample struct {
	Name      string
	Off, Size int64
	Label     string
	Err       string
}

// samples returns the samples of a shard, from the folder of indices where it has them.
func (s *WebDataset) samples(ctx context.Context, path string, f storage.File) ([]wdsSample, error) {
	kept := ""
	if s.Index != "" && f.Version() != "" {
		// What is found follows from these alone.
		key := fmt.Sprintf("%q %d %q %q %q %q %q", path, f.Size(), f.Version(), s.Data, s.Label, s.LabelKey, s.Labels)
		kept = filepath.Join(string(s.Index), fmt.Sprintf("%x.index", sha256.Sum256([]byte(key))))
		samples, err := readIndex(kept)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errDamaged) {
			return samples, err
		}
	}
	samples, err := s.index(ctx, f, window(path), math.MaxInt)
	if err == nil && kept != "" {
		err = writeIndex(kept, samples)
	}
	return samples, err
}

var errDamaged = errors.New("the index is damaged")

// readIndex reads the samples in an index file: a checksum and a gob.
func readIndex(path string) ([]wdsSample, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) < 8 || binary.LittleEndian.Uint64(data) != xxh3.Hash(data[8:]) {
		return nil, errDamaged
	}
	var kept []keptSample
	if err := gob.NewDecoder(bytes.NewReader(data[8:])).Decode(&kept); err != nil {
		return nil, errDamaged
	}
	samples := make([]wdsSample, len(kept))
	for i, k := range kept {
		samples[i] = wdsSample{name: k.Name, off: k.Off, size: k.Size, label: k.Label}
		if k.Err != "" {
			samples[i].err = errors.New(k.Err)
		}
	}
	return samples, nil
}

// writeIndex writes an index file, which is there whole or not at all.
func writeIndex(path string, samples []wdsSample) error {
	kept := make([]keptSample, len(samples))
	for i, s := range samples {
		kept[i] = keptSample{Name: s.name, Off: s.off, Size: s.size, Label: s.label}
		if s.err != nil {
			kept[i].Err = s.err.Error()
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
