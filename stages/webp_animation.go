package stages

import (
	"encoding/binary"
	"errors"
)

// animation is the first frame of an animated WebP file.
type animation struct {
	still     []byte // it alone, as a file, without its alpha
	left, top int    // its place
	h, w      int    // of the whole picture
}

// animationOf returns the first frame of a WebP file, if it is animated. (WebP Container Specification, 2023)
func animationOf(file []byte) (animation, bool) {
	const header, animated = 12, 0x02
	u24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
	name, data, rest := webpChunk(file[header:])
	if name != "VP8X" || len(data) < 10 || data[0]&animated == 0 {
		return animation{}, false
	}
	a := animation{w: 1 + u24(data[4:]), h: 1 + u24(data[7:])}
	for len(rest) > 0 {
		if name, data, rest = webpChunk(rest); name != "ANMF" || len(data) < 16 {
			continue
		}
		a.left, a.top = 2*u24(data), 2*u24(data[3:])
		for inner := data[16:]; len(inner) > 0; {
			whole := inner
			if name, _, inner = webpChunk(inner); name != "VP8 " && name != "VP8L" {
				continue
			}
			chunk := whole[:len(whole)-len(inner)]
			a.still = append([]byte("RIFF\x00\x00\x00\x00WEBP"), chunk...)
			binary.LittleEndian.PutUint32(a.still[4:], uint32(len("WEBP")+len(chunk)))
			return a, true
		}
		break
	}
	return a, true
}

// webpChunk parts the first of a WebP file's chunks from what follows it. A chunk that isn't whole has no name, and nothing follows it.
func webpChunk(chunks []byte) (name string, data, rest []byte) {
	if len(chunks) < 8 {
		return "", nil, nil
	}
	size := int64(binary.LittleEndian.Uint32(chunks[4:]))
	if size > int64(len(chunks)-8) {
		return "", nil, nil
	}
	return string(chunks[:4]), chunks[8 : 8+size], chunks[min(8+size+size%2, int64(len(chunks))):]
}

// decode leaves the picture in out. It is black around the frame.
func (a *animation) decode(limit int, out *Element) error {
	if err := checkPixels(a.w, a.h, limit); err != nil {
		return err
	}
	if a.still == nil {
		return errors.New("decoding WebP: the animation has no whole first frame")
	}
	var frame Element
	if err := decodeOther(webpFormat, a.still, limit, &frame); err != nil {
		return err
	}
	src := pixelsOf(&frame)
	if a.left+src.w > a.w || a.top+src.h > a.h {
		return errors.New("decoding WebP: the animation's first frame reaches beyond the picture")
	}
	clear(out.Image(a.h, a.w))
	dst := pixelsOf(out).crop(box{a.top, a.left, src.h, src.w})
	for y := range src.h {
		copy(dst.row(y), src.row(y))
	}
	return nil
}
