//go:build cgo && !purejpeg

#include "jpeg_turbo.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

struct jpeg_decoder {
	struct jpeg_decompress_struct info;
	struct jpeg_error_mgr errors;
	struct jpeg_source_mgr source;
	struct jpeg_progress_mgr progress;
	jmp_buf failed;
	char message[JMSG_LENGTH_MAX];
};

static const char truncated[] = "the file is truncated";

static void fail(j_common_ptr info) {
	jpeg_decoder *d = info->client_data;
	int parameter = info->err->msg_parm.i[0];
	switch (info->err->msg_code) {
	case JERR_SOF_UNSUPPORTED:
		snprintf(d->message, sizeof d->message, "lossless or hierarchical coding (SOF%d) isn't supported: convert the file", parameter - 0xc0);
		break;
	case JERR_BAD_PRECISION:
		snprintf(d->message, sizeof d->message, "samples of %d bits aren't supported: convert the file to 8", parameter);
		break;
	default:
		info->err->format_message(info, d->message);
	}
	longjmp(d->failed, 1);
}

// Warnings, such as stray bytes before a marker, are no errors, as in PIL.
static void ignore_message(j_common_ptr info, int level) {
	(void)info;
	(void)level;
}

static void nothing(j_decompress_ptr info) { (void)info; }

// The whole file is there from the start. At its end the library has to stop: its calls return early, which tells a
// truncated file from a damaged one.
static boolean no_more_input(j_decompress_ptr info) {
	(void)info;
	return FALSE;
}

static void skip_input(j_decompress_ptr info, long n) {
	struct jpeg_source_mgr *s = info->src;
	if (n <= 0) return;
	if ((size_t)n > s->bytes_in_buffer) n = (long)s->bytes_in_buffer;
	s->next_input_byte += n;
	s->bytes_in_buffer -= (size_t)n;
}

// A progressive file may hold any number of scans over all its pixels in a few bytes each. No encoder makes more than a
// few dozen.
static void limit_scans(j_common_ptr info) {
	jpeg_decoder *d = info->client_data;
	if (d->info.input_scan_number > 500) {
		snprintf(d->message, sizeof d->message, "more than 500 scans");
		longjmp(d->failed, 1);
	}
}

jpeg_decoder *jpeg_decoder_new(void) {
	jpeg_decoder *d = calloc(1, sizeof *d);
	if (d == NULL) return NULL;
	d->info.err = jpeg_std_error(&d->errors);
	d->errors.error_exit = fail;
	d->errors.emit_message = ignore_message;
	d->info.client_data = d;
	if (setjmp(d->failed)) {
		jpeg_decoder_free(d);
		return NULL;
	}
	jpeg_create_decompress(&d->info);
	d->source.init_source = nothing;
	d->source.fill_input_buffer = no_more_input;
	d->source.skip_input_data = skip_input;
	d->source.resync_to_restart = jpeg_resync_to_restart;
	d->source.term_source = nothing;
	d->info.src = &d->source;
	d->progress.progress_monitor = limit_scans;
	d->info.progress = &d->progress;
	return d;
}

void jpeg_decoder_free(jpeg_decoder *d) {
	jpeg_destroy_decompress(&d->info);
	free(d);
}

jpeg_header jpeg_decoder_header(jpeg_decoder *d, const unsigned char *data, size_t len) {
	jpeg_header h = {0};
	jpeg_abort_decompress(&d->info); // the file before may have been too large to go on with
	d->source.next_input_byte = data;
	d->source.bytes_in_buffer = len;
	if (setjmp(d->failed)) {
		h.error = d->message;
		return h;
	}
	if (jpeg_read_header(&d->info, TRUE) == JPEG_SUSPENDED) {
		h.error = truncated;
		return h;
	}
	h.width = (int)d->info.image_width;
	h.height = (int)d->info.image_height;
	// Chroma of less than half the height or width, reduced, is skipped and cropped wrongly by libjpeg-turbo (as of 2.1.5).
	h.reducible = 1;
	for (int c = 0; c < d->info.num_components; c++) {
		jpeg_component_info *component = &d->info.comp_info[c];
		if (component->h_samp_factor > 2 || component->v_samp_factor > 2) h.reducible = 0;
	}
	return h;
}

// Four components are CMYK, inverted as Adobe writes it: 255 is no ink. PIL's formula, in which the product is divided
// by 255 with rounding.
static void cmyk_to_rgb(unsigned char *rgb, const unsigned char *cmyk, int width) {
	for (int x = 0; x < width; x++, rgb += 3, cmyk += 4) {
		int light = cmyk[3];
		for (int c = 0; c < 3; c++) {
			int t = (255 - cmyk[c]) * light + 128;
			rgb[c] = (unsigned char)(light - (((t >> 8) + t) >> 8));
		}
	}
}

// start_pixels returns whether all came that stands before the first row.
static boolean start_pixels(jpeg_decoder *d) {
	d->info.out_color_space = d->info.num_components == 4 ? JCS_CMYK : JCS_RGB;
	return jpeg_start_decompress(&d->info);
}

// read_rows reads the next rows, and returns whether all of them came.
static boolean read_rows(jpeg_decoder *d, unsigned char *pixels, size_t stride, JDIMENSION rows) {
	j_decompress_ptr info = &d->info;
	JSAMPARRAY inks = NULL;
	if (info->out_color_space == JCS_CMYK) inks = info->mem->alloc_sarray((j_common_ptr)info, JPOOL_IMAGE, info->output_width * 4, 1);
	for (; rows > 0; rows--, pixels += stride) {
		JSAMPROW row = pixels;
		if (jpeg_read_scanlines(info, inks ? inks : &row, 1) == 0) return FALSE;
		if (inks) cmyk_to_rgb(row, inks[0], (int)info->output_width);
	}
	return TRUE;
}

// read_pixels returns whether all rows came.
static boolean read_pixels(jpeg_decoder *d, unsigned char *pixels) {
	j_decompress_ptr info = &d->info;
	if (!start_pixels(d) || !read_rows(d, pixels, (size_t)info->output_width * 3, info->output_height)) return FALSE;
	jpeg_finish_decompress(info); // damage after the pixels is an error; a missing end is none
	return TRUE;
}

// read_part returns whether all rows of the part came.
static boolean read_part(jpeg_decoder *d, jpeg_part *part, unsigned char *pixels, size_t stride) {
	// Chroma is interpolated between neighbours, for which a row's first and last pixel have none.
	enum { neighbours = 4 };
	j_decompress_ptr info = &d->info;
	info->scale_num = 1;
	info->scale_denom = (unsigned)part->denominator;
	if (!start_pixels(d)) return FALSE;
	JDIMENSION left = part->left < neighbours ? 0 : (JDIMENSION)(part->left - neighbours);
	JDIMENSION right = (JDIMENSION)(part->left + part->width + neighbours);
	if (right > info->output_width) right = info->output_width;
	JDIMENSION width = right - left;
	if (width < info->output_width) jpeg_crop_scanline(info, &left, &width);
	part->before = part->left - (int)left;
	if (part->top > 0) jpeg_skip_scanlines(info, (JDIMENSION)part->top);
	return read_rows(d, pixels, stride, (JDIMENSION)part->height);
}

static void go_on(jpeg_decoder *d, const unsigned char *data, size_t len) {
	d->source.next_input_byte = data + (len - d->source.bytes_in_buffer); // anew, for none is kept from call to call
}

const char *jpeg_decoder_pixels(jpeg_decoder *d, const unsigned char *data, size_t len, unsigned char *pixels) {
	const char *error = NULL;
	go_on(d, data, len);
	if (setjmp(d->failed)) {
		jpeg_abort_decompress(&d->info);
		return d->message;
	}
	if (!read_pixels(d, pixels)) error = truncated;
	jpeg_abort_decompress(&d->info);
	return error;
}

const char *jpeg_decoder_part(jpeg_decoder *d, const unsigned char *data, size_t len, jpeg_part *part, unsigned char *pixels, size_t stride) {
	const char *error = NULL;
	go_on(d, data, len);
	if (setjmp(d->failed)) {
		jpeg_abort_decompress(&d->info);
		return d->message;
	}
	if (!read_part(d, part, pixels, stride)) error = truncated;
	jpeg_abort_decompress(&d->info);
	return error;
}
