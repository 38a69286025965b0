package audio

import (
	"errors"
	"fmt"
)

// flacDecoder decodes FLAC files (RFC 9639). It keeps memory from file to file.
//
// It is our own because Go's library for the format, github.com/mewkiz/flac (1.0.14), takes two to three times as long and
// memory for every frame, and writes to the standard log about files of 24 kHz.
type flacDecoder struct {
	format
	bits   uint // of a sample
	file   []byte
	frames int // the offset of the first frame

	reader   bitReader
	channel  [8][]int64 // a frame's samples
	crc      checksums
	position int // samples decoded of each channel
}

var (
	errFLACEnd     = errors.New("the file is cut off")
	errFLACDamaged = errors.New("the file is damaged")
)

// flacStart returns where a FLAC file's mark is: at its start, or behind tags in ID3's format, which some programs put
// there. Without one it returns -1.
func flacStart(file []byte) int {
	at := 0
	for len(file)-at >= 10 && string(file[at:at+3]) == "ID3" {
		size, footer := 0, file[at+5]&0x10 != 0
		for _, b := range file[at+6 : at+10] {
			size = size<<7 | int(b&0x7F)
		}
		if at += 10 + size; footer {
			at += 10
		}
	}
	if at+4 > len(file) || string(file[at:at+4]) != "fLaC" {
		return -1
	}
	return at
}

// open reads a file's headers, of which the mark is at the byte start.
func (d *flacDecoder) open(file []byte, start int) (format, error) {
	d.file = file
	at, described := start+4, false
	for last := false; !last; {
		if len(file)-at < 4 {
			return format{}, fmt.Errorf("FLAC metadata at byte %d: %w", at, errFLACEnd)
		}
		head := file[at]
		size := int(file[at+1])<<16 | int(file[at+2])<<8 | int(file[at+3])
		if size > len(file)-at-4 {
			return format{}, fmt.Errorf("FLAC metadata at byte %d: %w", at, errFLACEnd)
		}
		if head&0x7F == 0 && size >= 18 {
			r := newBitReader(file, at+4+10)
			d.rate = int(r.read(20))
			d.channels = int(r.read(3)) + 1
			d.bits = uint(r.read(5)) + 1
			d.samples = int(r.read(36))
			described = true
		}
		at += 4 + size
		last = head&0x80 != 0
	}
	if !described || d.rate == 0 || d.bits < 4 {
		return format{}, fmt.Errorf("FLAC metadata doesn't describe the stream: %w", errFLACDamaged)
	}
	d.frames = at
	// Without a count of samples, or with one that memory shouldn't be taken for on trust, they are counted: few files
	// are compressed to less than a bit a sample.
	if d.samples == 0 || d.samples/8 > len(file) {
		if err := d.run(nil); err != nil {
			return format{}, err
		}
		d.samples = d.position
	}
	if d.samples == 0 {
		return format{}, errors.New("the file holds no samples")
	}
	return d.format, nil
}

// decode fills dst with the samples of the file that was opened, one channel after the other.
func (d *flacDecoder) decode(dst []float32) error { return d.run(dst) }

// run decodes all frames, to nowhere if dst is nil.
func (d *flacDecoder) run(dst []float32) error {
	d.reader, d.position = newBitReader(d.file, d.frames), 0
	scale := 1 / float32(int64(1)<<(d.bits-1))
	for d.position < d.samples || d.samples == 0 && d.reader.offset() < len(d.file) {
		start := d.reader.offset()
		n, err := d.frame()
		if err == nil && d.samples != 0 && n > d.samples-d.position {
			err = fmt.Errorf("it has more samples than the %d that the file states: %w", d.samples, errFLACDamaged)
		}
		if err != nil {
			return fmt.Errorf("FLAC frame at byte %d, sample %d of %d: %w", start, d.position, d.samples, err)
		}
		if dst != nil {
			for c := range d.channels {
				plane := dst[c*d.samples+d.position:][:n]
				for i, v := range d.channel[c][:n] {
					plane[i] = float32(v) * scale
				}
			}
		}
		d.position += n
	}
	return nil
}

// frame decodes the next frame, and returns its number of samples.
func (d *flacDecoder) frame() (int, error) {
	r := &d.reader
	start := r.offset()
	if start >= len(d.file) {
		return 0, errFLACEnd
	}
	n, assignment, err := d.frameHeader(start)
	if err != nil {
		return 0, err
	}
	for c := range d.channels {
		if cap(d.channel[c]) < n {
			d.channel[c] = make([]int64, n)
		}
		d.channel[c] = d.channel[c][:n]
		bits := d.bits
		if assignment == leftSide && c == 1 || assignment == sideRight && c == 0 || assignment == midSide && c == 1 {
			bits++ // the difference of two channels
		}
		if err := d.subframe(d.channel[c], bits); err != nil {
			return 0, err
		}
	}
	r.align()
	end := r.offset()
	stated := uint16(r.read(16))
	if r.ended {
		return 0, errFLACEnd
	}
	if d.crc.sum16(d.file[start:end]) != stated {
		return 0, fmt.Errorf("its checksum is wrong: %w", errFLACDamaged)
	}
	assignment.undo(d.channel[0], d.channel[1])
	return n, nil
}

// assignment says how the two channels of a stereo frame are stored, by its code in the frame's header.
type assignment uint64

const (
	leftSide  assignment = 8 + iota // left, left - right
	sideRight                       // left - right, right
	midSide                         // the mean, rounded down, and left - right
)

// undo makes left and right of a frame's two channels.
func (as assignment) undo(a, b []int64) {
	switch as {
	case leftSide:
		for i, side := range b {
			b[i] = a[i] - side
		}
	case sideRight:
		for i, side := range a {
			a[i] = b[i] + side
		}
	case midSide:
		for i, side := range b {
			mid := a[i]<<1 | side&1
			a[i], b[i] = (mid+side)>>1, (mid-side)>>1
		}
	}
}

// frameHeader reads the header of the frame that starts at the byte start.
func (d *flacDecoder) frameHeader(start int) (samples int, as assignment, err error) {
	r := &d.reader
	if r.read(15) != 0b111111111111100 {
		return 0, 0, fmt.Errorf("no frame starts there: %w", errFLACDamaged)
	}
	r.read(1) // whether blocks vary in size; each says its own
	sizeCode, rateCode := r.read(4), r.read(4)
	as = assignment(r.read(4))
	bitsCode := r.read(3)
	r.read(1)
	if ones := leadingOnes(byte(r.read(8))); ones > 1 { // the frame's number, coded like UTF-8
		r.read(8 * min(ones-1, 6))
	}
	switch {
	case sizeCode == 0:
		return 0, 0, fmt.Errorf("its size is missing: %w", errFLACDamaged)
	case sizeCode == 1:
		samples = 192
	case sizeCode <= 5:
		samples = 576 << (sizeCode - 2)
	case sizeCode == 6:
		samples = int(r.read(8)) + 1
	case sizeCode == 7:
		samples = int(r.read(16)) + 1
	default:
		samples = 256 << (sizeCode - 8)
	}
	switch rateCode { // the file's own rate holds
	case 12:
		r.read(8)
	case 13, 14:
		r.read(16)
	}
	end := r.offset()
	stated := uint8(r.read(8))
	switch channels := int(as) + 1; {
	case r.ended:
		return 0, 0, errFLACEnd
	case d.crc.sum8(d.file[start:end]) != stated:
		return 0, 0, fmt.Errorf("its header's checksum is wrong: %w", errFLACDamaged)
	case as >= leftSide && channels <= int(midSide)+1 && d.channels == 2:
	case channels != d.channels:
		return 0, 0, fmt.Errorf("its channels aren't the %d of the file: %w", d.channels, errFLACDamaged)
	}
	if bits := [8]uint{0, 8, 12, 0, 16, 20, 24, 32}[bitsCode]; bitsCode != 0 && bits != d.bits {
		return 0, 0, fmt.Errorf("its samples don't have the %d bits of the file: %w", d.bits, errFLACDamaged)
	}
	return samples, as, nil
}

func leadingOnes(b byte) (n uint) {
	for ; b&0x80 != 0; b <<= 1 {
		n++
	}
	return n
}

// checksums has the tables of FLAC's cyclic redundancy checks, made at their first use.
type checksums struct {
	made bool
	t8   [256]uint8
	t16  [8][256]uint16 // of a byte with 0 to 7 zeros after it
}

func (c *checksums) make() {
	for i := range 256 {
		a, b := uint8(i), uint16(i)<<8
		for range 8 {
			a = a<<1 ^ a>>7*0x07
			b = b<<1 ^ b>>15*0x8005
		}
		c.t8[i], c.t16[0][i] = a, b
	}
	for zeros := 1; zeros < 8; zeros++ {
		for i, b := range c.t16[zeros-1] {
			c.t16[zeros][i] = b<<8 ^ c.t16[0][b>>8]
		}
	}
	c.made = true
}

// sum8 checks headers: x⁸ + x² + x + 1.
func (c *checksums) sum8(p []byte) (sum uint8) {
	if !c.made {
		c.make()
	}
	for _, b := range p {
		sum = c.t8[sum^b]
	}
	return sum
}

// sum16 checks frames, whose headers were checked: x¹⁶ + x¹⁵ + x² + 1. It takes 8 bytes at a time.
func (c *checksums) sum16(p []byte) (sum uint16) {
	t := &c.t16
	for len(p) >= 8 {
		sum = t[7][p[0]^byte(sum>>8)] ^ t[6][p[1]^byte(sum)] ^ t[5][p[2]] ^ t[4][p[3]] ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]]
		p = p[8:]
	}
	for _, b := range p {
		sum = sum<<8 ^ t[0][byte(sum>>8)^b]
	}
	return sum
}
