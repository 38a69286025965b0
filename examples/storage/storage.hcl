# Photos are read, decoded, resized, cropped and normalised in the same way in every epoch, and then flipped at random. Where along
# this pipeline should a checkpoint keep what the stages above it make, so that they make it once?
#
#   pipectl run examples/storage --epochs 3 --var keep=cropped
#   pipectl cache ls --path examples/storage
#   go run ./examples/storage       measures every place: the table in README.md

variable "photos" {
  type        = string
  default     = "../photos/photos"
  description = "One sub-folder per class."
}

variable "keep" {
  type        = string
  default     = "nothing"
  description = "The checkpoint that keeps its samples on disk: read, decoded, cropped or floats. None does with nothing."
  validation {
    condition     = contains(["nothing", "read", "decoded", "cropped", "floats"], var.keep)
    error_message = "keep is nothing, read, decoded, cropped or floats."
  }
}

variable "compress" {
  type        = string
  default     = "none"
  description = "How it compresses them: none or zstd."
  validation {
    condition     = contains(["none", "zstd"], var.compress)
    error_message = "compress is none or zstd."
  }
}

# What isn't kept can still be probed by a session.
locals {
  places   = ["read", "decoded", "cropped", "floats"]
  mode     = { for place in local.places : place => place == var.keep ? "keep" : "probe" }
  compress = { for place in local.places : place => place == var.keep ? var.compress : "none" }
}

experiment "storage" {
  description = "From JPEG photos to normalised floats"
  seed        = 42

  pool "loader" {
    workers = cpus()

    load "image_folder" "photos" {
      path    = var.photos
      shuffle = true
    }
    checkpoint "read" {
      store    = "disk"
      mode     = local.mode.read
      compress = local.compress.read
    }

    prepare "decode_jpeg" "decode" {}
    checkpoint "decoded" {
      store    = "disk"
      mode     = local.mode.decoded
      compress = local.compress.decoded
    }

    prepare "resize" "resize" { size = 256 }
    prepare "center_crop" "crop" { size = 224 }
    checkpoint "cropped" {
      store    = "disk"
      mode     = local.mode.cropped
      compress = local.compress.cropped
    }

    prepare "normalize" "normalize" {}
    checkpoint "floats" {
      store    = "disk"
      mode     = local.mode.floats
      compress = local.compress.floats
    }

    augment "random_flip" "flip" {}
    batch { size = 16 }
  }

  train "emulated" "step" { time = "0s" } # takes no time, so that the pipeline alone is measured
}
