//go:build !cgo || purejpeg

package stages

import "strings"

// stricter reports whether the JPEG decoder may refuse a picture that PIL decodes.
func stricter(name string) bool {
	return name == "hole.jpg" || name == "2x4.jpg" || strings.HasSuffix(name, "arithmetic.jpg")
}

// tolerance returns by how much a picture may differ from PIL's, in the mean: Go's decoder doesn't interpolate chroma,
// which is much in pictures as small as these.
func tolerance(name string) float64 {
	if strings.HasSuffix(name, ".jpg") {
		return 8
	}
	return 0
}
