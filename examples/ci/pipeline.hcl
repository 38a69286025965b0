# A pipeline whose throughput CI guards: pictures that come from a store some way off are decoded and cropped for a training step
# that is emulated, so that it takes as long everywhere.

experiment "pictures" {
  description = "Pictures from a distant store"
  seed        = 42

  load "synthetic" "pictures" {
    items  = 128
    shape  = [96, 96, 3]
    encode = "jpeg"
  }
  prepare "sleep" "fetch" { time = "2ms" }
  prepare "decode_jpeg" "decode" {}
  augment "random_resized_crop" "crop" { size = 64 }
  batch { size = 4 }

  train "emulated" "step" { time = "1ms" }

  bisect {
    warmup = 4
    steps  = 10
  }
  expect { steps_per_second = 10 }
}
