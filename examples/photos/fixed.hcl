# The same pipeline with what the session on "photos" suggests: the colours are changed after the crop, so on 96×96
# pixels instead of on the whole photo. The model sees the same kind of picture.
#
#   pipectl run examples/photos -e photos_fixed
#   pipectl compare latest~1 latest --db examples/photos/.pipectl/results.db

experiment "photos_fixed" {
  description = "The same classifier, colours changed after the crop"
  seed        = 42

  load "image_folder" "photos" {
    path    = var.photos
    shuffle = true
  }
  checkpoint "raw" {}

  prepare "decode_jpeg" "decode" {}
  checkpoint "decoded" {}

  augment "random_resized_crop" "crop" { size = 96 }
  augment "color_jitter" "jitter" {
    brightness = 0.4
    contrast   = 0.4
    saturation = 0.4
    hue        = 0.1
  }
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
