# Sounds become spectrograms for a network that takes 5 ms a step. Each stage is a Python callable with worker processes of
# its own, which hand the samples on in shared memory: so one can see, and change, how many workers each stage has. One
# stage starves the step. Which one?
#
#   pipectl run examples/audio -e audio
#
# The interpreter needs numpy: PIPECTL_VAR_python=/usr/bin/python3 says which one to take.

variable "python" {
  type        = string
  default     = "python3"
  description = "An interpreter that has numpy."
}

experiment "audio" {
  description = "Log-mel spectrograms of WAV files"
  seed        = 42

  load "python" "clips" {
    dataset = "audio:Clips"
    args    = { count = 64 }
    shuffle = true
    python  = var.python
    env     = { OPENBLAS_NUM_THREADS = "1" } # numpy's own threads would fight the workers for the CPUs
  }
  prepare "python" "decode" { callable = "audio:decode" }
  prepare "python" "resample" { callable = "audio:resample" }
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
