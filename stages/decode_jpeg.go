package stages

import "errors"

// DecodeJPEG holds the attributes of `prepare "decode_jpeg"`.
type DecodeJPEG struct {
	ExifOrientation bool `hcl:"exif_orientation,optional" doc:"Turn and mirror the picture as its EXIF orientation says. torchvision doesn't."`
	MaxPixels       int  `hcl:"max_pixels,optional" min:"1" doc:"A picture of more pixels is an error, found before memory is taken for it."`
}

func decodeJPEGOperator() Operator {
	return Operator{
		Block:   Prepare,
		Type:    "decode_jpeg",
		Summary: "Decodes JPEG files to RGB images.",
		Doc: `As PIL's ` + "`Image.open(f).convert(\"RGB\")`" + `, which torchvision's ` + "`ImageFolder`" + ` calls: greyscale becomes RGB, CMYK and YCCK are taken as Adobe
writes them, the colour profile is left aside. With the same libjpeg-turbo the pixels are PIL's, bit for bit.

A truncated file is an error, as are damaged headers; stray or damaged bytes within the picture that libjpeg-turbo only warns about are not,
as in PIL. So are more than 500 scans, which only an attacker would write, samples of 12 bits and lossless coding.

A build without libjpeg-turbo (the build tag ` + "`purejpeg`" + `, or no cgo) decodes with Go's image/jpeg. It is two to three times as slow, does not interpolate
chroma, so that edges in colour differ, is stricter about damaged files, and has neither arithmetic coding nor all ways of subsampling.`,
		New: func() any { return &DecodeJPEG{MaxPixels: maxDecoded} },
	}
}

// Output returns the type of an image of any size.
func (s *DecodeJPEG) Output(in Type) (Type, error) { return decodedType(in) }

// New makes an instance for one worker.
func (s *DecodeJPEG) New() (Stage, error) {
	j, err := newJPEGDecoder()
	if err != nil {
		return nil, err
	}
	decode := func(data []byte, limit int, out *Element) error {
		if err := checkJPEG(data); err != nil {
			return err
		}
		return j.decode(data, limit, out)
	}
	return &decoder{limit: s.MaxPixels, upright: s.ExifOrientation, decode: decode, jpeg: j}, nil
}

// checkJPEG returns an error for a file that is something else.
func checkJPEG(data []byte) error {
	switch f := formatOf(data); f {
	case jpegFormat:
		return nil
	case "":
		return errors.New("not a JPEG file" + foreign(data))
	default:
		return errors.New("not a JPEG but a " + string(f) + " file: use decode_image, which reads both")
	}
}
