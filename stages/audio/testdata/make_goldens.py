#!/usr/bin/python3
"""Makes the files of this folder: sound files, and what torchaudio makes of them and of wave.f32.

Needs torchaudio 0.13.1 (with torch 1.13.0), soundfile 0.12.1 (with libsndfile 1.2.0) and the program flac 1.4.2: Debian 12's
python3-torchaudio, python3-soundfile and flac. *.f32 are little-endian float32 values, one channel after the other. Files
with floats differ from time to time, because libsndfile writes the time into them.
"""
import os
import struct
import subprocess

import numpy as np
import soundfile
import torch
import torchaudio
from torchaudio import functional, transforms

os.chdir(os.path.dirname(os.path.abspath(__file__)))
torchaudio.set_audio_backend("soundfile")
random = np.random.default_rng(6)


def save(name, values):
    np.asarray(values, dtype="<f4").tofile(name + ".f32")


def sound(channels, samples):
    """Two falling tones with some noise; the channels are alike."""
    t = np.arange(samples) / 16000
    x = 0.6 * np.sin(2 * np.pi * (2000 - 20000 * t) * t) + 0.2 * np.sin(2 * np.pi * 440 * t)
    return np.stack([(1 - 0.1 * c) * x + 0.02 * random.standard_normal(samples) for c in range(channels)])


# Files of each format, with torchaudio's samples.
small = np.clip(sound(2, 60) * 1.2, -1, 1)
small[:, :3] = [[-1, 1, 0], [0.5, -1, 1]]
for name, kind, subtype in [
    ("u8", "WAV", "PCM_U8"), ("s16", "WAV", "PCM_16"), ("s24", "WAV", "PCM_24"), ("s32", "WAV", "PCM_32"),
    ("f32", "WAV", "FLOAT"), ("f64", "WAV", "DOUBLE"), ("extensible16", "WAVEX", "PCM_16"), ("extensible24", "WAVEX", "PCM_24"),
    ("extensible_f32", "WAVEX", "FLOAT"), ("rf64", "RF64", "PCM_16"),
]:
    values = small * 1.5 if subtype in ("FLOAT", "DOUBLE") else small
    soundfile.write(name + ".wav", values.T, 16000, subtype=subtype, format=kind)
    save(name + ".wav", torchaudio.load(name + ".wav")[0])
for subtype in "PCM_S8", "PCM_16", "PCM_24":
    name = "flac_" + subtype[4:].lower()
    soundfile.write(name + ".flac", small.T, 16000, subtype=subtype, format="FLAC")
    save(name + ".flac", torchaudio.load(name + ".flac")[0])

# All codes of telephony's formats.
for name, code in ("alaw", 6), ("mulaw", 7):
    with open(name + ".wav", "wb") as f:
        f.write(struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 292, b"WAVE", b"fmt ", 16, code, 1, 8000, 8000, 1, 8, b"data", 256) + bytes(range(256)))
    save(name + ".wav", torchaudio.load(name + ".wav")[0])

# FLAC files that use every part of the format. Their headers state the MD5 sums of their samples.
def flac(name, samples, bits, *options, unknown=False):
    samples = np.asarray(samples, dtype=np.int64)
    if samples.ndim == 1:
        samples = samples[None]
    width = (bits + 7) // 8
    raw = b"".join(struct.pack("<q", int(v))[:width] for v in samples.T.flatten())
    command = ["flac", "--silent", "--force", "--no-padding", "--no-seektable", "--force-raw-format", "--endian=little", "--sign=signed",
               f"--channels={len(samples)}", f"--bps={bits}", "--sample-rate=44100", *options]
    if unknown:  # written to a pipe, so that the header can't be completed
        out = subprocess.run([*command, "--stdout", "-"], input=raw, stdout=subprocess.PIPE, check=True).stdout
        open(name + ".flac", "wb").write(out)
    else:
        subprocess.run([*command, "-o", name + ".flac", "-"], input=raw, check=True)


pcm16 = np.round(sound(2, 1500) * 20000)
flac("fixed", pcm16, 16, "-0", "-b", "192")
flac("linear", pcm16, 16, "-8", "-b", "576", "-l", "32", "--lax")
flac("mid_side", np.round(np.stack([pcm16[0], pcm16[0] * 0.98]))[:, :700], 16, "-5", "-m")
flac("left_side", np.round(np.stack([pcm16[0], pcm16[0] + 3 * random.standard_normal(1500)]))[:, :700], 16, "-3", "-M")
flac("noise", random.integers(-32768, 32768, 400), 16, "-5")
flac("silence", np.concatenate([np.zeros(9000), pcm16[0, :300]]), 16, "-5", "-b", "1000")
flac("wasted", pcm16[:, :500] * 16 // 16 * 16, 24, "-5")
flac("bits24", np.round(sound(2, 500) * 8000000), 24, "-8")
flac("bits32", np.round(sound(2, 300) * 2000000000), 32, "-5")
flac("channels5", np.round(sound(5, 200) * 20000), 16, "-5")
flac("many_frames", np.tile(pcm16[0], 2)[:2200], 16, "-5", "-b", "16", "--lax")
t = np.arange(400) / 200 - 1
flac("smooth", np.round(8000000 * (t**4 - 0.5 * t**3 - 0.3)), 24, "-0")
flac("clicks", np.where(np.arange(900) % 150 == 149, 70, 0), 16, "-5")
flac("unknown_length", pcm16[:1, :700], 16, "-5", unknown=True)

# What the operators make of wave.f32.
wave = torch.from_numpy(sound(2, 1200).astype(np.float32))
wave[:, 700:] *= 1e-3
save("wave", wave)
for orig, new in [(44100, 16000), (16000, 22050), (48000, 44100), (3, 1)]:
    save(f"resample_{orig}_{new}", transforms.Resample(orig, new)(wave)[0])
for name, options in {
    "default": {},
    "slaney": dict(n_fft=512, win_length=400, hop_length=160, n_mels=80, norm="slaney", mel_scale="slaney"),
    "odd": dict(n_fft=441, hop_length=150, n_mels=23, f_min=60.0, f_max=7600.0, power=1.0),
    "cubes": dict(n_fft=420, win_length=301, n_mels=40, power=3.0),
    "narrow": dict(sample_rate=22050, n_fft=1024, hop_length=256, n_mels=64, mel_scale="slaney"),
}.items():
    mel = transforms.MelSpectrogram(**options)(wave)
    save(f"mel_{name}", mel)
    if name == "default":
        save("db_power", transforms.AmplitudeToDB()(mel))
        save("db_magnitude_30", transforms.AmplitudeToDB("magnitude", top_db=30.0)(mel))

# Where masks lie, for given random numbers: width and place as numbers in [0, 1), limit, size, start, end.
rows = []
spectrogram = torch.ones(1, 10, 50)
for limit, axis in [(1, 2), (7, 2), (50, 2), (10, 1), (4, 1), (90, 2), (13, 1)]:
    for u, v in random.random((8, 2)).astype(np.float32):
        numbers = iter([u, v])
        torch_rand, torch.rand = torch.rand, lambda n: torch.tensor([next(numbers)])
        masked = functional.mask_along_axis(spectrogram, limit, 0.0, axis)
        torch.rand = torch_rand
        line = masked[0].amax(dim=2 - axis)
        hidden = torch.nonzero(line == 0).flatten().tolist()
        size = spectrogram.shape[axis]
        rows.append((u, v, limit, size, hidden[0] if hidden else -1, len(hidden)))
save("masks", rows)
