# An experiment describes a training input pipeline. The data flows from top to bottom.
#
#   pipectl validate   checks this file
#   pipectl plan       shows what would run
#   pipectl run        finds the stage that starves the training step
#
# `pipectl stages` lists the types of stages, `pipectl stages decode_jpeg` the attributes of one.

variable "batch_size" {
  type        = number
  default     = 16
  description = "Samples in a batch. Set it with --var batch_size=32."
}

experiment "starter" {
  description = "A small image classifier on made-up JPEG files"
  seed        = 1 # the same seed gives the same batches

  # Where the items come from. For your own pictures, in one sub-folder per class:
  #
  #   load "image_folder" "images" {
  #     path    = "./images"
  #     shuffle = true
  #   }
  load "synthetic" "images" {
    items  = 256
    shape  = [360, 480, 3] # height, width, channels
    encode = "jpeg"
  }
  checkpoint "raw" {} # names the boundary after the stage above

  # prepare stages always make the same of an item. workers run at a time.
  prepare "decode_jpeg" "decode" {
    workers = 1 # try 2, or cpus()
  }
  checkpoint "decoded" {}

  # augment stages draw something new for every item and epoch.
  augment "random_resized_crop" "crop" {
    size = 64
  }
  augment "random_flip" "flip" {}
  prepare "normalize" "normalize" {} # to float32, with ImageNet's mean and deviation

  batch { size = var.batch_size }
  transfer {} # to the device

  # The training step. To emulate a GPU's instead: train "emulated" "step" { time = "20ms" }
  train "cnn" "step" {
    device = "auto" # the GPU where there is one, else the CPU
    width  = 4
    stride = 2
  }

  # How to measure; these are the defaults.
  bisect {
    rounds     = 6    # intervals measured of each probe
    confidence = 0.95 # of all intervals and decisions
    min_effect = 0.05 # the smallest difference that counts
  }

  # Thresholds for CI: the exit code is 4 where one isn't met.
  #
  #   expect {
  #     steps_per_second = 3
  #     max_starvation   = 0.2
  #   }
}
