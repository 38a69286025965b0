"""Makes the pictures here, and what PIL decodes each of them to (NAME.rgb: height and width as two big-endian uint16,
then the pixels), for TestDecode. Made with Pillow 9.4, libjpeg-turbo 2.1.5 and its cjpeg:

    python3 make.py
"""
import io, random, struct, subprocess
from pathlib import Path

from PIL import Image, ImageDraw, ImageOps, ImageStat

W, H = 37, 26
random.seed(1)


def picture(w=W, h=H):
    """Smooth colours, sharp edges and some noise."""
    im = Image.new("RGB", (w, h))
    im.putdata([(min(255, x * 6 + random.randrange(20)), min(255, y * 8 + random.randrange(20)), 255 - x * 3 - y * 3) for y in range(h) for x in range(w)])
    d = ImageDraw.Draw(im)
    d.rectangle([5, 4, 14, 12], fill=(250, 20, 30))
    d.ellipse([18, 8, 32, 22], fill=(10, 200, 240))
    return im


def expect(name, im):
    im = im.convert("RGB")
    with open(name + ".rgb", "wb") as f:
        f.write(struct.pack(">HH", im.height, im.width) + im.tobytes())


def put(name, data):
    with open(name, "wb") as f:
        f.write(data)
    expect(name, Image.open(name))


def encoded(im, fmt, **options):
    b = io.BytesIO()
    im.save(b, fmt, **options)
    return b.getvalue()


def sixteen(im, mode):
    """A PNG of 16 bits a channel, whose lower 8 bits are noise."""
    import zlib
    n = {"RGB": (2, 3), "RGBA": (6, 4)}[mode]
    px = im.convert(mode).tobytes()
    row = im.width * n[1]
    raw = b"".join(b"\0" + b"".join(bytes([v, random.randrange(256)]) for v in px[y * row:(y + 1) * row]) for y in range(im.height))
    chunk = lambda t, d: struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", im.width, im.height, 16, n[0], 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


rgb = picture()
alpha = rgb.copy()
alpha.putalpha(Image.linear_gradient("L").resize((W, H)))
exif = lambda o: b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01" + struct.pack(">H", o) + b"\0\0\0\0\0\0"

put("420.jpg", encoded(rgb, "JPEG", quality=90, subsampling=2))
put("422.jpg", encoded(rgb, "JPEG", quality=90, subsampling=1))
put("444.jpg", encoded(rgb, "JPEG", quality=90, subsampling=0))
put("progressive.jpg", encoded(rgb, "JPEG", quality=90, progressive=True))
put("grey.jpg", encoded(rgb.convert("L"), "JPEG", quality=90))
cmyk = encoded(rgb.convert("CMYK"), "JPEG", quality=95)
put("cmyk.jpg", cmyk)
adobe = cmyk.index(b"Adobe")
put("ycck.jpg", cmyk[:adobe + 11] + b"\2" + cmyk[adobe + 12:])
whole = encoded(rgb, "JPEG", quality=90)
put("trailing.jpg", whole + b"more bytes after the end")
middle = len(whole) * 3 // 4
put("hole.jpg", whole[:middle] + b"\xff\xd9")  # libjpeg warns of a premature end and fills the rest
put("stray.jpg", whole[:20] + b"stray" + whole[20:])
for name, options in {"arithmetic": "-arithmetic", "progressive-arithmetic": "-arithmetic -progressive", "restarts": "-restart 1B", "rgb": "-rgb", "4x2": "-sample 4x2", "2x4": "-sample 2x4"}.items():
    put(name + ".jpg", subprocess.run(["cjpeg", "-quality", "90", *options.split()], input=encoded(rgb, "PPM"), stdout=subprocess.PIPE, check=True).stdout)

put("rgb.png", encoded(rgb, "PNG"))
put("rgba.png", encoded(alpha, "PNG"))
put("grey.png", encoded(rgb.convert("L"), "PNG"))
put("greyalpha.png", encoded(alpha.convert("LA"), "PNG"))
put("bilevel.png", encoded(rgb.convert("1"), "PNG"))
put("palette.png", encoded(rgb.quantize(60), "PNG"))
put("palette4.png", encoded(rgb.quantize(12), "PNG", bits=4))
put("palettealpha.png", encoded(rgb.quantize(12), "PNG", transparency=bytes(range(0, 240, 20))))
put("colourkey.png", encoded(rgb, "PNG", transparency=(250, 20, 30)))
put("rgb16.png", sixteen(rgb, "RGB"))
put("rgba16.png", sixteen(rgb, "RGBA"))

put("palette.gif", encoded(rgb.quantize(60), "GIF"))
frames = [picture().quantize(16) for _ in range(3)]
put("animated.gif", encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], interlace=1))
gif = bytearray(encoded(rgb.quantize(30), "GIF"))
gif[6:10] = struct.pack("<HH", W + 9, H + 5)  # a screen larger than the frame
put("screen.gif", bytes(gif))

transparent = rgb.quantize(30)
put("transparent.gif", encoded(transparent, "GIF", transparency=transparent.getpixel((8, 8))))
# The same with the frame's own palette, in a screen larger than the frame.
gif = Path("transparent.gif").read_bytes()
table = gif[13:13 + (6 << (gif[10] & 7))]
control = gif[13 + len(table):]
frame = control.index(b"\x2c")
put("localpalette.gif", gif[:6] + struct.pack("<HH", W + 9, H + 5) + b"\0" + gif[11:13] + control[:frame + 9] + bytes([gif[10] & 0x87]) + table + control[frame + 10:])

put("rgb.bmp", encoded(rgb, "BMP"))
put("palette.bmp", encoded(rgb.quantize(60), "BMP"))
put("grey.bmp", encoded(rgb.convert("L"), "BMP"))

put("lossy.webp", encoded(rgb, "WEBP", quality=80))
put("lossyalpha.webp", encoded(alpha, "WEBP", quality=80))
put("lossless.webp", encoded(rgb, "WEBP", lossless=True))
put("animated.webp", encoded(alpha, "WEBP", save_all=True, append_images=[picture(), picture()]))
still = encoded(alpha, "WEBP", lossless=True, exact=True)
chunk = lambda name, data: name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
size = lambda n: struct.pack("<I", n)[:3]
frame = chunk(b"ANMF", size(3) + size(2) + size(W - 1) + size(H - 1) + size(100) + b"\0" + still[still.index(b"VP8L"):])
body = b"WEBP" + chunk(b"VP8X", b"\x12\0\0\0" + size(W + 8) + size(H + 6)) + chunk(b"ANIM", bytes(6)) + frame
put("place.webp", b"RIFF" + struct.pack("<I", len(body)) + body)  # a frame away from the upper left corner

put("rgb.tiff", encoded(rgb, "TIFF"))
put("lzw.tiff", encoded(rgb, "TIFF", compression="tiff_lzw"))
put("grey.tiff", encoded(rgb.convert("L"), "TIFF", compression="tiff_adobe_deflate"))
put("rgba.tiff", encoded(alpha, "TIFF"))
put("palette.tiff", encoded(rgb.quantize(60), "TIFF"))
put("bilevel.tiff", encoded(rgb.convert("1"), "TIFF", compression="group4"))
put("turned.tiff", encoded(rgb, "TIFF", tiffinfo={274: 6}))

# A picture each for the eight orientations: what is expected is what ImageOps.exif_transpose makes of it.
small = rgb.resize((7, 5))
for o in range(1, 9):
    name = f"orientation{o}.png"
    png = encoded(small, "PNG", exif=exif(o)[6:])
    with open(name, "wb") as f:
        f.write(png)
    expect(name, ImageOps.exif_transpose(Image.open(name)))
for name, data in {
    "orientation.jpg": encoded(small, "JPEG", quality=95, subsampling=0, exif=exif(6)),
    "orientation.webp": encoded(small, "WEBP", lossless=True, exif=exif(6)),
}.items():
    with open(name, "wb") as f:
        f.write(data)
    expect(name, ImageOps.exif_transpose(Image.open(name)))

# The photos of the demo: their size and the mean of each channel in each quarter.
with open("photos.txt", "w") as out:
    for f in sorted(Path("../../../examples/photos/photos").glob("*/*.jpg")):
        im = Image.open(f).convert("RGB")
        w, h = im.size
        quarters = [(0, 0, w // 2, h // 2), (w // 2, 0, w, h // 2), (0, h // 2, w // 2, h), (w // 2, h // 2, w, h)]
        means = [f"{m:.2f}" for q in quarters for m in ImageStat.Stat(im.crop(q)).mean]
        print(f.parent.name + "/" + f.name, h, w, *means, file=out)
