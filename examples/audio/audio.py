"""What audio.hcl's stages from resample on do, in numpy. A sample is an array, channels × 1 × samples, then 1 × mels × frames."""
import numpy as np

RATE = 16000  # samples/s of what the network gets


class Resample:
    """Windowed-sinc interpolation: a bank of filters, one for each phase of a new sample, and a product of matrices."""

    def __init__(self, orig_freq, new_freq, zeros=6, rolloff=0.99):
        divisor = np.gcd(orig_freq, new_freq)
        self.orig, self.new = orig_freq // divisor, new_freq // divisor
        cutoff = min(self.orig, self.new) * rolloff
        self.reach = int(np.ceil(zeros * self.orig / cutoff))
        times = np.arange(-self.reach, self.reach + self.orig) / self.orig - np.arange(self.new)[:, None] / self.new
        x = np.clip(times * cutoff, -zeros, zeros)
        self.filters = (np.sinc(x) * np.cos(np.pi * x / zeros / 2) ** 2 * cutoff / self.orig).astype(np.float32)

    def __call__(self, sound):
        sound = sound[0, 0]
        padded = np.pad(sound, (self.reach, self.reach + self.orig))
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.filters.shape[1])[:: self.orig]
        resampled = (np.ascontiguousarray(windows) @ self.filters.T).reshape(-1)
        return resampled[None, None, : -(-len(sound) * self.new // self.orig)]


class Spectrogram:
    """Log-mel spectrogram of the first length samples, in decibels down to 80 below the greatest."""

    def __init__(self, length, n_mels, n_fft=400, hop=160):
        self.length, self.n_fft, self.hop = length, n_fft, hop
        self.window = np.hanning(n_fft + 1)[:-1].astype(np.float32)
        hertz = np.linspace(0, RATE / 2, n_fft // 2 + 1)
        edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), n_mels + 2) / 2595) - 1)
        rise = (hertz - edges[:-2, None]) / np.diff(edges)[:-1, None]
        fall = (edges[2:, None] - hertz) / np.diff(edges)[1:, None]
        self.mel = np.clip(np.minimum(rise, fall), 0, None).astype(np.float32)

    def __call__(self, sound):
        sound = sound[0, 0, : self.length]
        sound = np.pad(np.pad(sound, (0, self.length - len(sound))), self.n_fft // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(sound, self.n_fft)[:: self.hop] * self.window
        power = np.abs(np.fft.rfft(frames)).astype(np.float32) ** 2
        decibels = 10 * np.log10(np.maximum(self.mel @ power.T, 1e-10))
        return np.maximum(decibels, decibels.max() - 80)[None]


def mask(spectrogram, widest=(12, 20)):
    """Blanks a random band of frequencies and a random stretch of time (SpecAugment; Park et al., 2019)."""
    spectrogram = spectrogram.copy()
    for axis, limit in enumerate(widest, start=1):
        width = np.random.randint(limit)
        start = np.random.randint(spectrogram.shape[axis] - width + 1)
        spectrogram.swapaxes(1, axis)[:, start : start + width] = 0
    return spectrogram
