# The same spectrograms by Python callables, as one may have them today. Each has a worker process of its own, which gets what
# pipectl decoded, and hands its result on, in shared memory. One of them starves the step. Which one?
#
#   pipectl run examples/audio -e audio_python
#   pipectl run examples/audio -e audio
#   pipectl compare latest~1 latest --db examples/audio/.pipectl/results.db
#
# The interpreter needs numpy: PIPECTL_VAR_python=/usr/bin/python3 says which one to take.

variable "python" {
  type        = string
  default     = "python3"
  description = "An interpreter that has numpy."
}

locals {
  env = { OPENBLAS_NUM_THREADS = "1" } # numpy's own threads would fight the workers for the CPUs
}

experiment "audio_python" {
  description = "The same spectrograms in numpy"
  seed        = 42

  load "audio_folder" "sounds" {
    path    = "sounds"
    shuffle = true
  }
  prepare "decode_audio" "decode" {
    sample_rate = 22050
    channels    = 1
  }
  prepare "python" "resample" {
    callable = "audio:Resample"
    args     = { orig_freq = 22050, new_freq = 16000 }
    python   = var.python
    env      = local.env
  }
  prepare "python" "spectrogram" {
    callable = "audio:Spectrogram"
    args     = { length = 16000, n_mels = 64 }
    python   = var.python
    env      = local.env
  }
  augment "python" "mask" {
    callable = "audio:mask"
    output   = "tensor"
    shape    = [1, 64, 101]
    python   = var.python
    env      = local.env
  }

  batch { size = 10 }

  train "emulated" "step" { time = "2ms" }
}
