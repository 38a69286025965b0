# Every block, and values from everywhere.
variable "data" {
  type        = string
  default     = "./photos"
  description = "One sub-folder per class."
  validation {
    condition     = length(var.data) > 0
    error_message = "data can't be empty."
  }
}

variable "shape" {
  type    = object({ size = number, mean = optional(list(number), [0.25, 0.75]) })
  default = { size = 224 }
}

locals {
  batch   = 2 * local.half
  half    = max(16, 32)
  workers = can(cpus()) && memory() > 1e6 && cpus() >= 1 ? 3 : 0
}

experiment "photos" {
  description = "Image classifier on ${upper("jpeg")} photos: ${basename(var.data)}"
  seed        = 18446744073709551615

  load "folder" "photos" {
    path    = var.data
    extra   = ["../more", "/absolute"]
    shuffle = true
    buffer  = 2 * 1024 * 1024
    workers = local.workers
  }
  checkpoint "raw" {}

  pool "loader" {
    workers  = "auto"
    prefetch = 8

    prepare "decode" "decode" {
      on_error  = "skip"
      max_skips = 10
    }
    checkpoint "decoded" {
      limit = "1.5GiB"
      mode  = "off"
    }
    augment "flip" "flip" {
      p = prepare.norm.mean[1]
    }
  }
  checkpoint "augmented" {}

  prepare "scale" "norm" {
    size    = var.shape.size
    mean    = var.shape.mean
    names   = ["r", "g"]
    seed    = local.half
    workers = pool.loader.prefetch
  }
  prepare "wait" "plain" {
    time     = "0.25s"
    jitter   = "2500us"
    workers  = prepare.decode.prefetch
    prefetch = prepare.norm.workers + 1
  }
  prepare "wait" "fraction" {
    time   = prepare.plain.time
    jitter = 0.1
    mode   = try(fileexists("photos.hcl") ? "spin" : "sleep", "sleep")
  }
  batch {
    size      = local.batch
    drop_last = !load.photos.shuffle
    mixup     = 0.2
    cutmix    = 1
  }
  transfer { pinned = false }
  train "step" "step" {
    device = lower("CPU")
    rate   = 1 / 3
  }

  bisect {
    strategy = "ladder"
    steps    = 100
    budget   = "90m"
    cold     = true
    control  = true
  }
  expect {
    steps_per_second = 2.5
    max_starvation   = 0
    bottleneck       = "prepare.norm"
  }
}
