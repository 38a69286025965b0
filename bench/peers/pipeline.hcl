# What the peers are compared with: pipectl's fastest way to the batches that they make.

variable "data" {
  type        = string
  description = "Images, in one sub-folder per class."
}

variable "workers" {
  type        = number
  description = "Workers that share the images."
}

experiment "peers" {
  description = "JPEG files to normalized random crops"
  seed        = 1

  pool "loader" {
    workers = var.workers

    load "image_folder" "images" {
      path    = var.data
      shuffle = true
    }
    augment "decode_random_resized_crop" "crop" { size = 224 }
    augment "random_flip" "flip" {}
    prepare "normalize" "normalize" {}
    batch { size = 64 }
  }

  train "emulated" "step" { time = "0s" }
}
