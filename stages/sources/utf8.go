package sources

import (
	"bufio"
	"errors"
	"fmt"
	"unicode/utf8"
)

// utf8Reader passes lines on as long as they are UTF-8. Its error says where one isn't.
type utf8Reader struct {
	r     *bufio.Reader
	lines int    // read
	line  []byte // the last of them, where the reader's own memory can't hold it
	rest  []byte // of the last line
	err   error  // after it
}

func (u *utf8Reader) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.next()
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// next reads a line.
func (u *utf8Reader) next() {
	u.rest, u.err = u.r.ReadSlice('\n')
	if errors.Is(u.err, bufio.ErrBufferFull) {
		u.line = u.line[:0]
		for errors.Is(u.err, bufio.ErrBufferFull) {
			u.line = append(u.line, u.rest...)
			u.rest, u.err = u.r.ReadSlice('\n')
		}
		u.line = append(u.line, u.rest...)
		u.rest = u.line
	}
	u.lines++
	if bad := notUTF8(u.rest); bad >= 0 {
		u.err = fmt.Errorf("line %d, column %d: the byte 0x%02x is not UTF-8; convert the file, as by iconv -f LATIN1 -t UTF-8", u.lines, utf8.RuneCount(u.rest[:bad])+1, u.rest[bad])
		u.rest = nil
	}
}

// notUTF8 returns the place of the first byte that isn't UTF-8, -1 where there is none.
func notUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for bad := 0; ; {
		r, n := utf8.DecodeRune(text[bad:])
		if r == utf8.RuneError && n <= 1 {
			return bad
		}
		bad += n
	}
}
