package stages

import (
	"context"
	"path/filepath"
	"strings"
)

// ImageFolder holds the attributes of `load "image_folder"`.
type ImageFolder struct {
	Path    Path `hcl:"path" doc:"The folder with one sub-folder per class; s3://bucket/folder is one in an S3 bucket."`
	Shuffle bool `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

func imageFolderOperator() Operator {
	return Operator{
		Block:   Load,
		Type:    "image_folder",
		Summary: "Reads image files from one folder per class.",
		Doc: `As torchvision's ` + "`ImageFolder`" + `: the sub-folders of ` + "`path`" + ` are the classes, labelled 0, 1, … in the order of their names, and the items of
a class are the files anywhere below its folder whose names end in .jpg, .jpeg, .png, .ppm, .bmp, .pgm, .tif, .tiff or .webp, in upper or lower
case, in torchvision's order. Links are followed. A class without an image is an error.

Unlike torchvision it leaves out hidden files and folders (` + "`._photo.jpg`, `.ipynb_checkpoints`" + `), what is no regular file, and links to a
folder that they lie in.

For a folder in an S3 bucket, the endpoint, region, profile and keys come from the environment (` + "`AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_PROFILE`, `AWS_ACCESS_KEY_ID`" + `, …)
and from Amazon's configuration files; without keys the bucket is read anonymously. Each item is one request, so that more ` + "`workers`" + ` have more of
them under way.`,
		New: func() any { return new(ImageFolder) },
	}
}

// folder says what is looked for.
func (s *ImageFolder) folder() ClassFolder {
	return ClassFolder{Path: s.Path, Kind: "image", Match: isImage}
}

// Validate reports a folder that is missing, can't be read, or holds no class.
func (s *ImageFolder) Validate() []Problem { return s.folder().Validate() }

// Output returns the type of a file.
func (s *ImageFolder) Output() Type { return Type{Kind: Encoded} }

// Shuffled reports whether each epoch's items come in a new order.
func (s *ImageFolder) Shuffled() bool { return s.Shuffle }

// Open lists the files.
func (s *ImageFolder) Open(ctx context.Context, _ uint64) (Source, error) {
	return s.folder().Open(ctx)
}

// isImage tells by a file's name whether torchvision takes it for an image (its IMG_EXTENSIONS).
func isImage(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp":
		return true
	}
	return false
}
