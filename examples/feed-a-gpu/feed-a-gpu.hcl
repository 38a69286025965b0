# Could this machine feed an H100? The steps are emulated: they wait as long as MLPerf Storage says that an H100 computes
# on a batch of its workloads. The benchmark calls a machine good enough where the accelerator computes at least 90 % of
# the time (70 % for cosmoflow): max_starvation is the rest.
#
# Step times, batch and sample sizes: MLPerf Storage, https://github.com/mlcommons/storage (workload configurations).
#
#   pipectl run examples/feed-a-gpu -e resnet50      exit code 4: it doesn't keep up
#   pipectl run examples/feed-a-gpu -e resnet50 --var workers=8

variable "workers" {
  type        = number
  default     = 1
  description = "Workers that decode and augment."
}

variable "batch" {
  type        = number
  default     = 400
  description = "Samples in a batch of resnet50; its step takes 0.224 s for 400."
}

# Photos of about 115 kB, decoded and augmented as ImageNet training does.
experiment "resnet50" {
  load "synthetic" "photos" {
    items   = 100000
    shape   = [375, 500, 3]
    encode  = "jpeg"
    quality = 95
  }
  pool "loader" {
    workers = var.workers
    prepare "decode_jpeg" "decode" {}
    augment "random_resized_crop" "crop" { size = 224 }
    augment "random_flip" "flip" {}
    prepare "normalize" "normalize" {}
    batch { size = var.batch }
  }
  transfer {}
  train "emulated" "h100" { time = "${0.56 * var.batch}ms" }
  bisect { cache_batches = 2 }
  expect { max_starvation = 0.10 }
}

# Samples of 2.83 MB that only have to be collated, one a step of 3.5 ms.
experiment "cosmoflow" {
  load "synthetic" "volumes" {
    items = 10000
    kind  = "bytes"
    bytes = "2830KB"
  }
  batch { size = 1 }
  transfer {}
  train "emulated" "h100" { time = "3.5ms" }
  expect { max_starvation = 0.30 }
}

variable "volumes" {
  type        = number
  default     = 7
  description = "Samples in a batch of unet3d; its step takes 0.323 s for 7."
}

# Samples of 146.6 MB, 7 a step of 0.323 s: 3.2 GB/s through the host's memory. A batch takes 1 GB, the run about 6.
experiment "unet3d" {
  load "synthetic" "volumes" {
    items = 1000
    kind  = "bytes"
    bytes = "146600KB"
  }
  batch {
    size     = var.volumes
    prefetch = 1
  }
  transfer {}
  train "emulated" "h100" { time = "${323 * var.volumes / 7}ms" }
  bisect { cache_batches = 1 }
  expect { max_starvation = 0.10 }
}
