package results

import (
	"strings"
	"time"
)

// crockford is Crockford's base 32 alphabet, which leaves out the letters that are taken for digits.
// Source: https://www.crockford.com/base32.html
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// idLength is how many characters an id has.
const idLength = 10

// newID makes an id: 32 bits of the time in seconds, which last until the year 2106, then 18 random bits,
// so that ids sort by time and processes rarely draw the same.
func newID(t time.Time, random uint32) string {
	v := uint64(uint32(t.Unix()))<<18 | uint64(random>>14)
	var id [idLength]byte
	for i := range id {
		id[i] = crockford[v>>(5*(idLength-1-i))&31]
	}
	return string(id[:])
}

// normalizeID reads an id, or the start of one, as Crockford's alphabet is read: in either case, o as 0, i and l as 1. It
// returns "" for what can't be one.
func normalizeID(s string) string {
	s = strings.NewReplacer("o", "0", "i", "1", "l", "1").Replace(strings.ToLower(s))
	if strings.Trim(s, crockford) != "" {
		return ""
	}
	return s
}
