package python

import (
	"archive/zip"
	"bytes"
	"embed"
	"fmt"
)

//go:embed pipectl_python/*.py
var helper embed.FS

// helperZip returns the helper as a zip file, which Python imports from.
func helperZip() ([]byte, error) {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	if err := z.AddFS(helper); err != nil {
		return nil, fmt.Errorf("packing the Python helper: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("packing the Python helper: %w", err)
	}
	return buf.Bytes(), nil
}
