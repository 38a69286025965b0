package stages

import "errors"

// DecodeRandomResizedCrop holds the attributes of `augment "decode_random_resized_crop"`.
type DecodeRandomResizedCrop struct {
	RandomResizedCrop
	DecodeJPEG
}

func decodeRandomResizedCropOperator() Operator {
	return Operator{
		Block:   Augment,
		Type:    "decode_random_resized_crop",
		Summary: "Decodes a random part of a JPEG file's picture and resizes it.",
		Doc: `It does the work of ` + "`decode_jpeg`" + ` and ` + "`random_resized_crop`" + ` one after the other, and saves most of that on what is cropped away: the pixels
above the crop and beside it are never made, and what the file has below it isn't read. From the same random numbers the crop is the same, and the
result is the same, bit for bit, but in two cases:

- Where the crop has at least 4 times the height and width of the result, the picture is decoded at half its size, from 8 times on at a quarter,
  from 16 times on at an eighth: at least twice the result's, from which it is resized, antialiased, as ever. That takes much less time. Photos then
  differ by 0.2 to 0.7 of 255 levels in the mean. It isn't done with ` + "`interpolation = \"nearest\"`" + `, where chroma has less than half of the
  picture's height or width, and in a build without libjpeg-turbo.
- Damage below the crop isn't found. A file that ends early is an error all the same.`,
		New: func() any {
			return &DecodeRandomResizedCrop{
				*randomResizedCropOperator().New().(*RandomResizedCrop),
				*decodeJPEGOperator().New().(*DecodeJPEG),
			}
		},
	}
}

// Output returns an image's type.
func (s *DecodeRandomResizedCrop) Output(in Type) (Type, error) {
	if _, err := decodedType(in); err != nil {
		return Type{}, err
	}
	return ImageType(square(s.Size)), nil
}

// New makes an instance for one worker.
func (s *DecodeRandomResizedCrop) New() (Stage, error) {
	j, err := newJPEGDecoder()
	if err != nil {
		return nil, err
	}
	return &croppingDecoder{spec: *s, jpeg: j, resampler: newResampler(s.Interpolation)}, nil
}

type croppingDecoder struct {
	spec            DecodeRandomResizedCrop
	jpeg            *jpegDecoder
	resampler       *resampler
	stored, upright Element // the part that was decoded, as the file has it and as it is shown
}

func (c *croppingDecoder) Process(call *Call, in, out *Element) error {
	if len(in.U8) == 0 {
		return errors.New("the file is empty")
	}
	if err := checkJPEG(in.U8); err != nil {
		return err
	}
	var t turn
	if c.spec.ExifOrientation {
		t = turnOf(exifOrientation(in.U8))
	}
	var crop part
	src, denominator, err := c.jpeg.decodePart(in.U8, c.spec.MaxPixels, &c.stored, func(h, w int) part {
		h, w = t.size(h, w)
		b := c.spec.draw(call.Rand, h, w)
		crop = part{t.stored(b, h, w), c.denominator(b)}
		return crop
	})
	if err != nil {
		return err
	}
	if t != (turn{}) {
		t.show(&c.upright, src)
		src = pixelsOf(&c.upright)
	}
	out.Image(square(c.spec.Size))
	if denominator == 1 {
		c.resampler.resize(pixelsOf(out), src)
		return nil
	}
	down, across := crop.spans()
	down, across = t.spans(down, across, src.h, src.w)
	c.resampler.resizePart(pixelsOf(out), src, down, across)
	return nil
}

// denominator returns by how much the picture is reduced for a crop of b's size. What is left is antialiased by resizing alone, so
// it must be large enough for the coarser filter that comes before, the block's inverse DCT at a lower resolution, not to show.
func (c *croppingDecoder) denominator(b box) int {
	const reserve = 2
	h, w := square(c.spec.Size)
	d := 1
	for c.spec.Interpolation != "nearest" && d < 8 && b.Height >= 2*reserve*d*h && b.Width >= 2*reserve*d*w {
		d *= 2
	}
	return d
}

// Close frees the decoder's memory.
func (c *croppingDecoder) Close() error { return c.jpeg.Close() }
