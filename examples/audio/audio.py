"""Turns WAV files into log-mel spectrograms in numpy. The sounds are synthesised in memory, so that nothing has to be fetched.

    python3 audio.py
"""
import io
import time
import wave

import numpy as np

RECORDED, RATE = 44100, 16000  # samples/s of the files, and of what the network gets
WINDOW, HOP, BANDS = 512, 160, 64


class Clips:
    """Sounds of one second in WAV files, each with its class: the number of its overtones."""

    def __init__(self, count=64, classes=8, seed=42):
        self.classes = [f"{overtones} overtones" for overtones in range(classes)]
        self.clips = [(wav(tone(np.random.default_rng([seed, i]), i % classes)), i % classes) for i in range(count)]

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, index):
        return self.clips[index]


def tone(rng, overtones):
    """A second of a note that dies away, and some noise."""
    seconds = np.arange(RECORDED) / RECORDED
    note = sum(np.sin(2 * np.pi * rng.uniform(100, 400) * n * seconds) / n for n in range(1, overtones + 2))
    return note * np.exp(-3 * seconds) / 3 + rng.normal(0, 0.01, RECORDED)


def wav(sound):
    """The bytes of a WAV file of 16 bits a sample."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RECORDED)
        file.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())
    return buffer.getvalue()


def decode(clip):
    """From a WAV file to float32 in -1…1."""
    data, label = clip
    with wave.open(io.BytesIO(data)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768, label


def kernel(old, new, zeros=32):
    """The filters of a resampler by windowed sinc, one for each of the new/gcd phases of an output sample: phases × taps."""
    step = np.gcd(old, new)
    old, new = old // step, new // step
    cutoff = min(old, new) * 0.95
    reach = int(np.ceil(zeros * old / cutoff))
    taps = (np.arange(-reach, reach + old) / old)[None] - (np.arange(new) / new)[:, None]
    x = np.clip(taps * cutoff, -zeros, zeros)
    return (np.sinc(x) * np.cos(np.pi * x / zeros / 2) ** 2 * cutoff / old).astype(np.float32)


def convolve(sound, filters, old, new):
    """The sound at its new rate."""
    step = np.gcd(old, new)
    phases, taps = filters.shape
    reach = (taps - old // step) // 2
    frames = -(-len(sound) * step // old)
    padded = np.pad(sound, (reach, reach + old // step))
    windows = np.lib.stride_tricks.sliding_window_view(padded, taps)[::old // step][:frames]
    return (np.ascontiguousarray(windows) @ filters.T).reshape(-1)


def resample(clip):
    """From the files' rate to the network's."""
    sound, label = clip
    return convolve(sound, kernel(RECORDED, RATE), RECORDED, RATE), label


class Resampler:
    """The fix: what resample does, with filters that are made once."""

    def __init__(self):
        self.filters = kernel(RECORDED, RATE)

    def __call__(self, clip):
        sound, label = clip
        return convolve(sound, self.filters, RECORDED, RATE), label


class Spectrogram:
    """Log-mel spectrogram, 1 × bands × frames."""

    def __init__(self, bands=BANDS):
        self.window = np.hanning(WINDOW).astype(np.float32)
        hertz = np.fft.rfftfreq(WINDOW, 1 / RATE)
        edges = 700 * (np.exp(np.linspace(0, np.log1p(RATE / 2 / 700), bands + 2)) - 1)
        rise = (hertz[None] - edges[:-2, None]) / np.diff(edges)[:-1, None]
        fall = (edges[2:, None] - hertz[None]) / np.diff(edges)[1:, None]
        self.mel = np.clip(np.minimum(rise, fall), 0, None).astype(np.float32)

    def __call__(self, clip):
        sound, label = clip
        frames = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP] * self.window
        power = np.abs(np.fft.rfft(frames)).astype(np.float32) ** 2
        return np.log(self.mel @ power.T + 1e-6)[None], label


def mask(clip, widest=16):
    """Blanks a random band of frequencies and a random stretch of time (SpecAugment; Park et al., 2019)."""
    spectrogram, label = clip
    spectrogram = spectrogram.copy()
    for axis in 1, 2:
        width = np.random.randint(widest)
        start = np.random.randint(spectrogram.shape[axis] - width)
        spectrogram.swapaxes(1, axis)[:, start:start + width] = spectrogram.mean()
    return spectrogram, label


def stack(clips):
    """A batch: N × 1 × bands × frames, and N labels."""
    spectrograms, labels = zip(*clips)
    return np.stack(spectrograms), np.array(labels)


def main(size=16):
    clips, spectrogram = Clips(), Spectrogram()
    for name, resampler in ("resample", resample), ("Resampler", Resampler()):
        start = time.perf_counter()
        for first in range(0, len(clips), size):
            batch, labels = stack([mask(spectrogram(resampler(decode(clips[i])))) for i in range(first, first + size)])
        print(f"{name}: {len(clips) / (time.perf_counter() - start):.0f} samples/s, batches of {batch.shape}")


if __name__ == "__main__":
    main()
