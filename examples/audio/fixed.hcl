# The same pipeline with what the session on "audio" suggests: the resampler makes its filters once, not for every clip.
#
#   pipectl run examples/audio -e audio_fixed
#   pipectl compare latest~1 latest --db examples/audio/.pipectl/results.db

experiment "audio_fixed" {
  description = "The same spectrograms, the filters made once"
  seed        = 42

  load "python" "clips" {
    dataset = "audio:Clips"
    args    = { count = 64 }
    shuffle = true
    python  = var.python
    env     = { OPENBLAS_NUM_THREADS = "1" } # numpy's own threads would fight the workers for the CPUs
  }
  prepare "python" "decode" { callable = "audio:decode" }
  prepare "python" "resample" {
    callable = "audio:Resampler"
    args     = {}
  }
  prepare "python" "spectrogram" {
    callable = "audio:Spectrogram"
    args     = { bands = 64 }
  }
  augment "python" "mask" { callable = "audio:mask" }

  batch {
    size    = 16
    collate = "audio:stack"
  }

  train "emulated" "step" { time = "5ms" }
}
