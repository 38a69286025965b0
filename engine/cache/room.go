package cache

import (
	"cmp"
	"slices"
)

// room says where in a file there is room for records, within a limit on what they take together.
type room struct {
	limit int64 // bytes; 0: none
	used  int64
	end   int64  // of the last record
	holes []span // in front of it, in order; no two touch
}

type span struct{ at, n int64 }

// aligned returns how much room n bytes take.
func aligned(n int64) int64 { return max((n+alignment-1)/alignment, 1) * alignment }

// fits reports whether n bytes more keep within the limit.
func (r *room) fits(n int64) bool { return r.limit == 0 || r.used+aligned(n) <= r.limit }

// take returns where n bytes go: into the first hole that is large enough, or behind all others.
func (r *room) take(n int64) int64 {
	n = aligned(n)
	r.used += n
	for i := range r.holes {
		if h := &r.holes[i]; h.n >= n {
			at := h.at
			h.at, h.n = h.at+n, h.n-n
			if h.n == 0 {
				r.holes = slices.Delete(r.holes, i, i+1)
			}
			return at
		}
	}
	at := r.end
	r.end += n
	return at
}

// give takes n bytes back that lie at a place.
func (r *room) give(at, n int64) {
	n = aligned(n)
	r.used -= n
	i, _ := slices.BinarySearchFunc(r.holes, at, func(h span, at int64) int { return cmp.Compare(h.at, at) })
	r.holes = slices.Insert(r.holes, i, span{at, n})
	if i+1 < len(r.holes) && at+n == r.holes[i+1].at {
		r.holes[i].n += r.holes[i+1].n
		r.holes = slices.Delete(r.holes, i+1, i+2)
	}
	if i > 0 && r.holes[i-1].at+r.holes[i-1].n == at {
		r.holes[i-1].n += r.holes[i].n
		r.holes = slices.Delete(r.holes, i, i+1)
	}
	if last := len(r.holes) - 1; r.holes[last].at+r.holes[last].n == r.end {
		r.end = r.holes[last].at
		r.holes = r.holes[:last]
	}
}
