package audio

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/pipectl/pipectl/stages"
)

// Folder holds the attributes of `load "audio_folder"`.
type Folder struct {
	Path    stages.Path `hcl:"path" doc:"The folder with one sub-folder per class; s3://bucket/folder is one in an S3 bucket."`
	Shuffle bool        `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

func audioFolderOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Load,
		Type:    "audio_folder",
		Summary: "Reads audio files from one folder per class.",
		Doc: `As ` + "`image_folder`" + ` reads images: the sub-folders of ` + "`path`" + ` are the classes, labelled 0, 1, … in the order of their names, and the items of a
class are the files anywhere below its folder whose names end in .wav or .flac, in upper or lower case. Hidden files and folders are left out, as are
other formats: convert them to FLAC. A folder in an S3 bucket is read as ` + "`image_folder`" + ` does.`,
		New: func() any { return new(Folder) },
	}
}

// folder says what is looked for.
func (s *Folder) folder() stages.ClassFolder {
	return stages.ClassFolder{Path: s.Path, Kind: "audio file", Match: isAudio}
}

// Validate reports a folder that is missing, can't be read, or holds no class.
func (s *Folder) Validate() []stages.Problem { return s.folder().Validate() }

// Output returns the type of a file.
func (s *Folder) Output() stages.Type { return stages.Type{Kind: stages.Encoded} }

// Shuffled reports whether each epoch's items come in a new order.
func (s *Folder) Shuffled() bool { return s.Shuffle }

// Open lists the files.
func (s *Folder) Open(ctx context.Context, _ uint64) (stages.Source, error) {
	return s.folder().Open(ctx)
}

func isAudio(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".wav", ".flac":
		return true
	}
	return false
}
