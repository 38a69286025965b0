package stages

import (
	"os"
	"strings"
	"testing"
)

// Linux gives the size of a file in /sys as a page, and less can be read from it: as from one that shrinks.
func TestReadFileShrinks(t *testing.T) {
	const path = "/sys/devices/system/cpu/online"
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		t.Fatal("no file with less in it than its size says", err)
	}
	err = (&folderSource{kind: "image"}).read(path, new(Element))
	if err == nil || !strings.HasPrefix(err.Error(), "the file shrank while it was read, from 4096 bytes to ") {
		t.Errorf("error %v, want one that says that the file shrank", err)
	}
}
