// A JPEG decoder on libjpeg-turbo that gives what PIL's Image.open(f).convert("RGB") gives. No function calls back into
// Go, and none keeps a pointer to data or pixels when it returns.

#ifndef PIPECTL_JPEG_TURBO_H
#define PIPECTL_JPEG_TURBO_H

#include <stddef.h>

typedef struct jpeg_decoder jpeg_decoder;

typedef struct {
	int width, height;
	int reducible; // whether jpeg_decoder_part takes denominators above 1
	const char *error; // NULL if it went well; it stays as it is until the decoder's next call
} jpeg_header;

// jpeg_decoder_new returns NULL if memory or the library doesn't allow for one.
jpeg_decoder *jpeg_decoder_new(void);
void jpeg_decoder_free(jpeg_decoder *d);

// jpeg_decoder_header reads a file up to its pixels.
jpeg_header jpeg_decoder_header(jpeg_decoder *d, const unsigned char *data, size_t len);

// jpeg_decoder_pixels goes on with the file whose header was read, and leaves height rows of width RGB pixels.
const char *jpeg_decoder_pixels(jpeg_decoder *d, const unsigned char *data, size_t len, unsigned char *pixels);

// jpeg_part is a part of a picture, in pixels of the picture reduced by the denominator.
typedef struct {
	int denominator; // 1, or 2, 4 or 8 where the file is reducible
	int left, top, width, height;
	int before; // set by the decoder: pixels that lie before the part in each row
} jpeg_part;

// jpeg_part_margin is how many pixels a decoded row may have besides the part's.
enum { jpeg_part_margin = 40 };

// jpeg_decoder_part goes on with the file whose header was read, and leaves the part's rows, stride bytes apart. It reads the file
// no further than for the last of them, and spares most of the work on what lies around the part. The file must end with the marker
// EOI.
const char *jpeg_decoder_part(jpeg_decoder *d, const unsigned char *data, size_t len, jpeg_part *part, unsigned char *pixels, size_t stride);

#endif
