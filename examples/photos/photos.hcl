# A small image classifier on 48 photos. Its input pipeline is written the way one writes it down the first time, and
# one stage starves the training step. Which one?
#
#   pipectl run examples/photos -e photos

variable "photos" {
  type        = string
  default     = "./photos"
  description = "One sub-folder per class."
}

experiment "photos" {
  description = "Image classifier on JPEG photos"
  seed        = 42

  load "image_folder" "photos" {
    path    = var.photos
    shuffle = true
  }
  checkpoint "raw" {}

  prepare "decode_jpeg" "decode" {}
  checkpoint "decoded" {}

  augment "color_jitter" "jitter" {
    brightness = 0.4
    contrast   = 0.4
    saturation = 0.4
    hue        = 0.1
  }
  augment "random_resized_crop" "crop" { size = 96 }
  augment "random_flip" "flip" {}
  prepare "normalize" "normalize" {}
  checkpoint "ready" {}

  batch { size = 16 }
  transfer {}

  train "cnn" "step" {
    width  = 8
    stride = 2
  }
}
